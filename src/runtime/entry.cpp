// The entry points of hints. A program that uses hint.h finds `hl_runtime` when it is loaded, or does without.
#include "runtime/entry.hpp"

#include <atomic>
#include <cerrno>

#include "base/inside.hpp"
#include "base/own_stack.hpp"
#include "base/roomy_stack.hpp"
#include "base/signal_handlers.hpp"
#include "base/signal_mask.hpp"
#include "hinterland/hint.h"
#include "paging/pager.hpp"
#include "runtime/regions.hpp"

namespace hinterland::hint {
namespace {

// On a stack with room the call stays where it is. Elsewhere, on an alternate stack, a coroutine's or a far one, it
// works on one of the runtime's own. Signals are blocked there: a handler that left by siglongjmp would take that
// along. (Where there are no handlers, they need not be.)
template <typename Body>
auto with_room(const Body& body) {
  if (stack_room::has_room() || !stack_room::is_noted()) [[likely]]
    return body();
  const bool blocks = signal_handlers::possible();
  const std::uint64_t before = blocks ? signal_mask::block(signal_handlers::kAllButFaults) : 0;
  const auto result = on_own_stack(body);
  if (blocks) signal_mask::set(before);
  return result;
}

// Runs body(Pager&) with errno kept; `otherwise` where there is no pager, or where a signal
// handler interrupted the runtime: what it holds could be what the body waits for. The body captures by value: what
// it refers to on the caller's stack may be far.
template <typename Body>
int with_pager(int otherwise, const Body& body) {
  if (Pager::current() == nullptr || t_inside_runtime != 0) return otherwise;
  int errno_before = errno;
  int result = with_room([body] { return body(*Pager::current()); });
  errno = errno_before;
  return result;
}

void hint(const void* address, std::size_t size, std::int32_t read_ahead, std::uint32_t flags) {
  with_pager(0, [=](Pager& pager) {
    Hint wanted{.address = reinterpret_cast<std::uintptr_t>(address),
                .size = size,
                .read_ahead = read_ahead,
                .read_ahead_limited = (flags & HL_HINT_SEQUENTIAL) != 0,
                .write = (flags & HL_HINT_WRITE) != 0,
                .priority = static_cast<std::uint8_t>(flags >> HL_HINT_PRIORITY_SHIFT & 15)};
    if ((flags & HL_HINT_NO_WAIT) != 0)
      pager.begin_hint(wanted);
    else
      pager.hint(wanted);
    return 0;
  });
}

int pin(const void* address, std::size_t size) {
  return with_pager(EBUSY, [=](Pager& pager) { return pager.pin(reinterpret_cast<std::uintptr_t>(address), size); });
}

int unpin(const void* address, std::size_t size) {
  return with_pager(EBUSY,
                    [=](Pager& pager) { return pager.unpin(reinterpret_cast<std::uintptr_t>(address), size); });
}

int discard(void* address, std::size_t size) {
  return with_pager(EBUSY,
                    [=](Pager& pager) { return pager.discard(reinterpret_cast<std::uintptr_t>(address), size); });
}

void cold(const void* address, std::size_t size) {
  with_pager(0, [=](Pager& pager) {
    pager.cold(reinterpret_cast<std::uintptr_t>(address), size);
    return 0;
  });
}

int compute(const hl_computation* what, const void* address, std::size_t count, const std::size_t* indices,
            void* results, unsigned char* done) {
  // Where there is no pager, or it cannot be called from here, nothing is done.
  return with_pager(0, [=, wanted = *what](Pager& pager) {
    return pager.compute(wanted, reinterpret_cast<std::uintptr_t>(address), count, indices, results, done);
  });
}

int apply(const hl_operator* which, const void* argument, const hl_piece* pieces, std::size_t count, void* results,
          unsigned char* done) {
  return with_pager(
      0, [=](Pager& pager) { return pager.apply(*which, argument, std::span(pieces, count), results, done); });
}

int compose(std::uint32_t element_bytes, const hl_composed_page* pages, std::size_t count,
            const hl_composed_part* parts, std::size_t parts_count, unsigned char* done) {
  return with_pager(ENOTSUP, [=](Pager& pager) {
    return pager.compose(element_bytes, std::span(pages, count), std::span(parts, parts_count), done);
  });
}

int patch(std::uint32_t element_bytes, const hl_patched_page* pages, std::size_t count, const hl_patch* patches,
          std::size_t patches_count, unsigned char* done) {
  return with_pager(ENOTSUP, [=](Pager& pager) {
    return pager.patch(element_bytes, std::span(pages, count), std::span(patches, patches_count), done);
  });
}

}  // namespace

}  // namespace hinterland::hint

static_assert(sizeof(struct hl_runtime) == 136, "hl_runtime has got a field: abi_version is one more with it");

// C linkage: hint.h declares it.
__attribute__((visibility("default"))) constinit struct hl_runtime hl_runtime = {
    .abi_version = 7,
    .reserved = 0,
    .base = 0,
    .size = 0,
    .map = nullptr,
    .hint = hinterland::hint::hint,
    .pin = hinterland::hint::pin,
    .unpin = hinterland::hint::unpin,
    .discard = hinterland::hint::discard,
    .cold = hinterland::hint::cold,
    .region_create = hinterland::hint::create_region_without_device,
    .region_destroy = hinterland::hint::destroy_region,
    .region_error = hinterland::hint::region_error,
    .region_create_sized = hinterland::hint::create_region,
    .compute = hinterland::hint::compute,
    .apply = hinterland::hint::apply,
    .compose = hinterland::hint::compose,
    .patch = hinterland::hint::patch,
};

// For the checks of sites (site_checks.cpp), which find it without a register to spare. Hidden, so that it is this
// library's own whatever the program has.
extern "C" __attribute__((visibility("hidden"), alias("hl_runtime"))) struct hl_runtime hl_runtime_here;

void hinterland::hint::begin() {
  Pager& pager = *Pager::current();
  hl_runtime.base = pager.places_base();
  hl_runtime.map = reinterpret_cast<const unsigned char*>(pager.hint_map());
  // release: a hint that sees the size sees the rest (and x86-64 loads in order)
  std::atomic_ref(hl_runtime.size).store(pager.places_bytes(), std::memory_order_release);
}
