#include "paging/out/writable_moment.hpp"

#include <sys/mman.h>
#include <sys/syscall.h>

#include "base/check.hpp"
#include "base/raw_call.hpp"
#include "base/units.hpp"

namespace hinterland {
namespace {

constexpr int kFrames = PROT_READ | PROT_WRITE;
constexpr int kNoKey = -1;     // pkey_mprotect(2) is mprotect(2) then, and the key stays
constexpr int kEveryones = 0;  // the key of memory that has none

// mprotect(2) where that is enough: filters of system calls know it.
bool protect(void* page, int protection, int key) {
  if (key == kNoKey) return raw::call(SYS_mprotect, raw::word_of(page), kPageSize, protection) == 0;
  return raw::call(SYS_pkey_mprotect, raw::word_of(page), kPageSize, protection, key) == 0;
}

}  // namespace

WritableMoment::WritableMoment(void* page, void* frame, int protection)
    : page_(page), frame_(frame), before_(protection) {
  if ((protection & PROT_READ) != 0) {
    there_ = open(protection | PROT_WRITE);
  } else if (protection == PROT_NONE) {
    // No thread has the right to use a key that it has not asked for, and we do not ask for it either.
    const long key = raw::call(SYS_pkey_alloc, 0, PKEY_DISABLE_ACCESS);
    if (raw::failed(key)) return;
    key_ = static_cast<int>(key);
    there_ = open(kFrames);
    if (!there_) raw::call(SYS_pkey_free, key_);
  }
}

bool WritableMoment::open(int protection) {
  if (!protect(page_, protection, key_)) return false;
  if (protection == kFrames && key_ == kNoKey) return true;  // as the frame is
  if (protect(frame_, protection, key_)) return true;
  close(page_, before_);
  return false;
}

// Both have been mappings of their own until now: that they are again what they were needs no further one.
void WritableMoment::close(void* page, int protection) const {
  HL_CHECK(protect(page, protection, key_ == kNoKey ? kNoKey : kEveryones));
}

WritableMoment::~WritableMoment() {
  if (!there_) return;
  close(page_, before_);
  close(frame_, kFrames);
  if (key_ != kNoKey) raw::call(SYS_pkey_free, key_);
}

}  // namespace hinterland
