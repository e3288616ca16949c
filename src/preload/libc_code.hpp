// Where libc's instructions are: the one place from which system calls are not caught (catching.hpp).
#pragma once

#include <cstddef>
#include <cstdint>

namespace hinterland::libc_code {

struct Places {
  std::uintptr_t base = 0;  // of the segment that is executed
  std::size_t bytes = 0;
  std::uintptr_t gate = 0;         // `syscall; ret`, as in getpid()
  std::uintptr_t handler_end = 0;  // rt_sigreturn, to which the kernel lets handlers return
  std::uintptr_t function = 0;     // syscall()
  bool complete() const { return gate != 0 && handler_end != 0 && function != 0; }
};
Places find();

}  // namespace hinterland::libc_code
