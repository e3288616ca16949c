// The first bytes of a connection: who are you, which version, and proof of the key. Both sides as pure state
// machines over bytes: no sockets, so that tests and fuzzers can drive them.
//
//   client                                     server
//   ClientHello  magic, version, nonce   ->
//                                        <-    ServerHello  magic, version, nonce, or why not
//                                        <-    ServerProof  HMAC(key, label, hellos)     (these three only
//   ClientProof  HMAC(key, label2, hellos) ->                                              when both have a key)
//                                        <-    ServerProof  HMAC(key, label3, hellos)     or why not
//   frames (wire.hpp), the first of which is session_open or session_join
//
// Magic, version and flags keep their places in all versions, so that two versions can tell each other apart. Both
// nonces go into all proofs, and the labels differ: neither an old proof nor the peer's own can be played back.
// The server proves itself first: somebody who only pretends to be the server, and waits for clients, learns nothing
// with which he could try keys out. Whoever calls the server does; a key of 32 random bytes is not found by trying.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "far/tcp/key_file.hpp"
#include "far/tcp/wire.hpp"

namespace hinterland::far::wire {

using Magic = std::array<unsigned char, 8>;
// CR, LF and ^Z as in PNG: a transfer that meddles with text breaks the magic.
inline constexpr Magic kClientMagic = {'H', 'L', 'f', 'a', 'r', '\r', '\n', 0x1a};
inline constexpr Magic kServerMagic = {'H', 'L', 'm', 'e', 'm', '\r', '\n', 0x1a};
inline constexpr std::uint16_t kFlagKey = 1;  // client: has a key. Server: asks for one

enum class Refusal : std::uint32_t {
  none = 0,
  version = 1,      // the server speaks another version (its own is in its hello)
  key_missing = 2,  // the server asks for a key and the client has none
  key_unasked = 3,  // the client has a key and the server has none
  key_wrong = 4,
};
inline constexpr std::uint32_t kRefusals = 5;

using Nonce = std::array<unsigned char, 32>;
using Mac = std::array<unsigned char, 32>;  // HMAC-SHA256

struct ClientHello {
  Magic magic;
  Le<std::uint16_t> version;
  Le<std::uint16_t> flags;
  Le<std::uint32_t> reserved;
  Nonce nonce;
};
static_assert(sizeof(ClientHello) == 48 && offsetof(ClientHello, version) == 8 && offsetof(ClientHello, nonce) == 16);

struct ServerHello {
  Magic magic;
  Le<std::uint16_t> version;
  Le<std::uint16_t> flags;
  Le<std::uint32_t> refusal;
  Nonce nonce;
};
static_assert(sizeof(ServerHello) == 48 && offsetof(ServerHello, refusal) == 12);

struct ClientProof {
  Mac mac;
};
static_assert(sizeof(ClientProof) == 32);

struct ServerProof {
  Le<std::uint32_t> refusal;
  Le<std::uint32_t> reserved;
  Mac mac;
};
static_assert(sizeof(ServerProof) == 40 && offsetof(ServerProof, mac) == 8);

// Why a handshake failed, for people. `what` follows the name of the server; `remedy` is "" when there is none.
struct HandshakeFailure {
  int code = 0;  // errno
  const char* what = "";
  const char* remedy = "";
  std::uint16_t server_version = 0;  // with Refusal::version
  // The next attempt may end otherwise: the server is busy, or nobody could be reached just now. False for a refusal
  // that stays one, such as another key or version.
  bool passing = false;
};

enum class Step : std::uint8_t { more, done, failed };

// Client side, through the reply to session_open or session_join. Not thread-safe; allocates nothing. start() makes a
// fresh nonce; then repeatedly: send output() (sent()), receive into input() (received()), until done or failed.
class ClientHandshake {
 public:
  // `key` may be empty and must outlive the handshake. sodium_init() must have been called.
  void start(const SecretKey& key, Type session, const SessionRequest& request);

  std::span<const std::byte> output() const;
  void sent(std::size_t bytes) { output_sent_ += bytes; }
  // Exactly what the server may send next; never more, so that no byte of a later message is taken.
  std::span<std::byte> input();
  Step received(std::size_t bytes);

  const HandshakeFailure& failure() const { return failure_; }
  Code refused_session() const { return session_code_; }  // with failure(): why, when the session was refused
  const SessionReply& session() const { return session_; }

 private:
  enum class Stage : std::uint8_t { hello, proof, welcome, session, done };
  Step on_hello();
  Step on_proof();
  Step on_welcome();
  Step on_session();
  Step fail(int code, const char* what, const char* remedy = "");
  Step refuse(Refusal refusal);
  void queue(std::span<const std::byte> bytes);
  void queue_session();

  const SecretKey* key_ = nullptr;
  Stage stage_ = Stage::hello;
  Type session_type_ = Type::session_open;
  SessionRequest request_{};
  ClientHello hello_{};
  ServerHello server_hello_{};
  ServerProof proof_{};
  Header session_header_{};
  SessionReply session_{};
  Code session_code_ = Code::ok;
  std::size_t input_have_ = 0;
  std::array<std::byte, 160> output_{};
  std::size_t output_size_ = 0, output_sent_ = 0;
  HandshakeFailure failure_;
};

// Server side, through the proofs. The same protocol of use.
class ServerHandshake {
 public:
  void start(const SecretKey& key);
  std::span<const std::byte> output() const;
  void sent(std::size_t bytes) { output_sent_ += bytes; }
  std::span<std::byte> input();
  bool introduced() const { return proving_; }  // a hello came that is in order, and a proof is awaited
  // failed: send what output() still holds (it tells the client why), then close.
  Step received(std::size_t bytes);
  const char* failure() const { return failure_; }

 private:
  Step on_hello();
  Step on_proof();
  Step fail(const char* what);
  void queue(std::span<const std::byte> bytes);

  const SecretKey* key_ = nullptr;
  bool proving_ = false;
  ClientHello client_hello_{};
  ServerHello hello_{};
  ClientProof proof_{};
  std::size_t input_have_ = 0;
  // All it ever says: a peer that reads nothing and sends a proof all the same must not make it overflow.
  std::array<std::byte, sizeof(ServerHello) + 2 * sizeof(ServerProof)> output_{};
  std::size_t output_size_ = 0, output_sent_ = 0;
  const char* failure_ = "";
};

// What one side sends to show that it has the key. The labels: "hinterland server", "hinterland client", and
// "hinterland welcome" for the server's second, which says that it has seen the client's.
Mac proof_of(const SecretKey& key, const char* label, const ClientHello& client, const ServerHello& server);

}  // namespace hinterland::far::wire
