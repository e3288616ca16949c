// The heap of far objects as a holder of the process's local memory, beside its pages (paging/page/ledger.hpp).
#pragma once

#include "object/heap.hpp"
#include "paging/page/ledger.hpp"

namespace hinterland::object {

// The heap outlives it.
class SharedBudget final : public LedgerClient {
 public:
  explicit SharedBudget(Heap& heap) : heap_(heap) {}
  std::uint64_t limit_bytes() const override { return heap_.memory().limit(); }
  std::uint64_t used_bytes() const override { return heap_.memory().used(); }
  std::uint64_t waited_ns() const override { return heap_.figures().waited_ns.load(std::memory_order_relaxed); }
  void set_limit(std::uint64_t bytes) override { heap_.set_limit(bytes); }

 private:
  Heap& heap_;
};

}  // namespace hinterland::object
