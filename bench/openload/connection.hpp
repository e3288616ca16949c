// One connection to Redis over a UNIX socket, never waited for: requests are queued and sent as the socket takes
// them, replies come back in the order of the requests.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

namespace openload {

struct Pending {
  std::uint64_t due_ns;  // when it should have been sent, whatever was in its way
  std::uint64_t key;
  bool get;
};

class Connection {
 public:
  // Throws std::runtime_error when nobody listens at `path`; so do the calls below when the connection is lost.
  explicit Connection(const std::string& path);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  int descriptor() const { return descriptor_; }
  bool wants_to_send() const { return sent_ < out_.size(); }
  std::size_t waiting() const { return pending_.size(); }

  void queue_get(const Pending& pending);
  void queue_set(const Pending& pending, std::string_view value);
  void send_what_goes();
  void receive_what_came();
  // Takes the next whole reply: what it answers, and its text ("+OK" as "OK"), which is valid until the next call of
  // this object. False when there is none. Throws when it is an error or none of the two kinds expected.
  bool next_reply(Pending& answered, std::string_view& text);

 private:
  bool parse(std::size_t& end, std::string_view& text) const;

  int descriptor_;
  std::string out_, in_;
  std::size_t sent_ = 0, taken_ = 0;  // of out_ and in_
  std::deque<Pending> pending_;
};

}  // namespace openload
