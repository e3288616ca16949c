// The system calls of the floor, each checked: userfaultfd, madvise, pinning. Nothing of the runtime is used here, so
// that what the runtime adds can be seen against it.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/units.hpp"

namespace hinterland::bench {

// A system call failed, or memory did not hold what it must: no figure can be trusted. The text is for people.
struct Failed : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// What a figure needs is not there (a kernel feature, a second CPU). The figure is left out, with this reason.
struct Unavailable : std::runtime_error {
  using std::runtime_error::runtime_error;
};

[[noreturn]] void fail(const std::string& what, int error);

// Anonymous private memory, without huge pages; gone with the object. Nothing is resident at first.
class Mapping {
 public:
  explicit Mapping(std::size_t bytes);
  ~Mapping();
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  std::byte* data() const { return data_; }
  std::byte* page(std::size_t index) const { return data_ + bytes_of_pages(index); }
  std::size_t bytes() const { return bytes_; }
  std::size_t pages() const { return bytes_ / kPageSize; }

 private:
  std::byte* data_;
  std::size_t bytes_;
};

enum class Delivery { message, signal };  // a fault is a message on the descriptor, or SIGBUS on the faulting thread

// One userfaultfd. Calls throw Failed; they may be made by several threads.
class Faults {
 public:
  explicit Faults(Delivery delivery = Delivery::message);
  ~Faults();
  Faults(const Faults&) = delete;
  Faults& operator=(const Faults&) = delete;

  bool can_move() const;
  // write_protect: the range may be write-protected. Such a range is not for move(): kernels before April 2026 can
  // drop the protection there.
  void add(const Mapping& mapping, bool write_protect = false);
  void copy(std::byte* target, const std::byte* source, std::size_t bytes);
  void move(std::byte* target, std::byte* source, std::size_t bytes);
  void zero(std::byte* target, std::size_t bytes);
  void protect(std::byte* address, std::size_t bytes, bool on);
  void wake(std::byte* address, std::size_t bytes);
  void set_blocking(bool blocking);
  // Addresses of the pages that threads wait for, appended to `pages`. Blocks while there are none, if blocking.
  void read_messages(std::vector<std::byte*>& pages);

 private:
  int descriptor_ = -1;
  std::uint64_t features_ = 0;
};

// Drops pages. One range is one madvise; several are one process_madvise on ourselves (Linux 6.13).
void discard(std::byte* address, std::size_t bytes);
void discard(std::span<const iovec> ranges);
bool can_discard_vectors();

// The CPUs that this process may use, as it was started.
const std::vector<int>& processors();
void pin_to(int processor);  // the calling thread
void unpin();                // to all of processors()

}  // namespace hinterland::bench
