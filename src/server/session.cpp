#include "server/session.hpp"

#include <sys/socket.h>

#include <algorithm>

#include "base/clock.hpp"

namespace hinterland {

using far::wire::Code;
using far::wire::Header;
using far::wire::Type;

namespace {
// Names that are remembered for clients who come back; far more than a client has connections.
constexpr std::size_t kMembersMax = 32768;
}  // namespace

Session::Session(Arena& arena, std::uint32_t slabs_max, std::shared_ptr<AddressAccount> address)
    : arena_(arena),
      slabs_max_(slabs_max),
      address_(std::move(address)),
      account_(std::make_shared<SlabAccount>(slabs_max, address_)),
      slabs_(std::make_unique<std::atomic<std::uint32_t>[]>(slabs_max)) {}

Session::~Session() {
  for (std::uint32_t i = 0; i < slabs_max_; ++i)
    if (std::uint32_t entry = slabs_[i].load(); entry != 0) arena_.let_go(entry - 1);
  address_->sessions.give_back();
}

Header Session::change_slabs(std::uint64_t channel, const Header& request) {
  LockGuard lock(mutex_);
  Member& member = members_[channel];
  if (member.last_id == request.id && member.last_reply.type == (request.type | far::wire::kReplyBit))
    return member.last_reply;
  // A channel's numbers ascend, and it sends again in their order: an earlier one is done, too. Its slab may have
  // another holder by now.
  bool allocate = Type{static_cast<std::uint16_t>(request.type)} == Type::slab_allocate;
  if (!allocate && request.id < member.last_id) return make_reply(request, Code::ok);
  member.last_reply = allocate ? allocate_locked(request) : release_locked(request);
  member.last_id = request.id;
  return member.last_reply;
}

Header Session::allocate_locked(const Header& request) {
  std::uint32_t number = 0;
  while (number < slabs_max_ && slabs_[number].load() != 0) ++number;
  std::uint32_t slab = 0;
  if (number == slabs_max_ || !arena_.allocate(account_, &slab)) return make_reply(request, Code::no_space);
  slabs_[number].store(slab + 1);
  Header reply = make_reply(request, Code::ok);
  reply.slab = number;
  return reply;
}

Header Session::release_locked(const Header& request) {
  std::uint32_t entry = request.slab < slabs_max_ ? slabs_[request.slab].exchange(0) : 0;
  if (entry == 0) return make_reply(request, Code::not_yours);
  arena_.let_go(entry - 1);
  return make_reply(request, Code::ok);
}

HeldPage Session::hold(far::FarPage page) const {
  if (page.slab() >= slabs_max_) return {};
  std::uint32_t entry = slabs_[page.slab()].load();
  if (entry == 0 || !arena_.hold(entry - 1)) return {};
  HeldPage held(arena_, entry - 1, page.page_in_slab());
  // Between the look and the hold it may have been released and given to another. Now that it is held it cannot be.
  if (slabs_[page.slab()].load() != entry) return {};
  return held;
}

Session::Attach Session::attach(std::uint64_t channel, int fd, std::uint64_t number, std::uint32_t connections_max) {
  LockGuard lock(mutex_);
  if (ended_) return Attach::ended;
  if (auto known = members_.find(channel); known != members_.end()) {
    if (number < known->second.number) return Attach::replaced;
    known->second.number = number;
    if (known->second.fd >= 0) {
      ::shutdown(known->second.fd, SHUT_RDWR);
      return Attach::wait;
    }
  }
  if (connected_ >= connections_max) return Attach::too_many;
  if (members_.size() >= kMembersMax) forget_the_gone_locked();
  Member& member = members_[channel];
  member.fd = fd;
  member.number = number;
  member.left = false;
  ++connected_;
  empty_since_ns_ = 0;
  return Attach::done;
}

void Session::forget_the_gone_locked() {
  std::erase_if(members_, [this](const auto& each) {
    const Member& member = each.second;
    if (member.fd < 0 && !member.left) silent_since_ns_ = std::max(silent_since_ns_, member.gone_ns);
    return member.fd < 0;
  });
}

void Session::detach(std::uint64_t channel) {
  LockGuard lock(mutex_);
  Member& member = members_[channel];
  member.fd = -1;
  member.gone_ns = now_ns();
  if (--connected_ == 0) empty_since_ns_ = member.gone_ns;
}

void Session::set_left(std::uint64_t channel, bool left) {
  LockGuard lock(mutex_);
  for (auto& [name, member] : members_) {
    bool meant = far::wire::is_control(channel) ? far::wire::same_process(name, channel) : name == channel;
    if (meant) member.left = left;
  }
}

// When a session without connections may be ended: at once if all of its connections went with a word, else when
// those that did not have had their time to come back.
std::uint64_t Session::deserted_at_locked(std::uint64_t grace_ns) const {
  if (members_.empty()) return empty_since_ns_ + grace_ns;
  std::uint64_t silent_since = silent_since_ns_;
  for (const auto& [name, member] : members_)
    if (!member.left) silent_since = std::max(silent_since, member.gone_ns);
  return std::max(empty_since_ns_, silent_since != 0 ? silent_since + grace_ns : 0);
}

std::shared_ptr<Session> SessionTable::open(const far::wire::Token& token,
                                            const std::shared_ptr<AddressAccount>& address, Code* code) {
  LockGuard lock(mutex_);
  *code = Code::bad_request;
  if (sessions_.contains(token)) return nullptr;
  *code = Code::too_many;
  if (sessions_.size() >= sessions_max_ || !address->sessions.take()) return nullptr;
  *code = Code::ok;
  auto session = std::make_shared<Session>(arena_, slabs_max_, address);
  session->empty_since_ns_ = now_ns();
  sessions_[token] = session;
  return session;
}

std::shared_ptr<Session> SessionTable::find(const far::wire::Token& token) {
  LockGuard lock(mutex_);
  auto found = sessions_.find(token);
  return found != sessions_.end() ? found->second : nullptr;
}

std::uint64_t SessionTable::end_deserted(std::uint64_t now, std::uint64_t grace_ns) {
  // Ended outside the lock: wiping many slabs takes its time.
  std::vector<std::shared_ptr<Session>> ended;
  std::uint64_t next = 0;
  LockGuard lock(mutex_);
  for (auto each = sessions_.begin(); each != sessions_.end();) {
    Session& session = *each->second;
    std::uint64_t end = 0;
    {
      LockGuard session_lock(session.mutex_);
      if (session.empty_since_ns_ != 0) end = session.deserted_at_locked(grace_ns);
      session.ended_ = end != 0 && end <= now;
    }
    if (end != 0 && end <= now) {
      ended.push_back(std::move(each->second));
      each = sessions_.erase(each);
      continue;
    }
    if (end != 0 && (next == 0 || end < next)) next = end;
    ++each;
  }
  return next;
}

std::uint32_t SessionTable::size() const {
  LockGuard lock(mutex_);
  return static_cast<std::uint32_t>(sessions_.size());
}

}  // namespace hinterland
