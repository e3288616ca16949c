// Feeds bytes to everything that parses bytes of a peer, and checks what must hold whatever they are. Driven by
// wire_fuzz.cpp and, with random bytes, by wire_test.cpp. The first byte chooses which parser.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <span>

#include "base/check.hpp"
#include "far/tcp/handshake.hpp"
#include "far/tcp/wire.hpp"

namespace hinterland::far::wire {

// Hands the bytes to a handshake in the pieces it asks for; a handshake that succeeds without the key is a bug.
template <typename Handshake>
void exercise_handshake(Handshake& handshake, std::span<const std::byte> bytes, bool needs_key) {
  while (!bytes.empty()) {
    handshake.sent(handshake.output().size());
    std::span<std::byte> input = handshake.input();
    HL_CHECK(!input.empty());
    std::size_t size = std::min(input.size(), bytes.size());
    std::copy_n(bytes.begin(), size, input.begin());
    bytes = bytes.subspan(size);
    Step step = handshake.received(size);
    if (step == Step::done) HL_CHECK(!needs_key);
    if (step != Step::more) return;
  }
}

// As the server reads its stream: header, then list, then (for writes) pages, which are skipped.
inline void exercise_requests(std::span<const std::byte> bytes) {
  while (bytes.size() >= sizeof(Header)) {
    Header header;
    if (parse_request(bytes, &header) != Fault::none) return;
    std::size_t list = list_bytes(header);
    HL_CHECK(list <= header.length && sizeof header + list <= kRequestPrefixMax);
    if (bytes.size() < sizeof header + list) return;
    auto body = bytes.subspan(sizeof header, list);
    Type type{static_cast<std::uint16_t>(header.type)};
    if (type == Type::read || type == Type::write) {
      std::span pages(reinterpret_cast<const PageNumber*>(body.data()), header.count);
      HL_CHECK_OP(pages.size_bytes(), ==, body.size());
      if (check_pages(pages) == Fault::none)
        for (const PageNumber& page : pages) HL_CHECK_OP(FarPage{page}.slab(), <, kSlabNumbers);
      static_cast<void>(echo_of(pages));
    } else if (type == Type::discard) {
      std::span runs(reinterpret_cast<const Run*>(body.data()), header.count);
      HL_CHECK_OP(runs.size_bytes(), ==, body.size());
      if (check_runs(runs) == Fault::none)
        for (const Run& run : runs)
          HL_CHECK_OP(FarPage{run.first}.slab(), ==, FarPage{run.first + run.count - 1}.slab());
    }
    if (type == Type::read_ranges) {
      std::span ranges(reinterpret_cast<const Range*>(body.data()), header.count);
      HL_CHECK_OP(ranges.size_bytes(), ==, body.size());
      std::size_t together = 0;
      if (check_ranges(ranges, header.slab) == Fault::none) {
        for (const Range& range : ranges) {
          HL_CHECK_OP(FarPage{range_page(range)}.slab(), <, kSlabNumbers);
          HL_CHECK_OP(range_offset(range) + range_bytes(range), <=, kPageSize);
          together += range_bytes(range);
        }
        HL_CHECK_OP(together, ==, make_reply(header, Code::ok).length);
      }
    }
    if (type == Type::compute) {
      std::span pieces(reinterpret_cast<const Piece*>(body.data() + sizeof(ComputeRequest)), header.count);
      HL_CHECK_OP(sizeof(ComputeRequest) + pieces.size_bytes(), ==, body.size());
      if (check_pieces(pieces) == Fault::none)
        for (const Piece& piece : pieces) HL_CHECK_OP(std::size_t{piece.offset} + piece.bytes, <=, kPageSize);
      static_cast<void>(echo_of(pieces));
    }
    if (type == Type::apply) {
      HL_CHECK_OP(sizeof(ApplyRequest) + (sizeof(Piece) + sizeof(Word)) * header.count, ==, body.size());
      HL_CHECK(applied_result_bytes(header.slab) != 0 && operator_number(header.slab) < kOperatorsMax);
    }
    if (type == Type::compose) {
      const std::uint32_t element = composed_element_bytes(header.slab);
      const std::size_t pages_bytes = composed_pages(header.slab) * sizeof(PageNumber);
      std::span pages(reinterpret_cast<const PageNumber*>(body.data()), composed_pages(header.slab));
      std::span pieces(reinterpret_cast<const Piece*>(body.data() + pages_bytes), header.count);
      const auto masks = body.subspan(pages_bytes + pieces.size_bytes());
      HL_CHECK_OP(masks.size(), ==, std::size_t{mask_bytes(element)} * header.count);
      for (std::size_t i = 0; check_pieces(pieces) == Fault::none && i < pieces.size(); ++i) {
        const auto mask = masks.subspan(i * mask_bytes(element), mask_bytes(element));
        if (const auto chosen = chosen_bytes(pieces[i], element, mask)) HL_CHECK_OP(*chosen, <=, pieces[i].bytes);
      }
      static_cast<void>(echo_of(pages, pieces));
    }
    if (type == Type::patch) {
      std::span pages(reinterpret_cast<const Patched*>(body.data()), composed_pages(header.slab));
      const std::size_t element = sizeof(Place) + composed_element_bytes(header.slab);
      HL_CHECK_OP(pages.size_bytes() + element * header.count, ==, body.size());
      static_cast<void>(check_patched(pages));
      static_cast<void>(echo_of(pages));
    }
    Header reply = make_reply(header, Code::ok), parsed;
    HL_CHECK(parse_reply(bytes_of(reply), &parsed) == Fault::none);
    bytes = bytes.subspan(std::min(bytes.size(), sizeof header + header.length));
  }
}

inline void exercise_replies(std::span<const std::byte> bytes) {
  while (bytes.size() >= sizeof(Header)) {
    Header header;
    if (parse_reply(bytes, &header) != Fault::none) return;
    HL_CHECK_OP(header.length, <=, kPagesMax * kPageSize);
    static_cast<void>(error_of(Code{static_cast<std::uint32_t>(header.status)}));
    bytes = bytes.subspan(std::min(bytes.size(), sizeof header + header.length));
  }
}

inline void exercise(std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  static const SecretKey none;
  static const SecretKey key(std::span(reinterpret_cast<const unsigned char*>("a key of the fuzzer"), 19));
  int which = std::to_integer<int>(bytes[0]) % 6;
  bytes = bytes.subspan(1);
  if (which < 2) {
    ClientHandshake client;
    client.start(which == 0 ? none : key, Type::session_open, {});
    exercise_handshake(client, bytes, which == 1);
  } else if (which < 4) {
    ServerHandshake server;
    server.start(which == 2 ? none : key);
    exercise_handshake(server, bytes, which == 3);
  } else if (which == 4) {
    exercise_requests(bytes);
  } else {
    exercise_replies(bytes);
  }
}

}  // namespace hinterland::far::wire
