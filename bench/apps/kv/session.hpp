// One client's side of memcached's text protocol: bytes in, bytes out. It knows nothing of sockets.
// (doc/protocol.txt of memcached; its binary and its meta commands are not there.)
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "kv/store.hpp"

namespace kv {

// What `stats` tells of all sessions.
struct Service {
  explicit Service(Store& store_, unsigned threads_) : store(store_), threads(threads_) {}
  Store& store;
  const unsigned threads;
  const std::int64_t started = store.now();
  std::atomic<std::uint64_t> connections{0}, connections_ever{0};
};

class Session {
 public:
  // Sends bytes to the client; false when it is gone.
  using Send = std::function<bool(std::string_view)>;

  Session(Service& service, Send send) : service_(service), send_(std::move(send)) {}

  // What the client has sent: does all that is complete, and sends the answers. False: the connection is to be
  // closed.
  bool consume(std::string_view bytes);

 private:
  using Words = std::span<const std::string_view>;
  struct Storage {  // a storage command whose data is not all there yet
    Mode mode;
    std::string key;
    std::uint32_t flags;
    std::int64_t expires;
    std::size_t bytes;
    std::uint64_t id;
    bool quiet;
  };

  bool step();
  bool take_line();
  bool take_data();
  bool command(std::string_view line);
  void get(Words keys, bool with_id);
  void begin_storage(Mode mode, Words words);
  void remove(Words words);
  void touch(Words words);
  void arithmetic(Words words, bool down);
  void flush(Words words);
  void verbosity(Words words);
  void stats(Words words);
  void say(std::string_view text, bool quiet = false);
  bool send();

  Service& service_;
  const Send send_;
  std::string input_, output_;
  std::size_t at_ = 0;          // of input_: what was done with
  std::size_t to_skip_ = 0;     // of a value that is refused
  bool skipping_line_ = false;  // its rest
  std::optional<Storage> storage_;
  bool gone_ = false;
};

}  // namespace kv
