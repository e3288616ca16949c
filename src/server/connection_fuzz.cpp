// A server's connection against a client that does anything: requests in any order with any numbers, raw bytes, two
// connections of one session, pages half sent. Beside it lives a victim, with pages of its own at the same server.
//
// What must hold: the victim's pages stay as they are, none of their bytes ever comes back to the attacker, what the
// attacker is given to read is zero or his own, and when he is gone, so are his slabs.
#include <netinet/in.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <vector>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/testing/fuzz_input.hpp"
#include "far/tcp/fuzz_random.hpp"
#include "far/tcp/shared_pages.hpp"
#include "server/connection.hpp"

namespace hinterland {
namespace {

using far::FarPage;
using namespace far::wire;

constexpr std::uint32_t kSlabs = 4;
constexpr std::byte kSecret{0xa5};  // fills the victim's pages
constexpr std::byte kOwn{0x3c};     // fills the attacker's

// Gives back what it is asked to compute on, in part.
void first_bytes(const void*, std::uint64_t word, const void* piece, std::size_t bytes, void* result) {
  std::memcpy(result, piece, std::min<std::size_t>(bytes, 2));
  std::memcpy(static_cast<std::byte*>(result) + 2, &word, 2);
}
constexpr hl_operator kFirstBytes = {HL_OPERATOR_ABI_VERSION, 1, "first", 1, 4, 4, 0, first_bytes};

struct Harness {
  ServerState state;
  std::shared_ptr<Session> victim;
  std::vector<HeldPage> pages;

  Harness() {
    log::set_level(log::Level::quiet);
    auto operators = OperatorProcess::start({{&kFirstBytes, ""}});
    HL_CHECK(operators.has_value());
    state.operators = std::move(*operators);
    auto arena = Arena::create(kSlabs * far::kSlabBytes);
    HL_CHECK(arena.has_value());
    state.arena = std::move(*arena);
    state.addresses = std::make_unique<AddressBook>(AddressLimits{kSlabs, 8, 64});
    state.sessions = std::make_unique<SessionTable>(*state.arena, kSlabs, 8);
    state.keeper_event = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    Code code;
    victim = state.sessions->open(Token{'v'}, state.addresses->of({}), &code);
    HL_CHECK(victim->attach(1, -1, 1, 8) == Session::Attach::done);  // else it would end as deserted
    Header reply = victim->change_slabs(1, make_request(Type::slab_allocate, 0, 1));
    HL_CHECK_OP(static_cast<std::uint32_t>(reply.status), ==, 0u);
    for (std::uint64_t page : {0u, 1u, 2u, 77u, far::kSlabPages - 1}) {
      pages.push_back(victim->hold(FarPage{page}));
      HL_CHECK(pages.back() && pages.back().begin_write(1));
      std::fill_n(pages.back().memory(), kPageSize, kSecret);
    }
  }
  void check_victim() const {
    for (const HeldPage& page : pages)
      HL_CHECK(std::all_of(page.memory(), page.memory() + kPageSize, [](std::byte each) { return each == kSecret; }));
  }
};

// One end of a connection, driven by hand.
class Attacker {
 public:
  explicit Attacker(ServerState& state) : computer_(state.computer), operator_computer_(state.operator_computer) {
    int ends[2];
    HL_CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
    mine_ = ends[0];
    far::Endpoint peer;
    peer.address.ss_family = AF_INET;
    peer.length = sizeof(sockaddr_in);
    connection_ = std::make_unique<Connection>(state, ends[1], peer);
  }
  ~Attacker() { ::close(mine_); }

  bool open() const { return connection_ != nullptr; }
  void send(std::span<const std::byte> bytes) {
    while (!bytes.empty() && open()) {
      ssize_t n = ::send(mine_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n > 0) bytes = bytes.subspan(static_cast<std::size_t>(n));
      drive();
      bool read_any = take_replies();
      if (n <= 0 && !read_any && ++stuck_ > 4) return;  // the server waits, rightly, for something else
    }
  }
  void drive() {
    while (computer_.run_one() || operator_computer_.run_one()) {
    }
    if (open() && !connection_->drive()) connection_.reset();
  }
  // Nothing of the victim may be in what comes: not four bytes of it in a row (a number may hold one or two).
  bool take_replies() {
    std::byte bytes[16384];
    ssize_t n = ::recv(mine_, bytes, sizeof bytes, MSG_DONTWAIT);
    for (ssize_t i = 0; i < n; ++i) {
      secret_run_ = bytes[i] == kSecret ? secret_run_ + 1 : 0;
      HL_CHECK_OP(secret_run_, <, 64);  // longer than any echo of his own numbers
    }
    return n > 0;
  }
  void hang_up() { connection_.reset(); }

