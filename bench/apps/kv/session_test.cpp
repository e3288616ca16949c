// The protocol: what comes back for what is sent, however it is cut, and for what is no protocol at all.
#include "kv/session.hpp"

#include <gtest/gtest.h>

#include "common/random.hpp"

namespace kv {
namespace {

std::int64_t test_clock() { return 1'700'000'000; }

class Protocol : public ::testing::Test {
 protected:
  // What comes back; "<closed>" at its end when the connection is closed.
  std::string say(std::string_view text, std::size_t piece = 1 << 20) {
    Store store(std::size_t{16} << 20, test_clock);
    Service service(store, 1);
    std::string answer;
    Session session(service, [&](std::string_view part) {
      answer += part;
      return true;
    });
    for (std::size_t at = 0; at < text.size(); at += piece)
      if (!session.consume(text.substr(at, piece))) return answer + "<closed>";
    return answer;
  }
};

TEST_F(Protocol, StoresAndFinds) {
  EXPECT_EQ(say("set a 5 0 3\r\nabc\r\nget a b\r\ngets a\r\ndelete a\r\ndelete a\r\nget a\r\n"),
            "STORED\r\nVALUE a 5 3\r\nabc\r\nEND\r\nVALUE a 5 3 1\r\nabc\r\nEND\r\nDELETED\r\nNOT_FOUND\r\nEND\r\n");
  EXPECT_EQ(
      say("add a 0 0 1\r\nx\r\nadd a 0 0 1\r\ny\r\nreplace b 0 0 1\r\nz\r\nappend a 9 9 2\r\n\r\n\r\nget a\r\n"),
      "STORED\r\nNOT_STORED\r\nNOT_STORED\r\nSTORED\r\nVALUE a 0 3\r\nx\r\n\r\nEND\r\n");
  EXPECT_EQ(say("set a 0 0 1\r\nx\r\ncas a 0 0 1 1\r\ny\r\ncas a 0 0 1 1\r\nz\r\ncas b 0 0 1 1\r\nz\r\n"),
            "STORED\r\nSTORED\r\nEXISTS\r\nNOT_FOUND\r\n");
  EXPECT_EQ(say("set n 0 0 2\r\n10\r\nincr n 5\r\ndecr n 20\r\ntouch n 5\r\ntouch m 5\r\n"),
            "STORED\r\n15\r\n0\r\nTOUCHED\r\nNOT_FOUND\r\n");
  EXPECT_EQ(say("set e 0 0 0\r\n\r\nget e\r\n"), "STORED\r\nVALUE e 0 0\r\n\r\nEND\r\n");
}

TEST_F(Protocol, KeepsQuietWhenAskedTo) {
  EXPECT_EQ(say("set a 0 0 1 noreply\r\nx\r\nadd a 0 0 1 noreply\r\ny\r\nincr a 1 noreply\r\ndelete b noreply\r\n"
                "flush_all noreply\r\nverbosity 1 noreply\r\nget a\r\n"),
            "END\r\n");
}

TEST_F(Protocol, RefusesAndGoesOn) {
  std::string long_key(251, 'k');
  EXPECT_EQ(say("nonsense\r\n\r\nget\r\nset a\r\nset a 0 0 x\r\nget a\r\n"),
            "ERROR\r\nERROR\r\nERROR\r\nERROR\r\nCLIENT_ERROR bad command line format\r\nEND\r\n");
  EXPECT_EQ(say("set " + long_key + " 0 0 5\r\nget a\r\nget b\r\n"),
            "CLIENT_ERROR bad command line format\r\nEND\r\n");
  EXPECT_EQ(say("get " + long_key + "\r\n"), "CLIENT_ERROR bad command line format\r\n");
  EXPECT_EQ(say("set a 0 0 3\r\nabcd\r\nget a\r\n"), "CLIENT_ERROR bad data chunk\r\nEND\r\n");
  EXPECT_EQ(say("set a 0 0 -1\r\nget a\r\n"), "CLIENT_ERROR bad data chunk\r\nEND\r\n");
  EXPECT_EQ(say("set a 0 0 3000000000\r\nget a\r\n"), "CLIENT_ERROR bad data chunk\r\nEND\r\n");
  std::string large(kValueBytesMax + 1, 'x');
  EXPECT_EQ(say("set a 0 0 " + std::to_string(large.size()) + "\r\n" + large + "\r\nget a\r\n", 1000),
            "SERVER_ERROR object too large for cache\r\nEND\r\n");
}

TEST_F(Protocol, ClosesWhereItShould) {
  EXPECT_EQ(say("version\r\nquit\r\nversion\r\n"), "VERSION 1.6.0-hinterland\r\n<closed>");
  EXPECT_EQ(say(std::string(70'000, 'x'), 5000), "CLIENT_ERROR line too long\r\n<closed>");
}

TEST_F(Protocol, StopsWhenTheClientIsGone) {
  Store store(std::size_t{16} << 20, test_clock);
  Service service(store, 1);
  int sends = 0;
  Session session(service, [&](std::string_view) { return ++sends, false; });
  std::string text = "set a 0 0 100000\r\n" + std::string(100'000, 'x') + "\r\n";
  for (int i = 0; i < 100; ++i) text += "get a a a\r\n";
  EXPECT_FALSE(session.consume(text));
  EXPECT_EQ(sends, 1);
}

TEST_F(Protocol, IsTheSameHoweverItIsCut) {
  std::string text;
  apps::Random random(11);
  for (int i = 0; i < 300; ++i) {
    std::string key = "key" + std::to_string(random.below(20)), value(random.below(300), '\n');
    if (random.below(2) != 0) text += "set " + key + " 0 0 " + std::to_string(value.size()) + "\r\n" + value + "\r\n";
    text += "get " + key + "\r\n";
  }
  std::string wanted = say(text);
  for (std::size_t piece : {1, 2, 3, 7, 64, 1000}) EXPECT_EQ(say(text, piece), wanted) << piece;
}

// Words of the protocol in any order (`stats` tells times, which differ), and bytes of any kind: it answers or
// closes, and stays within its memory.
TEST_F(Protocol, SurvivesNoise) {
  const std::string_view words[] = {"get ",       "set ",
                                    "cas ",       "a ",
                                    "b ",         "0 ",
                                    "1 ",         "5 ",
                                    "\r\n",       "\n",
                                    "\r\n",       "-1 ",
                                    "noreply",    "99999999 ",
                                    "xyz",        "incr ",
                                    "\0x",        "append ",
                                    "touch ",     "gets ",
                                    "flush_all ", "\r\nabcde\r\n",
                                    "delete ",    "gets ",
                                    "verbosity "};
  apps::Random random(13);
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (std::uint64_t i = random.below(60); i > 0; --i) text += words[random.below(std::size(words))];
    std::string whole = say(text);
    EXPECT_EQ(say(text, 1), whole) << text;
  }
}

}  // namespace
}  // namespace kv
