// The memory calls: from the program to mappings.hpp, from the runtime itself to the kernel.
#include <sys/mman.h>
#include <sys/shm.h>

#include <cerrno>
#include <cstdarg>

#include "preload/allocation_watch.hpp"
#include "preload/descriptor_guards.hpp"
#include "preload/held_for_call.hpp"
#include "preload/mappings.hpp"
#include "preload/process_advice.hpp"
#include "preload/raw.hpp"
#include "preload/state.hpp"
#include "preload/uninterrupted.hpp"

namespace {

using namespace hinterland;

std::uintptr_t number(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

void* as_pointer(std::intptr_t result) {
  if (!raw::failed(result)) return reinterpret_cast<void*>(result);
  errno = static_cast<int>(-result);
  return MAP_FAILED;
}
int as_status(int result) {
  if (result >= 0) return result;
  errno = -result;
  return -1;
}

void* map(void* address, std::size_t length, int protection, int flags, int descriptor, off_t offset) {
  if (!serves_program()) return as_pointer(raw::mmap(number(address), length, protection, flags, descriptor, offset));
  if ((flags & MAP_ANONYMOUS) == 0 && descriptor_guards::refuses(descriptor, descriptor, nullptr)) return MAP_FAILED;
  std::uint64_t since_ns = allocation_watch::before_mapping();
  std::intptr_t made =
      uninterrupted([=] { return mappings::map(number(address), length, protection, flags, descriptor, offset); });
  if (!raw::failed(made)) allocation_watch::mapped(static_cast<std::uintptr_t>(made), length, since_ns);
  return as_pointer(made);
}

int unmap(std::uintptr_t address, std::size_t length) {
  std::uint64_t since_ns = allocation_watch::before_mapping();
  int result = uninterrupted([=] { return mappings::unmap(address, length); });
  if (result == 0) allocation_watch::unmapped(address, length, since_ns);
  return result;
}

std::intptr_t remap(std::uintptr_t address, std::size_t old_length, std::size_t new_length, int flags,
                    std::uintptr_t new_address) {
  std::uint64_t since_ns = allocation_watch::before_mapping();
  std::intptr_t moved =
      uninterrupted([=] { return mappings::remap(address, old_length, new_length, flags, new_address); });
  if (raw::failed(moved)) return moved;
  if ((flags & MREMAP_DONTUNMAP) == 0) allocation_watch::unmapped(address, old_length, since_ns);
  allocation_watch::mapped(static_cast<std::uintptr_t>(moved), new_length, since_ns);
  return moved;
}

}  // namespace

HL_INTERPOSED void* mmap(void* address, std::size_t length, int protection, int flags, int descriptor,
                         off_t offset) noexcept {
  return map(address, length, protection, flags, descriptor, offset);
}
HL_INTERPOSED void* mmap64(void* address, std::size_t length, int protection, int flags, int descriptor,
                           off64_t offset) noexcept {
  return map(address, length, protection, flags, descriptor, offset);
}
HL_INTERPOSED int munmap(void* address, std::size_t length) noexcept {
  return as_status(serves_program() ? unmap(number(address), length) : raw::munmap(number(address), length));
}
HL_INTERPOSED int mprotect(void* address, std::size_t length, int protection) noexcept {
  return as_status(serves_program() ? mappings::protect(number(address), length, protection)
                                    : raw::mprotect(number(address), length, protection));
}
HL_INTERPOSED int madvise(void* address, std::size_t length, int advice) noexcept {
  return as_status(serves_program() ? mappings::advise(number(address), length, advice)
                                    : raw::madvise(number(address), length, advice));
}
HL_INTERPOSED int posix_madvise(void* address, std::size_t length, int advice) noexcept {
  // POSIX's DONTNEED must not lose data, Linux's does: glibc, too, ignores it.
  if (advice == POSIX_MADV_DONTNEED) return 0;
  return -(serves_program() ? mappings::advise(number(address), length, advice)
                            : raw::madvise(number(address), length, advice));
}
HL_INTERPOSED ssize_t process_madvise(int process, const struct iovec* ranges, std::size_t count, int advice,
                                      unsigned flags) noexcept {
  long done = serves_program()
                  ? uninterrupted([=] { return mappings::advise_process(process, ranges, count, advice, flags); })
                  : raw::call(SYS_process_madvise, process, reinterpret_cast<long>(ranges), static_cast<long>(count),
                              advice, static_cast<int>(flags));
  return reinterpret_cast<ssize_t>(as_pointer(done));  // -1 is the same in both
}
// A segment replaces what lies at a fixed address, as a foreign mapping does.
HL_INTERPOSED void* shmat(int segment, const void* address, int flags) noexcept {
  if (serves_program() && (flags & SHM_REMAP) != 0)
    if (int error = mappings::make_way_for_segment(segment, number(address), flags); error < 0)
      return as_pointer(error);
  return as_pointer(raw::call(SYS_shmat, segment, static_cast<long>(number(address)), flags));
}
HL_INTERPOSED int mincore(void* address, std::size_t length, unsigned char* vector) noexcept {
  HeldForCall held(vector, length / kPageSize + 1);
  return as_status(serves_program() ? mappings::core(number(address), length, vector)
                                    : raw::mincore(number(address), length, vector));
}
HL_INTERPOSED void* mremap(void* address, std::size_t old_length, std::size_t new_length, int flags, ...) noexcept {
  void* new_address = nullptr;
  if ((flags & (MREMAP_FIXED | MREMAP_DONTUNMAP)) != 0) {
    va_list arguments;
    va_start(arguments, flags);
    new_address = va_arg(arguments, void*);
    va_end(arguments);
  }
  return as_pointer(serves_program()
                        ? remap(number(address), old_length, new_length, flags, number(new_address))
                        : raw::mremap(number(address), old_length, new_length, flags, number(new_address)));
}
HL_INTERPOSED int mlock(const void* address, std::size_t length) noexcept {
  if (serves_program()) return as_status(mappings::lock(number(address), length, 0));
  return as_status(
      static_cast<int>(raw::call(SYS_mlock, static_cast<long>(number(address)), static_cast<long>(length))));
}
HL_INTERPOSED int mlock2(const void* address, std::size_t length, unsigned flags) noexcept {
  if (serves_program()) return as_status(mappings::lock(number(address), length, static_cast<int>(flags)));
  return as_status(static_cast<int>(
      raw::call(SYS_mlock2, static_cast<long>(number(address)), static_cast<long>(length), static_cast<int>(flags))));
}
HL_INTERPOSED int munlock(const void* address, std::size_t length) noexcept {
  if (serves_program()) return as_status(mappings::unlock(number(address), length));
  return as_status(
      static_cast<int>(raw::call(SYS_munlock, static_cast<long>(number(address)), static_cast<long>(length))));
}
HL_INTERPOSED int mlockall(int flags) noexcept {
  Uninterrupted inside;
  // What the kernel would refuse it refuses without us, too.
  bool ours = mode() == Mode::far && t_inside_runtime == 1 && (flags & (MCL_CURRENT | MCL_FUTURE)) != 0 &&
              (flags & ~(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT)) == 0;
  if (!ours) return as_status(static_cast<int>(raw::call(SYS_mlockall, flags)));
  return as_status(on_own_stack([=] { return pager().lock_all(flags); }));
}
HL_INTERPOSED int munlockall() noexcept {
  Uninterrupted inside;
  bool ours = mode() == Mode::far && t_inside_runtime == 1;
  if (!ours) return as_status(static_cast<int>(raw::call(SYS_munlockall)));
  return as_status(on_own_stack([] { return pager().unlock_all(); }));
}
HL_INTERPOSED int msync(void* address, std::size_t length, int flags) {
  if (serves_program()) return as_status(mappings::sync(number(address), length, flags));
  return as_status(
      static_cast<int>(raw::call(SYS_msync, static_cast<long>(number(address)), static_cast<long>(length), flags)));
}
// Without a key it is mprotect. (glibc decides the same way.)
HL_INTERPOSED int pkey_mprotect(void* address, std::size_t length, int protection, int key) noexcept {
  if (key == -1) return mprotect(address, length, protection);
  const int set = static_cast<int>(
      raw::call(SYS_pkey_mprotect, static_cast<long>(number(address)), static_cast<long>(length), protection, key));
  // The pager has to know the protection; mprotect(2) leaves the key as it is.
  return set == 0 ? mprotect(address, length, protection) : as_status(set);
}
