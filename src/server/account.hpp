// What a client, and all clients of an address, may take of the server. What is taken is counted where it is held,
// and given back when nobody holds it any more: a slab that was released counts while a write into it is under way.
//
// Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>

#include "base/mutex.hpp"
#include "server/strangers.hpp"

namespace hinterland {

class Quota {
 public:
  explicit Quota(std::uint32_t max) : max_(max) {}
  bool take() {
    std::uint32_t used = used_.load(std::memory_order_relaxed);
    do {
      if (used >= max_) return false;
      // relaxed: a number, which orders nothing
    } while (!used_.compare_exchange_weak(used, used + 1, std::memory_order_relaxed));
    return true;
  }
  void give_back() { used_.fetch_sub(1, std::memory_order_relaxed); }
  std::uint32_t used() const { return used_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint32_t> used_{0};
  const std::uint32_t max_;
};

struct AddressLimits {
  std::uint32_t slabs, sessions, connections;
};

struct AddressAccount {
  explicit AddressAccount(const AddressLimits& max)
      : slabs(max.slabs), sessions(max.sessions), connections(max.connections) {}
  Quota slabs, sessions, connections;
};

// The slabs of one client; in those of its address they count, too.
class SlabAccount {
 public:
  SlabAccount(std::uint32_t max, std::shared_ptr<AddressAccount> address) : own_(max), address_(std::move(address)) {}
  bool take() {
    if (!own_.take()) return false;
    if (address_ == nullptr || address_->slabs.take()) return true;
    own_.give_back();
    return false;
  }
  void give_back() {
    own_.give_back();
    if (address_ != nullptr) address_->slabs.give_back();
  }

 private:
  Quota own_;
  std::shared_ptr<AddressAccount> address_;
};

// The accounts of those addresses from which somebody is there.
class AddressBook {
 public:
  explicit AddressBook(const AddressLimits& limits) : limits_(limits) {}
  std::shared_ptr<AddressAccount> of(const PeerAddress& address) {
    LockGuard lock(mutex_);
    if (accounts_.size() >= look_at_) {
      std::erase_if(accounts_, [](const auto& each) { return each.second.expired(); });
      look_at_ = 2 * accounts_.size() + 64;
    }
    std::weak_ptr<AddressAccount>& known = accounts_[address];
    std::shared_ptr<AddressAccount> account = known.lock();
    if (account == nullptr) known = account = std::make_shared<AddressAccount>(limits_);
    return account;
  }

 private:
  const AddressLimits limits_;
  Mutex mutex_;
  std::map<PeerAddress, std::weak_ptr<AddressAccount>> accounts_;  // guarded by mutex_
  std::size_t look_at_ = 64;                                       // so many: some have gone; guarded by mutex_
};

}  // namespace hinterland
