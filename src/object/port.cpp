#include "object/port.hpp"

#include <algorithm>
#include <new>

#include "base/check.hpp"

namespace hinterland::object {

Result<std::unique_ptr<Port>> Port::open(far::Device& device) {
  auto channel = device.open_channel();
  if (!channel) return std::unexpected(channel.error());
  auto port = std::make_unique<Port>();
  port->channel_ = std::move(*channel);
  port->pages_.reset(new (std::align_val_t{kPageSize}) Pages);
  return port;
}

std::uint32_t Port::transfer(far::Operation operation, std::span<const far::FarPage> pages, std::span<int> errors,
                             std::uint32_t first) {
  HL_CHECK(first + pages.size() <= kPages && errors.size() >= pages.size());
  std::array<far::Request, kPages> requests;
  for (std::size_t i = 0; i < pages.size(); ++i)
    requests[i] = {operation, pages[i], page(first + static_cast<std::uint32_t>(i)), 0};
  return transfer(std::span(requests).first(pages.size()), errors);
}

std::uint32_t Port::transfer(std::span<far::Request> requests, std::span<int> errors) {
  HL_CHECK(requests.size() <= kPages && errors.size() >= requests.size());
  for (std::size_t i = 0; i < requests.size(); ++i) requests[i].tag = i;
  std::uint32_t submitted = 0, completed = 0, failed = 0;
  const auto count = static_cast<std::uint32_t>(requests.size());
  while (completed < count) {
    if (submitted < count) {
      const int took = channel_->submit(requests.subspan(submitted, count - submitted));
      if (took < 0) {  // lost: what it did not take never completes
        for (; submitted < count; ++submitted, ++completed, ++failed) errors[submitted] = -took;
      } else {
        submitted += static_cast<std::uint32_t>(took);
      }
    }
    std::array<far::Completion, kPages> done;
    const int found = channel_->poll(done);
    for (int i = 0; i < found; ++i) {
      const far::Completion& each = done[static_cast<std::size_t>(i)];
      errors[each.tag] = each.error;
      failed += each.error != 0;
      ++completed;
    }
    // A device answers within its own time limit, or says that it is lost.
    if (found <= 0 && completed < count) channel_->wait(100'000'000);
  }
  return failed;
}

}  // namespace hinterland::object
