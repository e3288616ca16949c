// What a policy is told beside pages, what it says of itself, and which pages it does not admit: by a policy that
// notes all of it.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/stats.hpp"
#include "hinterland/policy.hpp"
#include "paging/page/policy_host.hpp"
#include "paging/testing/victims.hpp"
#include "policy/plugin.hpp"
#include "policy/policies.hpp"

namespace hinterland {
namespace {

constexpr std::uint32_t kPages = 4096;

// FIFO otherwise.
class Listener {
 public:
  static inline std::vector<std::string> heard;
  static inline std::vector<hl_page> used, asked_of;
  static inline std::vector<hl_page> wanted;
  static inline bool too_many = false;
  static inline bool (*admits_page)(hl_page) = nullptr;
  static inline std::uint32_t figures = 2;
  static inline std::uint64_t work_ns = 0;  // so much CPU time with each tick

  bool create(const hl_policy_env& environment) { return links_.create(environment); }
  bool holds(hl_page page) const { return links_.in_list(page); }
  std::uint64_t size() const { return pages_.size(); }
  void arrived(hl_page page, hl_arrival, std::uint8_t) { pages_.push_back(links_, page); }
  void departed(hl_page page) { pages_.remove(links_, page); }
  hl_page choose(std::uint32_t&) { return pages_.pop_front(links_); }
  void accessed(hl_page page, hl_access) { used.push_back(page); }
  void tick(std::uint64_t now_ns) {
    heard.push_back("tick " + std::to_string(now_ns));
    for (std::uint64_t end = thread_cpu_ns() + work_ns; thread_cpu_ns() < end;) continue;
  }
  void report(hl_policy_report& out) {
    std::snprintf(out.text, sizeof out.text, "all is well");
    out.count = figures;
    for (std::uint32_t i = 0; i < std::min(figures, HL_POLICY_FIGURES_MAX); ++i)
      std::snprintf(out.figures[i].name, sizeof out.figures[i].name, "figure_%u", i), out.figures[i].value = 10 + i;
  }
  void mapped(const hl_mapping& mapping) {
    heard.push_back("mapped " + std::to_string(mapping.place) + " " + std::to_string(mapping.pages) + " " +
                    std::to_string(mapping.kind) + " " + mapping.tag);
  }
  void unmapped(std::uint64_t place, std::uint64_t pages) {
    heard.push_back("unmapped " + std::to_string(place) + " " + std::to_string(pages));
  }
  std::uint32_t hinted(hl_page page, hl_page* next, std::uint32_t max) {
    heard.push_back("hinted " + std::to_string(page) + " of " + std::to_string(max));
    std::uint32_t count = std::min<std::uint32_t>(max, static_cast<std::uint32_t>(wanted.size()));
    std::copy_n(wanted.begin(), count, next);
    return too_many ? max + 1 : count;
  }
  bool admits(hl_page page, hl_arrival) {
    asked_of.push_back(page);
    return admits_page == nullptr || admits_page(page);
  }

