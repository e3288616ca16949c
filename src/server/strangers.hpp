// Who has connected and not yet shown that it may. Strangers are counted by address: one address can have so many at
// once, and so many a second, and what it has too many it pays for itself. Nobody is sent away for a stranger
// from another address, and nobody who has proved the key for any stranger.
//
// Owned by the worker that accepts connections; not thread-safe.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <vector>

#include "far/tcp/socket.hpp"

namespace hinterland {

// An IPv4 address, or the network of an IPv6 address (its first 64 bits, since one machine has all that follow).
struct PeerAddress {
  std::array<unsigned char, 16> bytes{};
  static PeerAddress of(const far::Endpoint& endpoint);
  auto operator<=>(const PeerAddress&) const = default;
};

// A part of what the worker keeps of each connection.
struct Stranger {
  PeerAddress address;
  std::uint64_t came_ns = 0;
  bool introduced = false;  // has sent its hello, as a client does at once
  bool counted = false;     // is among the Strangers
  std::size_t place = 0;    // there
};

class Strangers {
 public:
  struct Limits {
    std::uint32_t of_address = 0;           // at once
    std::uint32_t of_all = 0;               // the same, of all addresses together
    std::uint32_t of_address_a_second = 0;  // of those who do not prove the key
  };
  Strangers() = default;
  explicit Strangers(const Limits& limits) : limits_(limits) {}

  // One more from there: may it come? make_room: once candidate() has gone.
  enum class Verdict : std::uint8_t { come, make_room, refuse };
  Verdict judge(const PeerAddress& address, std::uint64_t now);
  // Who of this address has the least to lose by trying again; nullptr when all are about to finish.
  Stranger* candidate(const PeerAddress& address, std::uint64_t now);

  void add(Stranger* stranger, std::uint64_t now);  // must stay where it is until remove()
  // It has proved the key, or has gone. No effect when it is not counted (any more).
  void remove(Stranger* stranger, bool proved);
  std::uint32_t count() const { return count_; }

 private:
  struct Address {
    std::vector<Stranger*> strangers;
    double left = 0;  // how many may come now; grows by of_address_a_second
    std::uint64_t filled_ns = 0;
  };
  Address& known(const PeerAddress& address, std::uint64_t now);
  double most_at_once() const;
  void refill(Address& address, std::uint64_t now) const;
  void forget_some(std::uint64_t now);

  Limits limits_;
  std::map<PeerAddress, Address> addresses_;
  std::uint32_t count_ = 0;
  std::uint64_t random_ = 0;
};

}  // namespace hinterland
