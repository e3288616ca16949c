// What a program says about the pages it will use, and those it will not.
#include <sys/mman.h>

#include <cerrno>

#include "paging/pager_impl.hpp"

namespace hinterland {

// A hint must not run where its own thread stands on far memory: it could wait for the page that it took away.
void Pager::hint(const Hint& hint) {
  Impl& parts = *impl_;
  if (!parts.core.managed.load(std::memory_order_acquire)) return;  // pairs with take_over: the parts are there
  if (contains(reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)))) return;
  if (contains(reinterpret_cast<std::uintptr_t>(__builtin_thread_pointer()))) return;
  parts.hints.serve(hint, *parts.direct);
}

const std::atomic<std::uint8_t>* Pager::hint_map() const { return impl_->core.hint_map.bytes(); }

}  // namespace hinterland
