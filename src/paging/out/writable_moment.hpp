// Pages of a mapping that may not be written, and the frames that they are to be moved to, for the moment of that
// move: MOVE takes pages between mappings that are alike and may be written.
#pragma once

#include <sys/mman.h>

#include <cstddef>

namespace hinterland {

// For as long as it lives both ranges may be written. The caller holds Core::protection_mutex, so that nobody changes
// what is mapped there, and has protected the pages against writes (userfaultfd), so that who writes to them waits.
// The program sees nothing of it: where it may not read, a protection key keeps all threads out.
//
// Its end cannot fail, whatever other threads map meanwhile, at the limit of mappings (vm.max_map_count), too: before
// a range may be written it is marked with MADV_SEQUENTIAL, which means nothing for memory without a file. So it is a
// mapping of its own until it is again what it was, and needs no further one then.
class WritableMoment {
 public:
  // `length`: bytes of each range. `protection`: PROT_* of the pages' mapping, which all of them are in. The frames'
  // mapping may be read and written. Nothing changes yet. Never blocks, nor does what follows.
  WritableMoment(void* pages, void* frames, std::size_t length, int protection);
  ~WritableMoment();
  WritableMoment(const WritableMoment&) = delete;
  WritableMoment& operator=(const WritableMoment&) = delete;
  // False on a processor without protection keys, where no key is left, and for memory that may only be executed.
  bool possible() const { return opened_ != PROT_NONE; }
  // The moment begins. False: a policy against memory that is writable and executable, too many mappings. Then all
  // is as before.
  bool open();

 private:
  bool frames_stay() const { return opened_ == (PROT_READ | PROT_WRITE) && key_ < 0; }  // as they are
  bool open_range(void* range) const;
  void close_range(void* range, int protection) const;

  void* const pages_;
  void* const frames_;
  const std::size_t length_;
  const int before_;        // of the pages
  int opened_ = PROT_NONE;  // of both ranges meanwhile
  int key_ = -1;            // of both meanwhile; -1: none
  bool is_open_ = false;
};

}  // namespace hinterland
