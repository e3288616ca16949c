// One connection at the server: bytes in, replies out, never blocking, in bounded memory. Owned and driven by one
// worker thread at a time.
//
// Pages are sent straight from the arena and received straight into it. A client that does not read its replies
// stops being read from: what a connection holds is bounded by kReplyPagesMax whatever the client does.
#pragma once

#include <sys/uio.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "far/tcp/handshake.hpp"
#include "far/tcp/socket.hpp"
#include "server/computer.hpp"
#include "server/server.hpp"
#include "server/session.hpp"

namespace hinterland {

// What all connections and workers of a server share.
struct ServerState {
  ServerOptions options;
  far::SecretKey key;
  std::unique_ptr<Arena> arena;
  std::unique_ptr<AddressBook> addresses;
  std::unique_ptr<SessionTable> sessions;
  std::unique_ptr<OperatorProcess> operators;  // nullptr: there are none
  // After the arena, whose pages their jobs hold. An operator may take long: its jobs wait for each other alone.
  Computer computer, operator_computer;
  int keeper_event = -1;  // eventfd: a session may have become deserted

  // Figures; relaxed.
  std::atomic<std::uint64_t> accepted{0};   // connections so far; their numbers
  std::atomic<std::uint64_t> joined{0};     // connections that have joined a session; guards a limit
  std::atomic<std::uint64_t> strangers{0};  // see Strangers
  std::atomic<std::uint64_t> connections{0}, requests{0}, pages_read{0}, ranges_read{0}, pages_written{0},
      pages_discarded{0}, pages_computed{0}, handshakes_refused{0}, connections_cut{0};
};

inline void add(std::atomic<std::uint64_t>& figure, std::uint64_t amount) {
  figure.fetch_add(amount, std::memory_order_relaxed);
}

class Connection {
 public:
  Connection(ServerState& state, int fd, const far::Endpoint& peer);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Does what can be done now. False: close it.
  bool drive();

  int descriptor() const { return fd_; }
  // What is computed for this connection is told there: the thread that drives it. Not while it computes().
  void tell_at(int event) { event_ = event; }
  // Or has something to go on with, which a socket that can be written to is a reminder of.
  bool wants_to_write() const { return !parts_.empty() || discarding() || handshake_output(); }
  bool joined() const { return session_ != nullptr && !waiting_; }
  bool introduced() const { return proved_ || handshake_.introduced(); }
  // Where there is no key, whoever joins has shown as much as anybody can.
  bool proved() const { return proved_ && (joined() || !state_.key.empty()); }
  // A job of it is under way, and nothing else is done meanwhile: to be driven when its event was told.
  bool computes() const { return job_ != nullptr; }
  // To be driven again in a millisecond: the connection that it replaces is not gone yet.
  bool waiting() const { return waiting_; }
  std::uint64_t opened_ns() const { return opened_ns_; }
  const far::Endpoint& peer() const { return peer_; }

 private:
  static constexpr std::size_t kBufferBytes = 4096;  // for what is not pages; small, since pages in it are copied
  static_assert(kBufferBytes >= far::wire::kRequestPrefixMax);
  static constexpr std::size_t kRepliesMax = 128;
  static constexpr std::size_t kReplyPagesMax = 256;

  bool handshake_output() const { return !session_ && !handshake_.output().empty(); }
  bool drive_handshake();
  bool send_handshake();
  void refused(const char* why);
  bool flush();  // false: the connection broke
  enum class Received : std::uint8_t { nothing, bytes, end };
  Received receive();
  bool serve();
  bool parse();  // false: the client broke the protocol
  bool room_for_replies() const {
    return replies_used_ < kRepliesMax && held_.size() + far::wire::kPagesMax <= kReplyPagesMax;
  }

  // connection_requests.cpp
  bool on_request(const far::wire::Header& request, std::span<const std::byte> list);
  bool on_session(const far::wire::Header& request, std::span<const std::byte> body);
  bool try_attach();
  bool on_read(const far::wire::Header& request, std::span<const far::wire::PageNumber> pages);
  bool on_read_ranges(const far::wire::Header& request, std::span<const far::wire::Range> ranges);
  bool on_write(const far::wire::Header& request, std::span<const far::wire::PageNumber> pages);
  bool on_discard(const far::wire::Header& request, std::span<const far::wire::Run> runs);
  bool on_compute(const far::wire::Header& request, std::span<const std::byte> body);
  bool on_find_operator(const far::wire::Header& request, std::span<const std::byte> body);
  bool on_apply(const far::wire::Header& request, std::span<const std::byte> body);
  bool on_compose(const far::wire::Header& request, std::span<const std::byte> body);
  far::wire::Code prepare_composition(ComputeJob& job, std::span<const far::wire::PageNumber> pages,
                                      std::span<const far::wire::Piece> pieces);
  bool on_patch(const far::wire::Header& request, std::span<const std::byte> body);
  far::wire::Code prepare_patching(ComputeJob& job, std::span<const far::wire::Patched> pages);
  far::wire::Code hold_targets(ComputeJob& job, std::span<const far::wire::PageNumber> pages,
                               std::span<const far::wire::Piece> sources);
  far::wire::Code prepare_computation(ComputeJob& job, std::span<const far::wire::Piece> pieces);
  far::wire::Code prepare_application(ComputeJob& job, std::uint32_t field, std::span<const far::wire::Piece> pieces,
                                      std::span<const far::wire::Word> words);
  far::wire::Code hold_pieces(ComputeJob& job, std::span<const far::wire::Piece> pieces);
  void begin(std::shared_ptr<ComputeJob> job, far::wire::Code code, Computer& computer);
  bool take_results();
  bool discarding() const { return discards_next_ < discards_.size(); }
  bool discard_some();
  void reply(const far::wire::Header& header);
  std::size_t take_from_buffer();
  void written(std::size_t bytes);

  ServerState& state_;
  int fd_;
  far::Endpoint peer_;
  std::uint64_t opened_ns_;
  std::uint64_t number_;  // ascends from connection to connection
  far::wire::ServerHandshake handshake_;
  bool proved_ = false;

  std::shared_ptr<AddressAccount> address_;  // from the proof on
  std::shared_ptr<Session> session_;
  std::uint64_t channel_ = 0;
  bool attached_ = false, waiting_ = false, leaving_ = false;
  far::wire::Header session_request_{};

  alignas(8) std::array<std::byte, kBufferBytes> buffer_;
  std::size_t first_ = 0, end_ = 0;  // received and not yet parsed

  // The write whose pages are coming.
  far::wire::Header write_reply_{};
  std::vector<HeldPage> write_pages_;
  std::vector<std::byte*> write_targets_;
  std::size_t write_have_ = 0;            // bytes
  std::unique_ptr<std::byte[]> scratch_;  // takes pages that must not be stored

  // The discard that is under way, and what is left of its runs from discards_next_ on.
  far::wire::Header discard_reply_{};
  std::uint64_t discard_stamp_ = 0;
  std::vector<far::wire::Run> discards_;
  std::size_t discards_next_ = 0;

  // What is computed now, and then what was, until its results are sent.
  int event_ = -1;
  far::wire::Header compute_request_{};
  std::shared_ptr<ComputeJob> job_, results_;

  // Replies that are not yet sent; all are dropped together when the last byte is out.
  std::array<far::wire::Header, kRepliesMax> replies_;
  std::size_t replies_used_ = 0;
  std::vector<HeldPage> held_;
  std::vector<iovec> parts_;
  std::size_t parts_sent_ = 0;
};

}  // namespace hinterland
