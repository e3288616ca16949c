#include "openload/load.hpp"

#include <poll.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <optional>
#include <stdexcept>

#include "common/zipf.hpp"
#include "openload/values.hpp"

namespace openload {
namespace {

constexpr std::uint64_t kSecondNs = 1'000'000'000, kPatienceNs = 30 * kSecondNs;

std::uint64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * kSecondNs + static_cast<std::uint64_t>(now.tv_nsec);
}

std::uint64_t ns_of(double seconds) { return static_cast<std::uint64_t>(seconds * 1e9); }

// Waits until something can be received (or sent, where there is something to send), or until `until_ns`. Then
// receives.
void wait_for_replies(std::vector<std::unique_ptr<Connection>>& connections, std::uint64_t until_ns) {
  std::vector<pollfd> watched;
  for (const auto& connection : connections) {
    short events = POLLIN;
    if (connection->wants_to_send()) events |= POLLOUT;
    watched.push_back({connection->descriptor(), events, 0});
  }
  std::uint64_t now = now_ns(), left = until_ns > now ? until_ns - now : 0;
  timespec timeout{static_cast<time_t>(left / kSecondNs), static_cast<long>(left % kSecondNs)};
  if (ppoll(watched.data(), watched.size(), &timeout, nullptr) < 0 && errno != EINTR)
    throw std::runtime_error(std::string("poll: ") + std::strerror(errno));
  for (std::size_t i = 0; i < watched.size(); ++i)
    if ((watched[i].revents & ~POLLOUT) != 0) connections[i]->receive_what_came();
}

class Load {
 public:
  explicit Load(const Work& work)
      : work_(work), random_(work.seed), ranks_random_(work.seed), key_of_(work.keys, work.seed) {
    if (work.skew > 0) ranks_.emplace(work.keys, work.skew);
    for (unsigned i = 0; i < work.connections; ++i) connections_.push_back(std::make_unique<Connection>(work.socket));
  }

  Done go() {
    start_ns_ = now_ns();
    counted_from_ns_ = start_ns_ + ns_of(work_.warm_up_seconds);
    std::uint64_t end_ns = counted_from_ns_ + ns_of(work_.seconds);
    std::uint64_t due_ns = start_ns_ + gap_ns();
    while (due_ns < end_ns) {
      for (; due_ns <= now_ns() && due_ns < end_ns; due_ns += gap_ns()) queue(due_ns);
      exchange(std::min(due_ns, end_ns));
    }
    while (waiting() > 0) {
      if (now_ns() > end_ns + kPatienceNs)
        throw std::runtime_error(std::to_string(waiting()) + " requests were not answered within 30 s");
      exchange(end_ns + kPatienceNs);
    }
    done_.seconds = static_cast<double>(now_ns() - counted_from_ns_) / 1e9;
    std::ranges::sort(done_.get_ns);
    std::ranges::sort(done_.set_ns);
    return std::move(done_);
  }

 private:
  std::uint64_t gap_ns() { return ns_of(-std::log1p(-random_.share()) / work_.rate_per_second); }

  std::size_t waiting() const {
    std::size_t count = 0;
    for (const auto& connection : connections_) count += connection->waiting();
    return count;
  }

  void queue(std::uint64_t due_ns) {
    std::uint64_t key = ranks_ ? key_of_(ranks_->draw(ranks_random_)) : random_.below(work_.keys);
    Pending pending{due_ns, key, random_.share() >= work_.set_share};
    Connection& connection = *connections_[next_++ % connections_.size()];
    done_.checksum = done_.checksum * 31 + pending.key * 2 + (pending.get ? 1 : 0);
    if (pending.get) {
      connection.queue_get(pending);
    } else {
      make_value(pending.key, work_.value_bytes, value_);
      connection.queue_set(pending, value_);
    }
  }

  void exchange(std::uint64_t until_ns) {
    for (const auto& connection : connections_) connection->send_what_goes();
    wait_for_replies(connections_, until_ns);
    std::uint64_t now = now_ns();
    Pending answered{};
    std::string_view text;
    for (const auto& connection : connections_)
      while (connection->next_reply(answered, text)) account(answered, text, now);
  }

  void account(const Pending& answered, std::string_view text, std::uint64_t now) {
    check(answered, text);
    if (answered.due_ns < counted_from_ns_) return;
    (answered.get ? done_.get_ns : done_.set_ns).push_back(now - answered.due_ns);
  }

  void check(const Pending& answered, std::string_view text) {
    if (answered.get) make_value(answered.key, work_.value_bytes, value_);
    if (text != (answered.get ? std::string_view(value_) : std::string_view("OK")))
      throw std::runtime_error("the reply about key " + std::to_string(answered.key) +
                               " is not what was stored there");
  }

  const Work& work_;
  Random random_;
  apps::Random ranks_random_;
  std::optional<apps::Zipf> ranks_;  // where some keys are wanted more often than others
  apps::Permutation key_of_;
  std::vector<std::unique_ptr<Connection>> connections_;
  std::size_t next_ = 0;
  std::uint64_t start_ns_ = 0, counted_from_ns_ = 0;
  std::string value_;
  Done done_;
};

}  // namespace

void fill(const Work& work) {
  constexpr std::uint64_t kBatchBytes = 1 << 20;
  std::uint64_t batch = std::max<std::uint64_t>(1, kBatchBytes / (work.value_bytes + 64));
  std::vector<std::unique_ptr<Connection>> one;
  one.push_back(std::make_unique<Connection>(work.socket));
  std::string value;
  Pending answered{};
  std::string_view text;
  for (std::uint64_t key = 0; key < work.keys;) {
    for (std::uint64_t end = std::min(work.keys, key + batch); key < end; ++key) {
      make_value(key, work.value_bytes, value);
      one[0]->queue_set({0, key, false}, value);
    }
    std::uint64_t give_up_ns = now_ns() + kPatienceNs;
    while (one[0]->waiting() > 0) {
      if (now_ns() > give_up_ns) throw std::runtime_error("the server has not answered for 30 s while it was filled");
      one[0]->send_what_goes();
      wait_for_replies(one, give_up_ns);
      while (one[0]->next_reply(answered, text))
        if (text != "OK") throw std::runtime_error("the server answered a SET with " + std::string(text));
    }
  }
}

Done run(const Work& work) { return Load(work).go(); }

std::uint64_t percentile(const std::vector<std::uint64_t>& sorted, double share) {
  if (sorted.empty()) return 0;
  auto rank = static_cast<std::size_t>(std::ceil(share * static_cast<double>(sorted.size())));
  return sorted[std::clamp<std::size_t>(rank, 1, sorted.size()) - 1];
}

}  // namespace openload
