// The key exchange, both real sides with somebody between them who passes on, changes, drops, repeats and adds bytes.
//
// What must hold whatever he does: without the key no side is ever satisfied; with it, a side is satisfied only when
// both have seen the same hellos and the proof that the other really sent. Nobody talks himself into a session.
#include <vector>

#include "base/testing/fuzz_input.hpp"
#include "far/tcp/fuzz_random.hpp"
#include "far/tcp/handshake.hpp"

namespace hinterland::far::wire {
namespace {

using Bytes = std::vector<std::byte>;

const SecretKey& key_number(int number) {
  static const SecretKey none;
  static const SecretKey first(std::span(reinterpret_cast<const unsigned char*>("the first key of all"), 20));
  static const SecretKey second(std::span(reinterpret_cast<const unsigned char*>("the second key of all"), 21));
  return number == 0 ? none : number == 1 ? first : second;
}

// One direction: what was sent, and what the other side was given to read.
struct Line {
  Bytes sent, given;
  std::size_t taken = 0;     // of sent, by him in the middle
  std::size_t consumed = 0;  // of given, by the reader
};

bool same_start(const Line& line, std::size_t bytes) {
  return line.sent.size() >= bytes && line.given.size() >= bytes &&
         std::equal(line.sent.begin(), line.sent.begin() + static_cast<std::ptrdiff_t>(bytes), line.given.begin());
}

template <typename Side>
void collect(Side& side, Line& out) {
  auto bytes = side.output();
  out.sent.insert(out.sent.end(), bytes.begin(), bytes.end());
  side.sent(bytes.size());
}

// Lets a side read what it was given. What it came to; `more` when it waits.
template <typename Side>
Step feed(Side& side, Line& in) {
  while (in.consumed < in.given.size()) {
    auto room = side.input();
    HL_CHECK(!room.empty());
    std::size_t size = std::min(room.size(), in.given.size() - in.consumed);
    std::copy_n(in.given.begin() + static_cast<std::ptrdiff_t>(in.consumed), size, room.begin());
    in.consumed += size;
    if (Step step = side.received(size); step != Step::more) return step;
  }
  return Step::more;
}

// One act of the man in the middle on one direction.
void meddle(hinterland::testing::FuzzInput& input, Line& line) {
  auto act = input.take<std::uint8_t>();
  std::size_t left = line.sent.size() - line.taken;
  std::size_t count = std::min<std::size_t>(left, input.take<std::uint8_t>());
  auto from = line.sent.begin() + static_cast<std::ptrdiff_t>(line.taken);
  Bytes part(from, from + static_cast<std::ptrdiff_t>(count));
  line.taken += count;
  if (act % 8 == 1 && !part.empty()) part[input.take<std::uint8_t>() % part.size()] ^= input.take<std::byte>();
  if (act % 8 == 2) part.clear();
  if (act % 8 == 3) line.taken -= count;  // sent again later
  if (act % 8 == 4) {
    auto own = input.take_bytes(count == 0 ? act / 8 : count);
    auto bytes = std::as_bytes(own);
    part.assign(bytes.begin(), bytes.end());
  }
  line.given.insert(line.given.end(), part.begin(), part.end());
}

void answer_session(hinterland::testing::FuzzInput& input, Line& to_client) {
  Header reply = make_reply(make_request(Type::session_open, 0, 0), Code::ok);
  SessionReply session{};
  session.slabs_max = input.take<std::uint8_t>() + 1u;
  session.slab_pages = kSlabPages;
  session.page_bytes = static_cast<std::uint32_t>(kPageSize);
  for (auto bytes : {bytes_of(reply), bytes_of(session)})
    to_client.sent.insert(to_client.sent.end(), bytes.begin(), bytes.end());
}

void exchange(hinterland::testing::FuzzInput& input) {
  int keys = input.take<std::uint8_t>() % 9;
  const SecretKey &client_key = key_number(keys % 3), &server_key = key_number(keys / 3);
  ClientHandshake client;
  ServerHandshake server;
  client.start(client_key, Type::session_open, {});
  server.start(server_key);
  Line up, down;
  Step client_step = Step::more, server_step = Step::more;
  for (int acts = 0; acts < 64 && (client_step == Step::more || server_step == Step::more); ++acts) {
    collect(client, up);
    collect(server, down);
    bool quiet = input.empty();  // the fuzzer has no more ideas: everything passes
    for (Line* line : {&up, &down}) {
      if (!quiet) meddle(input, *line);
      if (quiet)
        line->given.insert(line->given.end(), line->sent.begin() + static_cast<std::ptrdiff_t>(line->taken),
                           line->sent.end());
      if (quiet) line->taken = line->sent.size();
    }
    if (server_step == Step::more && (server_step = feed(server, up)) == Step::done) {
      HL_CHECK(server_key.empty() || keys % 3 == keys / 3);  // a server without a key takes everybody
      if (!server_key.empty())
        HL_CHECK(same_start(up, sizeof(ClientHello) + sizeof(ClientProof)) && same_start(down, sizeof(ServerHello)));
      collect(server, down);
      answer_session(input, down);
    }
    if (client_step == Step::more && (client_step = feed(client, down)) == Step::done) {
      if (client_key.empty()) continue;
      HL_CHECK(keys % 3 == keys / 3 && server_step == Step::done);
      HL_CHECK(same_start(up, sizeof(ClientHello)) && same_start(down, sizeof(ServerHello) + 8 - 4));
      HL_CHECK(client.session().slabs_max <= kSlabNumbers);
    }
  }
}

}  // namespace
}  // namespace hinterland::far::wire

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (!hinterland::far::testing::restart_random()) return -1;
  hinterland::testing::FuzzInput input(data, size);
  hinterland::far::wire::exchange(input);
  return 0;
}
