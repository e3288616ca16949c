// Pages that the program has sent by reference, as vmsplice and MSG_ZEROCOPY do: whoever receives one late must see
// what the page held when it was sent, or what the program wrote there afterwards, and never another page's bytes.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "kernel/fake_kernel.hpp"

namespace hinterland::testing {

class SentPages {
 public:
  using Bytes = std::array<std::byte, kPageSize>;
  static constexpr std::size_t kMost = 8;  // at a time: each keeps all that its page has held

  explicit SentPages(FakeKernel& kernel) : kernel_(kernel) {}

  // The page is there, and holds this.
  void send(std::uint32_t page, std::uintptr_t address, const Bytes& bytes) {
    sent_.push_back({page, kernel_.hold(address), true, {bytes}});
  }
  std::size_t count() const { return sent_.size(); }
  void receive(std::size_t which) { sent_.erase(sent_.begin() + static_cast<std::ptrdiff_t>(which)); }

  void written(std::uint32_t page, const Bytes& bytes) {
    for (Sent& sent : sent_)
      if (sent.follows && sent.page == page) sent.held.push_back(bytes);
  }
  // The program gave the memory back: what comes there now is another page.
  void left(std::uint32_t first, std::uint32_t pages) {
    for (Sent& sent : sent_)
      if (sent.page - first < pages) sent.follows = false;
  }
  void moved(std::uint32_t first, std::uint32_t pages, std::uint32_t target) {
    for (Sent& sent : sent_)
      if (sent.follows && sent.page - first < pages) sent.page += target - first;
  }
  // The program gave the memory to its heap, which may write there at any time.
  void freed(std::uint32_t first, std::uint32_t pages) {
    std::erase_if(sent_, [=](const Sent& sent) { return sent.follows && sent.page - first < pages; });
  }

  // "" or what somebody would receive that he must not.
  std::string check() {
    for (const Sent& sent : sent_) {
      Bytes seen;
      kernel_.load_held(sent.reference, seen.data());
      if (std::find(sent.held.begin(), sent.held.end(), seen) == sent.held.end())
        return "I7: what was sent of page " + std::to_string(sent.page) + " holds what that never held";
    }
    return "";
  }

 private:
  struct Sent {
    std::uint32_t page;
    std::size_t reference;
    bool follows;  // what is written to the page reaches the receiver, as long as it does not leave local memory
    std::vector<Bytes> held;
  };
  FakeKernel& kernel_;
  std::vector<Sent> sent_;
};

}  // namespace hinterland::testing
