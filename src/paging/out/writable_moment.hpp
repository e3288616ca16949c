// A page of a mapping that may not be written, and the frame that it is to be moved to, for the moment of that move:
// MOVE takes pages between mappings that are alike and may be written.
#pragma once

#include <cstddef>

namespace hinterland {

// For as long as it lives both mappings may be written. The caller holds Core::protection_mutex, so that nobody
// changes what is mapped there, and has protected the page against writes (userfaultfd), so that who writes to it
// waits. The program sees nothing of it: where it may not read, a protection key keeps all threads out.
class WritableMoment {
 public:
  // `protection`: PROT_* of the page's mapping. The frame's mapping may be read and written. Never blocks.
  WritableMoment(void* page, void* frame, int protection);
  ~WritableMoment();
  WritableMoment(const WritableMoment&) = delete;
  WritableMoment& operator=(const WritableMoment&) = delete;
  // False where it cannot be: a processor without protection keys, no key left, a policy against memory that is
  // writable and executable, too many mappings. Then all is as before.
  explicit operator bool() const { return there_; }

 private:
  bool open(int protection);
  void close(void* page, int protection) const;

  void* const page_;
  void* const frame_;
  const int before_;
  int key_ = -1;  // of both meanwhile; -1: none
  bool there_ = false;
};

}  // namespace hinterland