 private:
  hl::policy::PageLinks links_;
  hl::policy::PageList pages_;
};

constexpr hl_policy_ops kListener = hl::policy::ops_of<Listener>("listener", "");

class InterfaceTest : public ::testing::Test {
 protected:
  InterfaceTest() {
    Listener::heard = {};
    Listener::used = Listener::asked_of = Listener::wanted = {};
    Listener::too_many = false;
    Listener::admits_page = nullptr;
    Listener::figures = 2;
    Listener::work_ns = 0;
    stat_page()->policy_report = {};
    if (!pages_.create(kPages)) std::abort();
    for (std::uint32_t page = 0; page < kPages; ++page) pages_.note_used({page});
    if (!host_.create(&kListener, pages_, {.settings = "", .instead = &kFifoPolicy})) std::abort();
  }
  std::vector<hl_page> choose(std::size_t count) { return testing::victims_of(host_, count); }
  PageTable pages_;
  PolicyHost host_;
};

TEST_F(InterfaceTest, HearsOfMappings) {
  host_.mapped({{16}, 32}, {HL_MAPPING_HEAP});
  host_.mapped({{64}, 16}, {HL_MAPPING_REGION, "index"});
  host_.unmapped({{16}, 64});
  EXPECT_EQ(Listener::heard, (std::vector<std::string>{"mapped 16 32 1 ", "mapped 64 16 2 index", "unmapped 16 64"}));
}

TEST_F(InterfaceTest, OfARegionTheRegionsPolicyHears) {
  int pool = host_.open_pool(&kFifoPolicy, 0, -1);
  host_.assign({{512}, 64}, pool);
  host_.mapped({{512}, 64}, {HL_MAPPING_REGION, "fifo"});
  EXPECT_TRUE(Listener::heard.empty());
  host_.close_pool(pool);
}

TEST_F(InterfaceTest, TimeGoesByTenTimesASecondAtMost) {
  host_.look_after(5);
  host_.look_after(PolicyHost::kTickNs);
  host_.look_after(PolicyHost::kTickNs + 5);
  EXPECT_EQ(Listener::heard, (std::vector<std::string>{"tick 5", "tick 100000005"}));
}

TEST_F(InterfaceTest, ShowsFiguresOfItsOwn) {
  host_.look_after(1);
  const PolicyReport& report = stat_page()->policy_report;
  EXPECT_STREQ(report.text, "all is well");
  ASSERT_EQ(report.count, 2u);
  EXPECT_STREQ(report.figures[1].name, "figure_1");
  EXPECT_EQ(report.figures[1].value, 11u);
}

TEST_F(InterfaceTest, WithTooManyFiguresIsReplaced) {
  host_.arrived({5}, 1, HL_ARRIVAL_FAULT);
  Listener::figures = HL_POLICY_FIGURES_MAX + 1;
  host_.look_after(1);
  EXPECT_STREQ(host_.name(), "fifo");
  EXPECT_EQ(stat_page()->policy_report.count, 0u);
  EXPECT_EQ(choose(5), std::vector<hl_page>{5});
}

TEST_F(InterfaceTest, ThatTakesLongForATickIsReplaced) {
  Listener::work_ns = 210'000'000;
  host_.look_after(1);
  EXPECT_STREQ(host_.name(), "fifo");
}

TEST_F(InterfaceTest, WhatIsNotAdmittedLeavesFirst) {
  Listener::admits_page = [](hl_page page) { return page < 100; };
  host_.arrived({0}, 100, HL_ARRIVAL_FAULT);
  host_.arrived({200}, 100, HL_ARRIVAL_READ_AHEAD);
  EXPECT_EQ(host_.size(), 200u);
  host_.used({210}, HL_ACCESS_WRITE);
  EXPECT_TRUE(Listener::used.empty()) << "the policy does not hold it";
  std::vector<hl_page> victims = choose(80);
  ASSERT_EQ(victims.size(), 80u);
  for (std::uint32_t i = 0; i < 68; ++i) EXPECT_EQ(victims[i], 200 + i);
  // The last of them have just come.
  for (std::uint32_t i = 68; i < 80; ++i) EXPECT_EQ(victims[i], i - 68);
  host_.departed({290}, 5);
  EXPECT_EQ(choose(200).size(), 88u);
  EXPECT_EQ(choose(200).size(), 27u) << "but stay no longer than others";
  EXPECT_EQ(host_.size(), 0u);
}

TEST_F(InterfaceTest, WhatIsWantedAgainIsAdmittedUnasked) {
  Listener::admits_page = [](hl_page) { return false; };
  host_.arrived({10}, 1, HL_ARRIVAL_REFAULT);
  host_.arrived({11}, 1, HL_ARRIVAL_RETURNED);
  EXPECT_TRUE(Listener::asked_of.empty());
  host_.used({10}, HL_ACCESS_WRITE);
  EXPECT_EQ(Listener::used, std::vector<hl_page>{10});
}

TEST_F(InterfaceTest, OnlySoManyPagesAreNotAdmitted) {
  Listener::admits_page = [](hl_page) { return false; };
  host_.arrived({0}, 3000, HL_ARRIVAL_FAULT);
  host_.arrived({0}, 3000, HL_ARRIVAL_FAULT);  // each is listed once
  EXPECT_EQ(host_.size(), 3000u);
  EXPECT_EQ(Listener::asked_of.size(), PolicyHost::kColdMax);
  std::vector<hl_page> left, some;
  while (!(some = choose(500)).empty()) left.insert(left.end(), some.begin(), some.end());
  std::ranges::sort(left);
  EXPECT_EQ(std::ranges::unique(left).size(), 0u);
  EXPECT_EQ(left.size(), 3000u);
}

TEST_F(InterfaceTest, SaysWhatToBringBesidesAHint) {
  std::array<PageIndex, 8> next;
  EXPECT_EQ(host_.hinted({7}, next), 0u);
  Listener::wanted = {9, 30};
  EXPECT_EQ(host_.hinted({8}, next), 2u);
  EXPECT_EQ(next[1], PageIndex{30});
  EXPECT_EQ(host_.hinted({9}, std::span(next).first(1)), 1u);
  EXPECT_EQ(Listener::heard, (std::vector<std::string>{"hinted 7 of 8", "hinted 8 of 8", "hinted 9 of 1"}));
}

TEST_F(InterfaceTest, ThatWantsTooMuchBesidesAHintIsReplaced) {
  std::array<PageIndex, 8> next;
  Listener::too_many = true;
  EXPECT_EQ(host_.hinted({7}, next), 0u);
  EXPECT_STREQ(host_.name(), "fifo");
}

TEST_F(InterfaceTest, ThatWantsWhatIsNoPageBesidesAHintIsReplaced) {
  std::array<PageIndex, 8> next;
  Listener::wanted = {kPages};
  EXPECT_EQ(host_.hinted({7}, next), 0u);
  EXPECT_STREQ(host_.name(), "fifo");
}

TEST(ListenerTest, PassesTheTrial) {
  Listener::work_ns = 0;
  Listener::wanted = {1, 2, 3};
  Listener::too_many = false;
  Listener::figures = 8;
  Listener::admits_page = [](hl_page page) { return page % 2 == 0; };
  Status checked = check_plugin({&kListener, "", true});
  EXPECT_TRUE(checked.has_value()) << checked.error().what();
  Listener::figures = 9;
  checked = check_plugin({&kListener, "", true});
  ASSERT_FALSE(checked.has_value());
  EXPECT_NE(std::string(checked.error().what()).find("more figures"), std::string::npos);
}

}  // namespace
}  // namespace hinterland
