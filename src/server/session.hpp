// Sessions: which client has which slabs. A client names its slabs by numbers of its own, dense from 0, and every
// number is looked up in its session: there is no name for another's memory.
//
// Thread-safe. Lock order: SessionTable, then Session.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "base/mutex.hpp"
#include "far/tcp/wire.hpp"
#include "server/account.hpp"
#include "server/arena.hpp"

namespace hinterland {

// A page whose slab is held while this exists. Move-only.
class HeldPage {
 public:
  HeldPage() = default;
  HeldPage(Arena& arena, std::uint32_t slab, std::uint32_t page) : arena_(&arena), slab_(slab), page_(page) {}
  HeldPage(HeldPage&& other) noexcept { *this = std::move(other); }
  HeldPage& operator=(HeldPage&& other) noexcept {
    std::swap(arena_, other.arena_);
    std::swap(slab_, other.slab_);
    std::swap(page_, other.page_);
    return *this;
  }
  ~HeldPage() {
    if (arena_ != nullptr) arena_->let_go(slab_);
  }
  explicit operator bool() const { return arena_ != nullptr; }
  std::byte* memory() const { return arena_->page(slab_, page_); }
  bool begin_write(std::uint64_t stamp) const { return arena_->begin_write(slab_, page_, stamp); }
  void write(std::uint64_t stamp, const std::byte* bytes) const { arena_->write(slab_, page_, stamp, bytes); }
  std::uint32_t discard(std::uint32_t count, std::uint64_t stamp) const {
    return arena_->discard(slab_, page_, count, stamp);
  }

 private:
  Arena* arena_ = nullptr;
  std::uint32_t slab_ = 0, page_ = 0;
};

class Session {
 public:
  // `address` counts the session and its slabs; the session has been counted there already.
  Session(Arena& arena, std::uint32_t slabs_max, std::shared_ptr<AddressAccount> address);
  ~Session();  // gives all back

  std::uint32_t slabs_max() const { return slabs_max_; }

  // slab_allocate and slab_release of one of the session's connections. A request that this channel sent before (it
  // lost the answer with its connection) is not done again. Its ids ascend; releases may have many unanswered at a
  // time, and are sent again in their order, an allocation only one.
  far::wire::Header change_slabs(std::uint64_t channel, const far::wire::Header& request);
  // Empty when the page is not this session's.
  HeldPage hold(far::FarPage page) const;

  // A connection takes the name `channel`. `number` ascends in the order in which connections were accepted, which is
  // that in which a client makes them. wait: an older one still has the name; it was cut off (shutdown) and will be
  // gone soon, ask again. replaced: a newer one has or had it, so the client has given this one up. `fd` must stay
  // open until detach().
  enum class Attach : std::uint8_t { done, wait, replaced, too_many, ended };
  Attach attach(std::uint64_t channel, int fd, std::uint64_t number, std::uint32_t connections_max);
  void detach(std::uint64_t channel);
  // The client said on this connection that it leaves, and so nobody will come back: on the control connection for
  // all connections of that process (also those that have just gone), on another for that one. stay() takes it back.
  void leave(std::uint64_t channel) { set_left(channel, true); }
  void stay(std::uint64_t channel) { set_left(channel, false); }

 private:
  friend class SessionTable;
  struct Member {
    int fd = -1;                // -1: not connected now
    std::uint64_t number = 0;   // of the newest connection that asked for the name
    bool left = false;          // said that it will not come back
    std::uint64_t gone_ns = 0;  // when it went
    std::uint64_t last_id = 0;  // of the last change_slabs
    far::wire::Header last_reply{};
  };
  void set_left(std::uint64_t channel, bool left);
  void forget_the_gone_locked();
  std::uint64_t deserted_at_locked(std::uint64_t grace_ns) const;
  far::wire::Header allocate_locked(const far::wire::Header& request);
  far::wire::Header release_locked(const far::wire::Header& request);

  Arena& arena_;
  const std::uint32_t slabs_max_;
  const std::shared_ptr<AddressAccount> address_;
  const std::shared_ptr<SlabAccount> account_;
  // Slab number of the client -> arena slab + 1; 0: none. Written under mutex_, read by hold() without.
  std::unique_ptr<std::atomic<std::uint32_t>[]> slabs_;
  Mutex mutex_;
  // Guarded by mutex_:
  std::map<std::uint64_t, Member> members_;
  std::uint32_t connected_ = 0;
  bool ended_ = false;                 // taken off the table: nobody may attach any more
  std::uint64_t empty_since_ns_ = 0;   // 0: connected
  std::uint64_t silent_since_ns_ = 0;  // when the last of those that are forgotten went without a word; 0: none
};

class SessionTable {
 public:
  SessionTable(Arena& arena, std::uint32_t slabs_max, std::uint32_t sessions_max)
      : arena_(arena), slabs_max_(slabs_max), sessions_max_(sessions_max) {}
  // nullptr when the token is in use, or there are too many in all or of that address (*code says which).
  std::shared_ptr<Session> open(const far::wire::Token& token, const std::shared_ptr<AddressAccount>& address,
                                far::wire::Code* code);
  std::shared_ptr<Session> find(const far::wire::Token& token);
  // Ends sessions that have had no connection for `grace_ns`. Returns when to look again (now_ns() clock), or 0.
  std::uint64_t end_deserted(std::uint64_t now, std::uint64_t grace_ns);
  std::uint32_t size() const;

 private:
  Arena& arena_;
  const std::uint32_t slabs_max_, sessions_max_;
  mutable Mutex mutex_;
  std::map<far::wire::Token, std::shared_ptr<Session>> sessions_;  // guarded by mutex_
};

}  // namespace hinterland
