#include "server/strangers.hpp"

#include <netinet/in.h>

#include <algorithm>
#include <cstring>

namespace hinterland {
namespace {

// Addresses that are remembered for their rate; an attacker who has more of them is not slowed down by it.
constexpr std::size_t kAddressesMax = 4096;
// A client that sent its hello has its proof ready within a round trip and a turn of the CPU.
constexpr std::uint64_t kProofNs = 250'000'000;
// So many are compared: enough to find one that is silent where many are, and no work that grows with the limit.
constexpr std::size_t kCompared = 8;

}  // namespace

PeerAddress PeerAddress::of(const far::Endpoint& endpoint) {
  PeerAddress result;
  constexpr std::size_t kNetworkBytes = 8;
  sockaddr_in v4{};
  sockaddr_in6 v6{};
  if (endpoint.family() == AF_INET) {
    std::memcpy(&v4, &endpoint.address, sizeof v4);
    std::memcpy(result.bytes.data(), &v4.sin_addr, sizeof v4.sin_addr);
    return result;
  }
  std::memcpy(&v6, &endpoint.address, sizeof v6);
  bool mapped = IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr);
  if (mapped)
    std::memcpy(result.bytes.data(), v6.sin6_addr.s6_addr + 12, 4);
  else
    std::memcpy(result.bytes.data() + kNetworkBytes, v6.sin6_addr.s6_addr, kNetworkBytes);
  return result;
}

double Strangers::most_at_once() const { return std::max(limits_.of_address, limits_.of_address_a_second); }

void Strangers::refill(Address& address, std::uint64_t now) const {
  double passed_s = static_cast<double>(now - address.filled_ns) / 1e9;
  address.left = std::min(address.left + passed_s * limits_.of_address_a_second, most_at_once());
  address.filled_ns = now;
}

Strangers::Address& Strangers::known(const PeerAddress& address, std::uint64_t now) {
  auto found = addresses_.find(address);
  if (found == addresses_.end()) {
    if (addresses_.size() >= kAddressesMax) forget_some(now);
    found = addresses_.emplace(address, Address{{}, most_at_once(), now}).first;
  }
  refill(found->second, now);
  return found->second;
}

void Strangers::forget_some(std::uint64_t now) {
  for (auto& [name, address] : addresses_) refill(address, now);
  std::erase_if(addresses_, [this](const auto& each) {
    return each.second.strangers.empty() && each.second.left >= most_at_once();
  });
  if (addresses_.size() < kAddressesMax) return;
  std::erase_if(addresses_, [](const auto& each) { return each.second.strangers.empty(); });
}

Strangers::Verdict Strangers::judge(const PeerAddress& address, std::uint64_t now) {
  Address& here = known(address, now);
  if (here.left < 1) return Verdict::refuse;
  if (here.strangers.size() >= limits_.of_address) return Verdict::make_room;
  if (count_ < limits_.of_all) return Verdict::come;
  return here.strangers.empty() ? Verdict::refuse : Verdict::make_room;
}

Stranger* Strangers::candidate(const PeerAddress& address, std::uint64_t now) {
  std::vector<Stranger*>& here = known(address, now).strangers;
  Stranger* chosen = nullptr;
  random_ = random_ * 6364136223846793005u + now;
  for (std::size_t i = 0; i < std::min(kCompared, here.size()); ++i) {
    Stranger* each = here[((random_ >> 33) + i) % here.size()];
    if (each->introduced && now - each->came_ns < kProofNs) continue;
    bool better = chosen == nullptr || (chosen->introduced && !each->introduced) ||
                  (chosen->introduced == each->introduced && each->came_ns < chosen->came_ns);
    if (better) chosen = each;
  }
  return chosen;
}

void Strangers::add(Stranger* stranger, std::uint64_t now) {
  Address& here = known(stranger->address, now);
  here.left -= 1;
  stranger->came_ns = now;
  stranger->counted = true;
  stranger->place = here.strangers.size();
  here.strangers.push_back(stranger);
  ++count_;
}

void Strangers::remove(Stranger* stranger, bool proved) {
  if (!stranger->counted) return;
  stranger->counted = false;
  Address& here = addresses_[stranger->address];
  here.strangers.back()->place = stranger->place;
  here.strangers[stranger->place] = here.strangers.back();
  here.strangers.pop_back();
  if (proved) here.left += 1;
  --count_;
}

}  // namespace hinterland
