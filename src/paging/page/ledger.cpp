#include "paging/page/ledger.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/claims.hpp"

namespace hinterland {
namespace {

// Waiting is a mean of about so long: longer than bursts, shorter than what a person calls a phase.
constexpr double kMeanNs = 300e6;
// Who waits less than this share of the time waits for nothing that matters.
constexpr double kLeastShare = 1e-4;
// From this share on waiting alone decides.
constexpr double kUrgentShare = 0.01;
// A limit grows by no less than one part in so many: moving less is not worth a look at all pages.
constexpr std::uint64_t kSmallPart = 32;
// Reclaim keeps up to a sixteenth of the pages' part free, and evacuators up to a fifth of the objects' part: where
// less than a quarter is unused, all is in use.
constexpr std::uint64_t kUnusedPart = 4;
constexpr std::uint64_t kLeastPart = 16;

std::uint64_t new_limit(std::uint64_t now, std::uint64_t wanted) {
  return wanted <= now || wanted - now > now / kSmallPart ? wanted : now;
}

}  // namespace

bool Ledger::join(LedgerClient& client) {
  for (std::atomic<LedgerClient*>& place : clients_) {
    LedgerClient* none = nullptr;
    if (!place.compare_exchange_strong(none, &client)) continue;
    count_.fetch_add(1, std::memory_order_release);  // pairs with is_shared()
    return true;
  }
  return false;
}

std::uint64_t Ledger::used_bytes() const {
  std::uint64_t sum = 0;
  for (const std::atomic<LedgerClient*>& place : clients_)
    if (const LedgerClient* client = place.load(std::memory_order_acquire)) sum += client->used_bytes();
  return sum;
}

void Ledger::Waiting::look(std::uint64_t waited_ns, std::uint64_t passed_ns) {
  const std::uint64_t more = waited_ns - std::min(std::exchange(before_ns, waited_ns), waited_ns);
  const double passed = static_cast<double>(std::max<std::uint64_t>(passed_ns, 1));
  share += (static_cast<double>(more) / passed - share) * std::min(1.0, passed / kMeanNs);
  if (share < kLeastShare) share = 0;
}

std::uint64_t Ledger::share_out(std::uint64_t bytes, const Pages& pages, std::uint64_t now_ns) {
  const std::uint64_t passed_ns = now_ns - std::exchange(looked_ns_, now_ns);
  std::vector<LedgerClient*> clients;
  std::vector<Claim> claims;
  auto claim = [&](Waiting& waiting, const Pages& of) {
    waiting.look(of.waited_ns, passed_ns);
    claims.push_back({of.limit_bytes, of.used_bytes, waiting.share});
  };
  claim(waiting_.back(), pages);
  for (std::size_t i = 0; i < kClientsMax; ++i) {
    LedgerClient* client = clients_[i].load(std::memory_order_acquire);
    if (client == nullptr) continue;
    clients.push_back(client);
    claim(waiting_[i], {client->limit_bytes(), client->used_bytes(), client->waited_ns()});
  }
  missed_ = std::ranges::any_of(claims, [](const Claim& each) { return each.misses > 0; });
  const std::uint64_t least = std::min(std::max(bytes / kLeastPart, kLeastBytes), bytes / claims.size());
  const std::vector<std::uint64_t> limits =
      hinterland::share_out({bytes, 0, least, bytes / kUnusedPart, kUrgentShare}, claims);
  for (std::size_t i = 0; i < clients.size(); ++i) {
    const std::uint64_t now = claims[i + 1].budget_bytes, wanted = new_limit(now, limits[i + 1]);
    if (wanted != now) clients[i]->set_limit(wanted);
  }
  return new_limit(pages.limit_bytes, limits[0]);
}

}  // namespace hinterland
