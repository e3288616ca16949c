#define XXH_INLINE_ALL
#include "kv/load.hpp"

#include <xxhash.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <deque>
#include <hinterland/fiber.hpp>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "common/team.hpp"
#include "common/zipf.hpp"

namespace kv {
namespace {

// One connection: requests go out in batches, and each answer is taken as it was asked for.
class Client {
 public:
  Client(const LoadOptions& options, const apps::Zipf& ranks, const apps::Permutation& key_of, unsigned number,
         std::uint64_t requests)
      : options_(options),
        ranks_(ranks),
        key_of_(key_of),
        left_(requests),
        random_(options.seed, 100 + number),
        socket_(hl::fibers::stream_socket::connect("127.0.0.1", options.port)),
        wanted_(options.value_bytes, '\0'),
        input_(std::size_t{256} << 10, '\0') {}

  bool done() const { return left_ == 0 && asked_.empty(); }
  std::uint64_t hash() const { return hash_; }

  // As many requests as may be on the way.
  void ask() {
    for (; left_ != 0 && asked_.size() < options_.depth; --left_) {
      std::uint64_t key = key_of_(ranks_.draw(random_));
      add(key, options_.set_percent != 0 && random_.below(100) < options_.set_percent);
    }
    send();
  }

  void store(std::uint64_t first, std::uint64_t last) {
    for (std::uint64_t key = first; key < last; ++key) add(key, true);
    send();
    take();
  }

  // Until all that was asked for is answered.
  void take() {
    while (!asked_.empty()) {
      if (answer()) continue;
      if (at_ != 0) std::memmove(input_.data(), input_.data() + at_, filled_ - at_);
      filled_ -= at_;
      at_ = 0;
      if (filled_ == input_.size()) input_.resize(2 * input_.size());
      std::ptrdiff_t got = socket_.read(input_.data() + filled_, input_.size() - filled_);
      if (got <= 0) fail("has gone away");
      filled_ += static_cast<std::size_t>(got);
    }
  }

 private:
  struct Asked {
    std::uint64_t key;
    bool set;
  };

  void add(std::uint64_t key, bool set) {
    asked_.push_back({key, set});
    output_.append(set ? "set " : "get ").append(load_key(key));
    if (set) {
      load_value(key, options_.seed, wanted_);
      output_.append(" 7 0 ").append(std::to_string(wanted_.size())).append("\r\n").append(wanted_);
    }
    output_.append("\r\n");
  }

  void send() {
    if (socket_.write_all(output_.data(), output_.size()) < 0) fail("has gone away");
    output_.clear();
  }

  [[noreturn]] void fail(const std::string& why) const { throw std::runtime_error("the server " + why); }

  // The next answer, when all of it is there.
  bool answer() {
    std::string_view text(input_.data() + at_, filled_ - at_);
    auto [key, set] = asked_.front();
    std::size_t size = set ? take_stored(text) : take_value(text, key);
    if (size == 0) return false;
    at_ += size;
    asked_.pop_front();
    return true;
  }

  std::size_t take_stored(std::string_view text) {
    constexpr std::string_view kStored = "STORED\r\n";
    if (text.substr(0, kStored.size()) != kStored.substr(0, text.size()))
      fail("does not store: " + std::string(text.substr(0, 60)));
    if (text.size() < kStored.size()) return 0;
    hash_ += apps::mixed(kStored.size());
    return kStored.size();
  }

  std::size_t take_value(std::string_view text, std::uint64_t key) {
    char head[80];
    int head_bytes = std::snprintf(head, sizeof head, "VALUE %s 7 %zu\r\n", load_key(key).c_str(), wanted_.size());
    auto begin = static_cast<std::size_t>(head_bytes);
    constexpr std::string_view kEnd = "\r\nEND\r\n";
    std::size_t size = begin + wanted_.size() + kEnd.size();
    if (text.starts_with("END\r\n")) fail("has lost key " + load_key(key));
    if (text.substr(0, begin) != std::string_view(head, begin).substr(0, text.size()))
      fail("answers for key " + load_key(key) + ": " + std::string(text.substr(0, 60)));
    if (text.size() < size) return 0;
    load_value(key, options_.seed, wanted_);
    if (text.substr(begin, wanted_.size()) != wanted_ || text.substr(begin + wanted_.size(), kEnd.size()) != kEnd)
      fail("gives a wrong answer for key " + load_key(key) + ": " + std::string(text.substr(0, 120)));
    hash_ += XXH3_64bits_withSeed(text.data(), size, key);
    return size;
  }

  const LoadOptions& options_;
  const apps::Zipf& ranks_;
  const apps::Permutation& key_of_;
  std::uint64_t left_;
  apps::Random random_;
  hl::fibers::stream_socket socket_;
  std::deque<Asked> asked_;
  std::string output_, wanted_;
  std::string input_;
  std::size_t at_ = 0, filled_ = 0;  // of input_: what was taken, and what is there
  std::uint64_t hash_ = 0;
};

}  // namespace

void offer_load(bench::Options& app, LoadOptions& options) {
  app.number("--skew", options.skew, "of Zipf's distribution of keys", 0.01, 10.0);
  app.number("--requests", options.requests, "of all connections together; 0: as many as keys", 0,
             std::uint64_t{1} << 40);
  app.number("--set-percent", options.set_percent, "of the requests are sets, of what is there already", 0, 100);
  app.number("--depth", options.depth, "requests on the way, a connection", 1, 1024);
}

std::string load_key(std::uint64_t number) {
  char text[kLoadKeyBytes + 1];
  std::snprintf(text, sizeof text, "key-%020" PRIu64, number);
  return text;
}

void load_value(std::uint64_t number, std::uint64_t seed, std::string& value) {
  std::uint64_t word = apps::mixed(number ^ seed << 40);
  for (std::size_t at = 0; at < value.size(); at += sizeof word, word += 0x9E3779B97F4A7C15u)
    std::memcpy(value.data() + at, &word, std::min(sizeof word, value.size() - at));
}

void fill(const LoadOptions& options) {
  constexpr std::uint64_t kBatch = 64;  // their answers fit into a socket's buffer
  apps::Zipf ranks(options.keys, options.skew);
  apps::Permutation key_of(options.keys, options.seed);
  Client client(options, ranks, key_of, 0, 0);
  for (std::uint64_t key = 0; key < options.keys; key += kBatch)
    client.store(key, std::min(key + kBatch, options.keys));
}

std::uint64_t load(const LoadOptions& options) {
  apps::Zipf ranks(options.keys, options.skew);
  apps::Permutation key_of(options.keys, options.seed);
  std::vector<std::uint64_t> hashes(options.threads);
  apps::on_threads(options.threads, [&](unsigned thread) {
    apps::Share own = apps::share(options.connections, thread, options.threads);
    std::deque<Client> clients;
    for (std::size_t i = own.first; i < own.last; ++i)
      clients.emplace_back(options, ranks, key_of, static_cast<unsigned>(i),
                           apps::share(options.requests, static_cast<unsigned>(i), options.connections).size());
    // The server has work from the others while one is looked at.
    for (Client& client : clients) client.ask();
    for (bool more = true; more;) {
      more = false;
      for (Client& client : clients) {
        if (client.done()) continue;
        client.take();
        client.ask();
        more = true;
      }
    }
    for (Client& client : clients) hashes[thread] += client.hash();
  });
  return std::accumulate(hashes.begin(), hashes.end(), std::uint64_t{0});
}

}  // namespace kv
