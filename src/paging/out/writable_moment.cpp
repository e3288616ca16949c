#include "paging/out/writable_moment.hpp"

#include <sys/mman.h>
#include <sys/syscall.h>

#include "base/check.hpp"
#include "base/raw_call.hpp"

namespace hinterland {
namespace {

constexpr int kFrames = PROT_READ | PROT_WRITE;
constexpr int kNoKey = -1;     // pkey_mprotect(2) is mprotect(2) then, and the key stays
constexpr int kEveryones = 0;  // the key of memory that has none

// mprotect(2) where that is enough: filters of system calls know it.
bool protect(void* range, std::size_t length, int protection, int key) {
  if (key == kNoKey) return raw::call(SYS_mprotect, raw::word_of(range), raw::word_of(length), protection) == 0;
  return raw::call(SYS_pkey_mprotect, raw::word_of(range), raw::word_of(length), protection, key) == 0;
}

bool advise(void* range, std::size_t length, int advice) {
  return raw::call(SYS_madvise, raw::word_of(range), raw::word_of(length), advice) == 0;
}

}  // namespace

WritableMoment::WritableMoment(void* pages, void* frames, std::size_t length, int protection)
    : pages_(pages), frames_(frames), length_(length), before_(protection) {
  if ((protection & PROT_READ) != 0) {
    opened_ = protection | PROT_WRITE;
  } else if (protection == PROT_NONE) {
    // No thread has the right to use a key that it has not asked for, and we do not ask for it either.
    const long key = raw::call(SYS_pkey_alloc, 0, PKEY_DISABLE_ACCESS);
    if (raw::failed(key)) return;
    key_ = static_cast<int>(key);
    opened_ = kFrames;
  }
}

bool WritableMoment::open() {
  if (!possible() || !open_range(pages_)) return false;
  is_open_ = frames_stay() || open_range(frames_);
  if (!is_open_) close_range(pages_, before_);
  return is_open_;
}

// Without the mark the range would become one with a neighbour that may be written. What it then needs to be a
// mapping of its own again another thread may have got meanwhile.
bool WritableMoment::open_range(void* range) const {
  if (advise(range, length_, MADV_SEQUENTIAL) && protect(range, length_, opened_, key_)) return true;
  advise(range, length_, MADV_NORMAL);
  return false;
}

// Where the mark cannot be taken away it stays: nothing else depends on it.
void WritableMoment::close_range(void* range, int protection) const {
  HL_CHECK(protect(range, length_, protection, key_ == kNoKey ? kNoKey : kEveryones));
  advise(range, length_, MADV_NORMAL);
}

WritableMoment::~WritableMoment() {
  if (is_open_) {
    close_range(pages_, before_);
    if (!frames_stay()) close_range(frames_, kFrames);
  }
  if (key_ != kNoKey) raw::call(SYS_pkey_free, key_);
}

}  // namespace hinterland
