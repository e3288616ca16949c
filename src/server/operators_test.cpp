// Operators of the server's owner: computed as the client would, on its own pages alone, in a process that can do
// nothing else, and withdrawn when they go wrong, while everything else goes on.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <random>

#include "far/tcp/shared_pages.hpp"
#include "server/raw_client.hpp"

namespace hinterland::testing {
namespace {

using far::OperatorName;
using far::Piece;

// The sum of the bytes times the argument, and the word.
struct Weighed {
  std::uint64_t sum, word;
};
void weigh(const void* argument, std::uint64_t word, const void* piece, std::size_t bytes, void* result) {
  auto* made = static_cast<Weighed*>(result);
  std::uint64_t weight;
  std::memcpy(&weight, argument, sizeof weight);
  for (std::size_t i = 0; i < bytes; ++i) made->sum += static_cast<const unsigned char*>(piece)[i] * weight;
  made->word = word;
}

using Compute = void (*)(const void*, std::uint64_t, const void*, std::size_t, void*);
constexpr hl_operator named(const char* name, Compute compute) {
  return {HL_OPERATOR_ABI_VERSION, 1, name, 1, 0, 8, 0, compute};
}
void give(void* result, std::int64_t number) { std::memcpy(result, &number, sizeof number); }

// Its process dies at its next futex call.
void die_at_futex(const void*, std::uint64_t, const void*, std::size_t, void*) {
  sock_filter filter[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                          BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_futex, 0, 1),
                          BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
                          BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog program{std::size(filter), filter};
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

constexpr hl_operator kAll[] = {
    {HL_OPERATOR_ABI_VERSION, 5, "weigh", 2, 8, sizeof(Weighed), 0, weigh},
    named("crash", [](const void*, std::uint64_t, const void*, std::size_t, void*) { __builtin_trap(); }),
    named("loop",
          [](const void*, std::uint64_t, const void*, std::size_t, void*) {
            for (;;) asm volatile("" ::: "memory");
          }),
    named("end", [](const void*, std::uint64_t, const void*, std::size_t, void*) { ::_exit(0); }),
    named("write", [](const void*, std::uint64_t, const void* piece, std::size_t,
                      void*) { *static_cast<volatile char*>(const_cast<void*>(piece)) = 1; }),
    named("process",
          [](const void*, std::uint64_t, const void*, std::size_t, void* result) { give(result, ::getpid()); }),
    named("open", [](const void*, std::uint64_t, const void*, std::size_t,
                     void* result) { give(result, ::open("/etc/passwd", O_RDONLY) < 0 ? errno : 0); }),
    named("behind", [](const void*, std::uint64_t, const void* piece, std::size_t,
                       void* result) { give(result, static_cast<const unsigned char*>(piece)[100]); }),
    named("allocate",
          [](const void*, std::uint64_t, const void*, std::size_t, void* result) {
            void* much = std::malloc(std::size_t{1} << 30);
            give(result, much == nullptr ? 1 : 0);
            std::free(much);
          }),
    named("descriptors",
          [](const void*, std::uint64_t, const void*, std::size_t, void* result) {
            std::int64_t open = 0;
            for (int fd = 3; fd < 256; ++fd) open += ::write(fd, "", 0) == 0 || errno != EBADF;
            give(result, open);
          }),
    named("dieAtFutex", die_at_futex),
};

ServerOptions server_with_operators() {
  ServerOptions options = small_server();
  for (const hl_operator& each : kAll) options.operators.push_back({&each, "/nowhere"});
  return options;
}

OperatorName name_of(const char* name) {
  for (const hl_operator& each : kAll)
    if (std::strcmp(each.name, name) == 0) return *OperatorName::of(each);
  std::abort();
}

class ServerApplies : public ::testing::Test {
 protected:
  ServerApplies() {
    page_.bytes.fill(3);
    far::testing::run_to_end(*client_.channel, {{far::Operation::write, number_, page_.bytes.data(), 0}});
  }
  // The result of one piece; nothing when it was not computed.
  std::optional<std::int64_t> apply(const OperatorName& which, Client& client, std::uint16_t bytes = 4096) {
    const Piece piece{number_, 0, bytes, 7};
    std::int64_t result = -1;
    bool done = false;
    EXPECT_EQ(client.device->apply(which, nullptr, {&piece, 1}, reinterpret_cast<std::byte*>(&result), &done), 0);
    return done ? std::optional(result) : std::nullopt;
  }
  std::optional<std::int64_t> apply(const char* name) { return apply(name_of(name), client_); }
  bool weighs() {
    const Piece piece{number_, 100, 10, 7};
    const std::uint64_t weight = 2;
    Weighed result{};
    bool done = false;
    client_.device->apply(name_of("weigh"), reinterpret_cast<const std::byte*>(&weight), {&piece, 1},
                          reinterpret_cast<std::byte*>(&result), &done);
    return done && result.sum == 60 && result.word == 7;
  }
  RunningServer server_{server_with_operators()};
  Client client_{server_->port()};
  FarPage number_ = far::testing::pages_of_slab(client_.slab(), 0, 1)[0];
  PageBuffer page_;
};

TEST_F(ServerApplies, WhatTheClientWouldCompute) {
  ASSERT_TRUE(client_.device->has_operators());
  std::uint64_t seed = far::testing::test_seed();
  SCOPED_TRACE("HINTERLAND_TEST_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  std::vector<PageBuffer> contents(40);
  auto numbers = far::testing::pages_of_slab(client_.slab(), 0, 40);
  for (std::size_t i = 0; i < contents.size(); ++i) {
    for (auto& byte : contents[i].bytes) byte = static_cast<unsigned char>(random());
    far::testing::run_to_end(*client_.channel, {{far::Operation::write, numbers[i], contents[i].bytes.data(), 0}});
  }
  for (int round = 0; round < 100; ++round) {
    std::vector<Piece> pieces(1 + random() % 300);
    std::vector<Weighed> right(pieces.size()), results(pieces.size());
    const std::uint64_t weight = random();
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      const std::size_t page = random() % 40, offset = random() % 4095,
                        bytes = 2 * (1 + random() % ((4096 - offset) / 2));
      pieces[i] = {numbers[page], static_cast<std::uint16_t>(offset), static_cast<std::uint16_t>(bytes), random()};
      weigh(&weight, pieces[i].word, &contents[page].bytes[offset], bytes, &right[i]);
    }
    auto done = std::make_unique<bool[]>(pieces.size());
    ASSERT_EQ(client_.device->apply(name_of("weigh"), reinterpret_cast<const std::byte*>(&weight), pieces,
                                    reinterpret_cast<std::byte*>(results.data()), done.get()),
              0);
    EXPECT_TRUE(std::all_of(done.get(), done.get() + pieces.size(), [](bool each) { return each; }));
    ASSERT_EQ(std::memcmp(results.data(), right.data(), right.size() * sizeof(Weighed)), 0);
  }
  EXPECT_EQ(server_->stats().pages_read, 0u);
}

TEST_F(ServerApplies, NothingThatDiffersInAnything) {
  for (auto change :
       {+[](OperatorName& each) { each.name[0] = 'w'; }, +[](OperatorName& each) { ++each.version; },
        +[](OperatorName& each) { ++each.element_bytes; }, +[](OperatorName& each) { ++each.argument_bytes; },
        +[](OperatorName& each) { --each.result_bytes; }}) {
    OperatorName other = name_of("process");
    change(other);
    EXPECT_FALSE(apply(other, client_));
    EXPECT_FALSE(apply(other, client_)) << "asked again";
  }
  EXPECT_TRUE(apply("process"));
}

TEST_F(ServerApplies, WhatGoesWrongIsWithdrawnAndNothingElse) {
  Client other(server_->port());
  for (const char* wrong : {"crash", "loop", "end", "write"}) {
    EXPECT_FALSE(apply(wrong)) << wrong;
    EXPECT_FALSE(apply(wrong)) << wrong << ", a second time";
    EXPECT_FALSE(Client(server_->port()).device->lost()) << "others come as before";
    EXPECT_TRUE(weighs()) << "after " << wrong;
  }
  PageBuffer back;
  EXPECT_EQ(far::testing::run_to_end(*client_.channel, {{far::Operation::read, number_, back.bytes.data(), 0}})[0],
            0);
  EXPECT_EQ(back, page_);
  EXPECT_EQ(server_->stats().connections_cut, 0u);
}

TEST_F(ServerApplies, OthersComputeWhileAnOperatorLoops) {
  Client other(server_->port());
  const FarPage mine = far::testing::pages_of_slab(other.slab(), 0, 1)[0];
  far::testing::run_to_end(*other.channel, {{far::Operation::write, mine, page_.bytes.data(), 0}});
  std::atomic<bool> ended{false};
  std::thread loops([&] {
    apply("loop");
    ended.store(true);
  });
  const Piece piece{mine, 0, 4096};
  std::uint64_t sums = 0;
  while (!ended.load()) {
    hl::far::detail::partial result{};
    bool done = false;
    EXPECT_EQ(other.device->compute({hl::far::detail::sum, hl::far::detail::u32, 0, 0, 0}, {&piece, 1},
                                    reinterpret_cast<std::byte*>(&result), &done),
              0);
    sums += done && result.low == 1024ull * 0x03030303u;
  }
  loops.join();
  EXPECT_GT(sums, 0u);
}

// An operator that reads too far sees nothing of what others had computed before.
TEST_F(ServerApplies, NothingIsLeftOfThePieceBefore) {
  EXPECT_EQ(apply("behind"), 3);
  EXPECT_EQ(apply(name_of("behind"), client_, 100), 0);
}

// Somebody ended it, or memory ran out: that is no fault of the operator's.
TEST_F(ServerApplies, AProcessThatWasKilledIsMadeAnew) {
  const auto first = apply("process");
  ASSERT_TRUE(first);
  EXPECT_NE(*first, ::getpid());
  ASSERT_EQ(::kill(static_cast<pid_t>(*first), SIGKILL), 0);
  std::optional<std::int64_t> second;
  EXPECT_TRUE(within(kSurelyNs, [&] { return (second = apply("process")).has_value() && second != first; }));
}

// It may die with its answer given, before it has woken who waits for that.
TEST_F(ServerApplies, AProcessThatDiesWithItsAnswerKeepsNobodyWaiting) {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && !defined(HINTERLAND_COVERAGE)
  GTEST_SKIP() << "what makes it die is refused to operators here";
#endif
  const std::uint64_t start = now_ns();
  EXPECT_TRUE(apply("dieAtFutex"));
  EXPECT_LT(now_ns() - start, 20'000'000'000) << "the server gives up after 30 s";
}

TEST_F(ServerApplies, AnOperatorCanDoNothingButCompute) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(HINTERLAND_COVERAGE)
  GTEST_SKIP() << "a sanitizer makes system calls of its own";
#endif
  EXPECT_EQ(apply("open"), EPERM);
  EXPECT_EQ(apply("allocate"), 1);
  EXPECT_EQ(apply("descriptors"), 0);
}

TEST(ServerWithOperators, ItsProcessesEndWithIt) {
  ServerProcess server(server_with_operators());
  Client client(server.port());
  const FarPage number = far::testing::pages_of_slab(client.slab(), 0, 1)[0];
  PageBuffer page;
  page.bytes.fill(3);
  far::testing::run_to_end(*client.channel, {{far::Operation::write, number, page.bytes.data(), 0}});
  const Piece piece{number, 0, 4096};
  std::int64_t process = 0;
  bool done = false;
  client.device->apply(name_of("process"), nullptr, {&piece, 1}, reinterpret_cast<std::byte*>(&process), &done);
  ASSERT_TRUE(done);
  server.kill();
  // Gone, or a zombie that whoever adopts orphans here does not fetch.
  EXPECT_TRUE(within(kSurelyNs, [&] {
    std::ifstream file("/proc/" + std::to_string(process) + "/stat");
    std::string text;
    return !std::getline(file, text) || text[text.rfind(')') + 2] == 'Z';
  }));
}

TEST(ServerWithoutOperators, IsAskedForNone) {
  RunningServer server(small_server());
  Client client(server->port());
  EXPECT_FALSE(client.device->has_operators());
  RawClient raw(server->port());
  auto request = wire::make_request(wire::Type::find_operator, 0, 7);
  std::vector<std::byte> body(request.length);
  EXPECT_FALSE(raw.ask(request, body)) << "no client of ours asks";
}

// --- by hand -----------------------------------------------------------------------------------------------------

class ApplyByHand : public ::testing::Test {
 protected:
  void SetUp() override {
    PageBuffer ones;
    ones.bytes.fill(1);
    checksum_ = far::SharedPages::checksum_of(ones.bytes.data());
    write_first_page(raw_, 3, ones);
  }
  // The status of the answer; 999: the server hung up.
  std::uint32_t ask(std::uint32_t field, const wire::Piece& piece) {
    std::vector<std::byte> body(sizeof(wire::ApplyRequest));
    body[0] = std::byte{1};
    const wire::Word word{9u};
    for (auto bytes : {wire::bytes_of(piece), wire::bytes_of(word)})
      body.insert(body.end(), bytes.begin(), bytes.end());
    auto reply = raw_.ask(wire::make_apply_request(field, 1, 7), body);
    if (!reply) return 999;
    result_.resize(reply->length);
    EXPECT_TRUE(result_.empty() || raw_.receive(result_));
    EXPECT_EQ(reply->stamp, wire::echo_of(std::span<const wire::Piece>(&piece, 1)));
    EXPECT_EQ(reply->slab, field);
    return reply->status;
  }
  wire::Piece piece(std::uint16_t offset = 0, std::uint16_t bytes = 4096) const {
    return {std::uint64_t{3}, checksum_, offset, bytes, 0u};
  }
  static constexpr auto kBadRequest = static_cast<std::uint32_t>(wire::Code::bad_request);
  static constexpr auto kNoOperator = static_cast<std::uint32_t>(wire::Code::no_operator);
  static constexpr std::uint32_t kWeigh = wire::operator_field(0, sizeof(Weighed));

  RunningServer server_{server_with_operators()};
  RawClient raw_{server_->port()};
  std::uint64_t checksum_ = 0;
  std::vector<std::byte> result_;
};

TEST_F(ApplyByHand, RefusesWhatMakesNoSenseAndLivesOn) {
  EXPECT_EQ(ask(wire::operator_field(std::size(kAll), 8), piece()), kNoOperator);
  EXPECT_EQ(ask(wire::operator_field(0, 8), piece()), kBadRequest) << "another size of result";
  EXPECT_EQ(ask(kWeigh, piece(0, 3)), kBadRequest) << "half an element";
  wire::Piece other = piece();
  other.page = std::uint64_t{far::kSlabPages} + 3;
  EXPECT_EQ(ask(kWeigh, other), kNotYours);
  other = piece(), other.checksum = checksum_ + 1;
  EXPECT_EQ(ask(kWeigh, other), static_cast<std::uint32_t>(wire::Code::damaged));
  EXPECT_EQ(ask(kWeigh, piece(1, 4)), 0u) << "the session lives";
  Weighed made{};
  ASSERT_EQ(result_.size(), sizeof made);
  std::memcpy(&made, result_.data(), sizeof made);
  EXPECT_EQ(made.sum, 4u);
  EXPECT_EQ(made.word, 9u);
  EXPECT_EQ(ask(kWeigh, piece(4000, 100)), 999u) << "beyond the page: no client of ours says that";
}

TEST_F(ApplyByHand, CutsWhoBreaksTheProtocol) {
  for (std::uint32_t field : {0u, wire::operator_field(0, 513), wire::operator_field(wire::kOperatorsMax, 8)}) {
    RawClient raw(server_->port());
    auto header = wire::make_apply_request(field, 1, 7);
    EXPECT_FALSE(raw.ask(header, std::vector<std::byte>(header.length))) << field;
  }
}

}  // namespace
}  // namespace hinterland::testing