 private:
  Computer &computer_, &operator_computer_;
  int mine_;
  std::unique_ptr<Connection> connection_;
  int secret_run_ = 0, stuck_ = 0;
};

using Bytes = std::vector<std::byte>;

void put(Bytes& out, std::span<const std::byte> bytes) { out.insert(out.end(), bytes.begin(), bytes.end()); }

Bytes introduction(testing::FuzzInput& input) {
  ClientHello hello{};
  hello.magic = kClientMagic;
  hello.version = kVersion;
  Bytes out;
  put(out, bytes_of(hello));
  auto how = input.take<std::uint8_t>();
  put(out, bytes_of(make_request(how % 4 == 3 ? Type::session_join : Type::session_open, 0, 0)));
  // A token guessed: the victim's has 16 bytes, of which one is known here.
  SessionRequest request{Token{how % 8 == 7 ? static_cast<unsigned char>('w') : static_cast<unsigned char>('a')},
                         how / 128u};
  put(out, bytes_of(request));
  return out;
}

// Page numbers that are likely to mean something: few slabs, few pages, and now and then any.
std::uint64_t take_page(testing::FuzzInput& input) {
  auto choice = input.take<std::uint8_t>();
  if (choice == 255) return input.take<std::uint64_t>();
  static constexpr std::uint32_t kPages[] = {0, 1, 2, 77, 78, 4094, 4095, 4096};
  return std::uint64_t{choice / 8u % (kSlabs + 1)} * far::kSlabPages + kPages[choice % 8];
}

// Mostly one that makes sense.
ComputeRequest computation(testing::FuzzInput& input) {
  auto how = input.take<std::uint8_t>();
  ComputeRequest request{};
  request.element = static_cast<std::uint16_t>(how % 8);
  request.relation = static_cast<std::uint16_t>(how / 8 % 8);
  if (how >= 192) request.shift = input.take<std::uint8_t>();
  if (how >= 64) request.operand = input.take<std::uint64_t>();
  return request;
}

std::uint64_t checksum_of_pages_of(std::byte fill) {
  std::vector<std::byte> page(kPageSize, fill);
  return far::SharedPages::checksum_of(page.data());
}

// With the checksum of a page of zeros, of the attacker's, of the victim's, or any.
Piece piece(testing::FuzzInput& input, std::uint64_t page) {
  static const std::uint64_t checksums[] = {checksum_of_pages_of(std::byte{0}), checksum_of_pages_of(kOwn),
                                            checksum_of_pages_of(kSecret), 1};
  auto how = input.take<std::uint8_t>();
  Piece made{page, checksums[how % 4], std::uint16_t{0}, std::uint16_t{kPageSize}, 0u};
  if (how >= 64) made.offset = static_cast<std::uint16_t>(how / 64 * 8), made.bytes = std::uint16_t{8};
  if (how >= 240) made.offset = input.take<std::uint16_t>(), made.bytes = input.take<std::uint16_t>();
  return made;
}

// Parts of pages, mostly within them and as long as the header says; `any_length`: as long as the input says.
Bytes ranges(testing::FuzzInput& input, Header header, bool any_length) {
  Bytes list;
  std::uint32_t together = 0;
  for (std::uint16_t i = 0; i < header.count; ++i) {
    const std::uint64_t page = take_page(input) % kPageNumbers;
    const auto how = input.take<std::uint8_t>();
    const std::uint32_t offset = how >= 240 ? input.take<std::uint16_t>() % 4096u : how * 8u;
    const std::uint32_t bytes = how >= 224 ? input.take<std::uint16_t>() % 4096u + 1 : how + 1u;
    put(list, bytes_of(make_range(FarPage{page}, offset, bytes)));
    together += bytes;
  }
  header.slab = any_length ? input.take<std::uint32_t>() : together;
  Bytes out;
  put(out, bytes_of(header));
  put(out, list);
  return out;
}

// Pages of pieces, mostly whole ones, so that they fill the pages; with masks, of which all bits of the piece are
// set.
Bytes composition(testing::FuzzInput& input) {
  const auto how = input.take<std::uint8_t>();
  const std::uint32_t element = how % 3 * 4;
  const auto count = static_cast<std::uint16_t>(how / 4 % 4 + 1);
  const std::uint32_t pages = how >= 224 ? input.take<std::uint8_t>() % 8u : count;
  if (compose_request_bytes(compose_field(pages, element), count) == 0) return {};
  Header header = make_compose_request(compose_field(pages, element), count, input.take<std::uint8_t>());
  header.stamp = input.take<std::uint8_t>();
  Bytes out;
  put(out, bytes_of(header));
  for (std::uint32_t i = 0; i < pages; ++i) put(out, bytes_of(PageNumber{take_page(input)}));
  for (std::uint16_t i = 0; i < count; ++i) put(out, bytes_of(piece(input, take_page(input))));
  for (std::uint16_t i = 0; element != 0 && i < count; ++i)
    out.resize(out.size() + mask_bytes(element), how >= 192 ? std::byte{input.take<std::uint8_t>()} : std::byte{255});
  return out;
}

// Pages that come from others or are filled, and elements, mostly within them.
Bytes patching(testing::FuzzInput& input) {
  const auto how = input.take<std::uint8_t>();
  const std::uint32_t element = how % 2 == 0 ? 4 : 8, pages = how / 2 % 4 + 1u;
  const auto count = static_cast<std::uint16_t>(how / 8 % 8);
  Header header = make_patch_request(compose_field(pages, element), count, input.take<std::uint8_t>());
  header.stamp = input.take<std::uint8_t>();
  Bytes out;
  put(out, bytes_of(header));
  for (std::uint32_t i = 0; i < pages; ++i) {
    const PageNumber page = take_page(input);
    const Piece from = piece(input, take_page(input));
    const bool fills = input.take<std::uint8_t>() % 4 == 0;
    put(out, bytes_of(fills ? Patched{page, kNoPage, 0x3c3c3c3c3c3c3c3cu} : Patched{page, from.page, from.checksum}));
  }
  for (std::uint16_t i = 0; i < count; ++i)
    put(out, bytes_of(Place{how >= 224 ? input.take<std::uint16_t>()
                                       : make_place(i % pages, input.take<std::uint8_t>())}));
  out.resize(out.size() + std::size_t{element} * count, kOwn);
  return out;
}

Bytes request(testing::FuzzInput& input) {
  auto kind = input.take<std::uint8_t>();
  Bytes out;
  if (kind == 14 || kind == 30 || kind == 46) return composition(input);
  if (kind == 62 || kind == 78 || kind == 94) return patching(input);
  if (kind % 16 == 15) {  // any bytes
    put(out, std::as_bytes(input.take_bytes(input.take<std::uint8_t>())));
    return out;
  }
  // 0 to 8, 13 and 14: the first nine; 9 to 12: compute, find_operator, apply, read_ranges.
  Type type{static_cast<std::uint16_t>(kind % 16 < 13 ? kind % 16 + 1 : kind % 16 % 9 + 1)};
  auto count =
      static_cast<std::uint16_t>(kind % 16 < 13 ? input.take<std::uint8_t>() % 8 + 1 : input.take<std::uint8_t>());
  const bool computes = type == Type::compute || type == Type::apply;
  bool counted = type >= Type::discard && type != Type::find_operator;
  Header header = make_request(type, counted ? count : std::uint16_t{0}, input.take<std::uint8_t>());
  if (type == Type::discard || type == Type::write) header.stamp = input.take<std::uint8_t>();
  if (type == Type::slab_release) header.slab = input.take<std::uint8_t>() % 8u;
  if (type == Type::compute) header.slab = input.take<std::uint8_t>() % 10u;
  if (type == Type::apply) header.slab = operator_field(input.take<std::uint8_t>() % 32 == 31, 4);
  if (type == Type::read_ranges) return ranges(input, header, kind / 16 == 15);
  if (kind / 16 == 15) header = input.take<Header>();  // any header, with the body that its type would have
  put(out, bytes_of(header));
  if (type == Type::compute) put(out, bytes_of(computation(input)));
  if (type == Type::apply) put(out, bytes_of(ApplyRequest{}));
  if (type == Type::find_operator)
    put(out, bytes_of(OperatorRequest{{'f', 'i', 'r', 's', 't'}, input.take<std::uint8_t>() % 2u, 1u, 4u, 4u}));
  for (std::uint16_t i = 0; counted && i < count; ++i) {
    std::uint64_t page = take_page(input);
    if (computes) {
      put(out, bytes_of(piece(input, page)));
    } else if (type == Type::discard) {
      put(out, bytes_of(Run{page, input.take<std::uint8_t>(), 0u}));
    } else {
      put(out, bytes_of(PageNumber{page}));
    }
  }
  for (std::uint16_t i = 0; type == Type::apply && i < count; ++i)
    put(out, bytes_of(Word{input.take<std::uint8_t>()}));
  if (type == Type::write)
    out.resize(out.size() + (kind / 16 == 14 ? count * kPageSize / 2 : count * kPageSize), kOwn);
  if (type == Type::session_open || type == Type::session_join) put(out, bytes_of(SessionRequest{}));
  return out;
}

void attack(testing::FuzzInput& input, Harness& harness) {
  std::vector<std::unique_ptr<Attacker>> attackers;
  for (int i = 0; i < 2; ++i) {
    attackers.push_back(std::make_unique<Attacker>(harness.state));
    attackers.back()->send(introduction(input));
  }
  for (int steps = 0; steps < 64 && !input.empty(); ++steps) {
    auto which = input.take<std::uint8_t>();
    Attacker& attacker = *attackers[which % 2];
    if (which == 254) attacker.hang_up();
    Bytes bytes = request(input);
    attacker.send(bytes);
    for (auto& each : attackers) each->drive(), each->take_replies();
  }
  for (auto& each : attackers) each->drive(), each->take_replies();
}

}  // namespace
}  // namespace hinterland

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hinterland;
  if (!far::testing::restart_random()) return -1;
  static Harness harness;
  testing::FuzzInput input(data, size);
  attack(input, harness);
  harness.check_victim();
  harness.state.sessions->end_deserted(now_ns() + 1, 0);
  HL_CHECK_OP(harness.state.arena->slabs_used(), ==, 1u);
  HL_CHECK_OP(harness.state.connections.load(), ==, 0u);
  return 0;
}
