// What a dereference of a local object is compiled to: fast_path.py counts the instructions.
#include "hinterland/object.hpp"

extern "C" {
const long* dereference_to_read(const hl::far::ptr<long>& pointer, const hl::far::scope& held) {
  return pointer.deref(held);
}
long* dereference_to_write(hl::far::ptr<long>& pointer, const hl::far::scope& held) {
  return pointer.deref_mut(held);
}
}
