#include "far/tcp/handshake.hpp"

#include <sodium.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/check.hpp"

namespace hinterland::far::wire {
namespace {

constexpr const char* kClientLabel = "hinterland client";
constexpr const char* kServerLabel = "hinterland server";
constexpr const char* kWelcomeLabel = "hinterland welcome";

bool magic_may_become(const Magic& have, std::size_t bytes, const Magic& wanted) {
  return std::memcmp(have.data(), wanted.data(), std::min(bytes, wanted.size())) == 0;
}

bool equal_in_constant_time(const Mac& left, const Mac& right) {
  return sodium_memcmp(left.data(), right.data(), left.size()) == 0;
}

template <std::size_t N>
void append(std::array<std::byte, N>& buffer, std::size_t& size, std::span<const std::byte> bytes) {
  HL_CHECK_OP(size + bytes.size(), <=, N);
  std::memcpy(buffer.data() + size, bytes.data(), bytes.size());
  size += bytes.size();
}

}  // namespace

Mac proof_of(const SecretKey& key, const char* label, const ClientHello& client, const ServerHello& server) {
  crypto_auth_hmacsha256_state state;
  Mac mac;
  crypto_auth_hmacsha256_init(&state, key.bytes().data(), key.bytes().size());
  // The label with its end: no label is the beginning of another's input.
  crypto_auth_hmacsha256_update(&state, reinterpret_cast<const unsigned char*>(label), std::strlen(label) + 1);
  crypto_auth_hmacsha256_update(&state, reinterpret_cast<const unsigned char*>(&client), sizeof client);
  crypto_auth_hmacsha256_update(&state, reinterpret_cast<const unsigned char*>(&server), sizeof server);
  crypto_auth_hmacsha256_final(&state, mac.data());
  sodium_memzero(&state, sizeof state);
  return mac;
}

// --- client -----------------------------------------------------------------------------------------------------

void ClientHandshake::start(const SecretKey& key, Type session, const SessionRequest& request) {
  *this = ClientHandshake();
  key_ = &key;
  session_type_ = session;
  request_ = request;
  hello_.magic = kClientMagic;
  hello_.version = kVersion;
  hello_.flags = key.empty() ? std::uint16_t{0} : kFlagKey;
  randombytes_buf(hello_.nonce.data(), hello_.nonce.size());
  queue(bytes_of(hello_));
}

std::span<const std::byte> ClientHandshake::output() const {
  return std::span(output_).subspan(output_sent_, output_size_ - output_sent_);
}

void ClientHandshake::queue(std::span<const std::byte> bytes) {
  if (output_sent_ == output_size_) output_sent_ = output_size_ = 0;
  append(output_, output_size_, bytes);
}

void ClientHandshake::queue_session() {
  stage_ = Stage::session;
  queue(bytes_of(make_request(session_type_, 0, 0)));
  queue(bytes_of(request_));
}

std::span<std::byte> ClientHandshake::input() {
  std::span<std::byte> whole;
  switch (stage_) {
    case Stage::hello:
      whole = std::as_writable_bytes(std::span(&server_hello_, 1));
      break;
    case Stage::proof:
    case Stage::welcome:
      whole = std::as_writable_bytes(std::span(&proof_, 1));
      break;
    case Stage::session:
      if (input_have_ < sizeof session_header_) {
        whole = std::as_writable_bytes(std::span(&session_header_, 1));
        break;
      }
      return std::as_writable_bytes(std::span(&session_, 1)).subspan(input_have_ - sizeof session_header_);
    case Stage::done:
      return {};
  }
  return whole.subspan(input_have_);
}

Step ClientHandshake::received(std::size_t bytes) {
  input_have_ += bytes;
  switch (stage_) {
    case Stage::hello:
      return on_hello();
    case Stage::proof:
      return on_proof();
    case Stage::welcome:
      return on_welcome();
    case Stage::session:
      return on_session();
    case Stage::done:
      break;
  }
  return Step::done;
}

Step ClientHandshake::fail(int code, const char* what, const char* remedy) {
  failure_ = {code, what, remedy};
  return Step::failed;
}

Step ClientHandshake::refuse(Refusal refusal) {
  switch (refusal) {
    case Refusal::version:
      fail(EPROTONOSUPPORT, "speaks another version of the protocol",
           "install the same version of hinterland on both machines");
      failure_.server_version = server_hello_.version;
      return Step::failed;
    case Refusal::key_missing:
      return fail(EACCES, "asks for a key, and none was given", "give the server's key file with --key-file");
    case Refusal::key_unasked:
      return fail(EACCES, "has no key, but one was given: whoever answers there cannot prove that it is your server",
                  "start the server with the same --key-file, or leave the key away");
    case Refusal::key_wrong:
      return fail(EACCES, "does not accept the key", "use the same key file on both machines");
    case Refusal::none:
      break;
  }
  return fail(EPROTO, "refused for a reason unknown to this version");
}

Step ClientHandshake::on_hello() {
  if (!magic_may_become(server_hello_.magic, input_have_, kServerMagic))
    return fail(EPROTO, "is not a hinterland server: something else answers there", "check host and port");
  if (input_have_ < sizeof server_hello_) return Step::more;
  input_have_ = 0;
  if (server_hello_.version != kVersion) return refuse(Refusal::version);
  if (server_hello_.refusal != 0) return refuse(Refusal{static_cast<std::uint32_t>(server_hello_.refusal)});
  bool asks = (server_hello_.flags & kFlagKey) != 0;
  if (asks && key_->empty()) return refuse(Refusal::key_missing);
  if (!asks && !key_->empty()) return refuse(Refusal::key_unasked);
  if (!asks) {
    queue_session();
    return Step::more;
  }
  stage_ = Stage::proof;
  return Step::more;
}

Step ClientHandshake::on_proof() {
  if (input_have_ < sizeof proof_) return Step::more;
  input_have_ = 0;
  if (proof_.refusal != 0) return refuse(Refusal{static_cast<std::uint32_t>(proof_.refusal)});
  if (!equal_in_constant_time(proof_.mac, proof_of(*key_, kServerLabel, hello_, server_hello_)))
    return fail(EACCES, "has another key, or is not your server", "use the same key file on both machines");
  stage_ = Stage::welcome;
  queue(bytes_of(ClientProof{proof_of(*key_, kClientLabel, hello_, server_hello_)}));
  return Step::more;
}

Step ClientHandshake::on_welcome() {
  if (input_have_ < sizeof proof_) return Step::more;
  input_have_ = 0;
  if (proof_.refusal != 0) return refuse(Refusal{static_cast<std::uint32_t>(proof_.refusal)});
  if (!equal_in_constant_time(proof_.mac, proof_of(*key_, kWelcomeLabel, hello_, server_hello_)))
    return fail(EPROTO, "answers with garbage");
  queue_session();
  return Step::more;
}

Step ClientHandshake::on_session() {
  if (input_have_ < sizeof session_header_) return Step::more;
  if (input_have_ == sizeof session_header_) {
    Header header;
    if (parse_reply(bytes_of(session_header_), &header) != Fault::none || header.id != 0 ||
        header.type != (static_cast<std::uint16_t>(session_type_) | kReplyBit))
      return fail(EPROTO, "answers with garbage");
    session_code_ = Code{static_cast<std::uint32_t>(header.status)};
    if (session_code_ == Code::session_unknown)
      return fail(ESTALE, "no longer has this program's memory (it was restarted, or gave up waiting)");
    if (session_code_ == Code::too_many) {
      fail(EMFILE, "has reached its limit of clients or connections",
           "raise it where hinterland serve runs: --clients, --connections, --client-connections");
      failure_.passing = true;  // others go
      return Step::failed;
    }
    if (session_code_ == Code::no_space) return fail(ENOSPC, "has no memory left");
    if (session_code_ != Code::ok) return fail(error_of(session_code_), "refused the session");
    return Step::more;
  }
  if (input_have_ < sizeof session_header_ + sizeof session_) return Step::more;
  if (session_.page_bytes != kPageSize || session_.slab_pages != kSlabPages || session_.slabs_max > kSlabNumbers)
    return fail(EPROTO, "uses other page or slab sizes");
  stage_ = Stage::done;
  return Step::done;
}

// --- server -----------------------------------------------------------------------------------------------------

void ServerHandshake::start(const SecretKey& key) {
  *this = ServerHandshake();
  key_ = &key;
}

std::span<const std::byte> ServerHandshake::output() const {
  return std::span(output_).subspan(output_sent_, output_size_ - output_sent_);
}

void ServerHandshake::queue(std::span<const std::byte> bytes) {
  if (output_sent_ == output_size_) output_sent_ = output_size_ = 0;
  append(output_, output_size_, bytes);
}

std::span<std::byte> ServerHandshake::input() {
  std::span<std::byte> whole =
      proving_ ? std::as_writable_bytes(std::span(&proof_, 1)) : std::as_writable_bytes(std::span(&client_hello_, 1));
  return whole.subspan(input_have_);
}

Step ServerHandshake::received(std::size_t bytes) {
  input_have_ += bytes;
  return proving_ ? on_proof() : on_hello();
}

Step ServerHandshake::fail(const char* what) {
  failure_ = what;
  return Step::failed;
}

Step ServerHandshake::on_hello() {
  // No answer to strangers: whatever it is, our bytes would only confuse it.
  if (!magic_may_become(client_hello_.magic, input_have_, kClientMagic)) return fail("is not a hinterland client");
  if (input_have_ < sizeof client_hello_) return Step::more;
  input_have_ = 0;
  bool has_key = (client_hello_.flags & kFlagKey) != 0;
  Refusal refusal = Refusal::none;
  const char* why = "";
  if (client_hello_.version != kVersion)
    refusal = Refusal::version, why = "speaks another version of the protocol";
  else if (!key_->empty() && !has_key)
    refusal = Refusal::key_missing, why = "has no key";
  else if (key_->empty() && has_key)
    refusal = Refusal::key_unasked, why = "uses a key, and this server has none";
  hello_.magic = kServerMagic;
  hello_.version = kVersion;
  hello_.flags = key_->empty() ? std::uint16_t{0} : kFlagKey;
  hello_.refusal = static_cast<std::uint32_t>(refusal);
  randombytes_buf(hello_.nonce.data(), hello_.nonce.size());
  queue(bytes_of(hello_));
  if (refusal != Refusal::none) return fail(why);
  if (key_->empty()) return Step::done;
  ServerProof proof{};
  proof.mac = proof_of(*key_, kServerLabel, client_hello_, hello_);
  queue(bytes_of(proof));
  proving_ = true;
  return Step::more;
}

Step ServerHandshake::on_proof() {
  if (input_have_ < sizeof proof_) return Step::more;
  input_have_ = 0;
  ServerProof proof{};
  bool good = equal_in_constant_time(proof_.mac, proof_of(*key_, kClientLabel, client_hello_, hello_));
  if (good)
    proof.mac = proof_of(*key_, kWelcomeLabel, client_hello_, hello_);
  else
    proof.refusal = static_cast<std::uint32_t>(Refusal::key_wrong);
  queue(bytes_of(proof));
  return good ? Step::done : fail("has a wrong key");
}

}  // namespace hinterland::far::wire
