// Each policy against a model of it in plain containers: the same victims, in the same order, whatever comes.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <vector>

#include "far/test_support.hpp"
#include "paging/page/reservation.hpp"
#include "policy/policies.hpp"
#include "policy/proven_share.hpp"

namespace hinterland {
namespace {

constexpr hl_page kModelPages = 600;
using Pages = std::list<hl_page>;
using Hinted = std::set<hl_page>;  // what hints have named since it was asked for

class Model {
 public:
  virtual ~Model() = default;
  virtual void arrive(hl_page page, hl_arrival why, std::uint8_t priority) = 0;
  virtual void depart(hl_page page) = 0;
  virtual std::vector<hl_page> choose(std::size_t max) = 0;
  Hinted hinted;

 protected:
  bool ask(hl_page page) { return hinted.erase(page) != 0; }
};

hl_page pop(Pages& pages) {
  hl_page first = pages.front();
  pages.pop_front();
  return first;
}

class FifoModel : public Model {
 public:
  void arrive(hl_page page, hl_arrival, std::uint8_t) override {
    if (std::ranges::find(pages_, page) == pages_.end()) pages_.push_back(page);
  }
  void depart(hl_page page) override { pages_.remove(page); }
  std::vector<hl_page> choose(std::size_t max) override {
    std::vector<hl_page> out;
    while (out.size() < max && !pages_.empty()) out.push_back(pop(pages_));
    return out;
  }

 private:
  Pages pages_;
};

// aged_queue.hpp, for 16 priorities or for one.
class AgedModel : public Model {
 public:
  explicit AgedModel(bool priorities) : priorities_(priorities) {}
  void arrive(hl_page page, hl_arrival why, std::uint8_t priority) override {
    if (listed_.contains(page)) return;
    bool came_back = why == HL_ARRIVAL_REFAULT || why == HL_ARRIVAL_RETURNED;
    if (priorities_ && (!came_back || priority != 0)) level_of_[page] = priority;
    Level& level = levels_[level_of_[page]];
    bool in_use = proves_in_use(page, why);
    (in_use ? level.proven : level.fresh).push_back(page);
    past_[page].proven = in_use;
    listed_.insert(page);
    balance(level);
  }
  void depart(hl_page page) override {
    if (listed_.erase(page) == 0) return;
    Level& level = levels_[level_of_[page]];
    for (Pages* part : {&level.fresh, &level.aged, &level.proven}) part->remove(page);
    balance(level);
  }
  std::vector<hl_page> choose(std::size_t max) override {
    std::vector<hl_page> out;
    std::size_t questions = 2 * max + 16;
    for (bool newcomers_stay : {true, false})
      for (auto& [number, level] : levels_) {
        std::size_t stay = newcomers_stay && number != 0 ? std::min<std::size_t>(32, listed_.size() / 32) : 0;
        while (out.size() < max && level.size() > stay) out.push_back(take(level, questions));
      }
    return out;
  }

 private:
  struct Level {
    Pages fresh, aged, proven;
    std::size_t size() const { return fresh.size() + aged.size() + proven.size(); }
  };
  // departures.hpp.
  bool proves_in_use(hl_page page, hl_arrival why) {
    if (why == HL_ARRIVAL_RETURNED) return false;
    Past& past = past_[page];
    bool wanted = why == HL_ARRIVAL_FAULT || why == HL_ARRIVAL_REFAULT;
    std::size_t away = wanted && past.left_at != 0 ? departures_ - past.left_at : SIZE_MAX;
    if (away < listed_.size() / 4)
      past.streak = std::min(past.streak + 1, 2);
    else if (away >= listed_.size() / 2)
      past.streak = 0;
    past.rounds = (1 << past.streak) - 1;
    if (away < listed_.size() / 2) share_.came_back(past.proven);
    return why == HL_ARRIVAL_REFAULT || away < listed_.size() / 2;
  }
  hl_page take(Level& level, std::size_t& questions) {
    for (;;) {
      bool aged = !level.aged.empty();
      Pages& from = aged ? level.aged : !level.fresh.empty() ? level.fresh : level.proven;
      hl_page page = pop(from);
      if (questions != 0) {
        --questions;
        bool stays = past_[page].rounds != 0;
        if (stays) --past_[page].rounds;
        if (stays || (aged && ask(page))) {
          level.proven.push_back(page);
          past_[page].proven = true;
          continue;
        }
      }
      past_[page].left_at = ++departures_;
      listed_.erase(page);
      balance(level);
      share_.left(past_[page].proven, level.size());
      return page;
    }
  }
  void balance(Level& level) {
    for (int i = 0; i < 2 && level.aged.size() + 1 < level.fresh.size(); ++i) age(level, level.fresh);
    for (int i = 0; i < 2 && level.proven.size() > share_.room_beside(level.fresh.size() + level.aged.size()); ++i)
      age(level, level.proven);
  }
  void age(Level& level, Pages& from) {
    level.aged.push_back(pop(from));
    ask(level.aged.back());
  }

  struct Past {
    std::size_t left_at = 0;
    int streak = 0, rounds = 0;
    bool proven = false;
  };
  bool priorities_;
  ProvenShare share_;  // by its own test, proven_share_test.cpp
  std::map<hl_page, Past> past_;
  std::size_t departures_ = 0;
  std::map<unsigned, Level, std::greater<>> levels_;
  std::map<hl_page, unsigned> level_of_;
  Hinted listed_;
};

// lru.cpp: by the list that it is in, how long ago each page was used last.
class LruModel : public Model {
 public:
  void arrive(hl_page page, hl_arrival, std::uint8_t) override {
    if (size_of(page) != 0) return;
    lists_[0].push_back({page, false});
    balance();
  }
  void depart(hl_page page) override {
    if (size_of(page) == 0) return;
    for (auto& list : lists_) std::erase_if(list, [page](const Entry& entry) { return entry.page == page; });
    balance();
  }
  std::vector<hl_page> choose(std::size_t max) override {
    std::vector<hl_page> out;
    std::size_t questions = 2 * max + 16;
    while (out.size() < max && total() != 0) {
      std::size_t oldest = lists_.size() - 1;
      while (lists_[oldest].empty()) --oldest;
      Entry entry = lists_[oldest].front();
      lists_[oldest].pop_front();
      if (oldest != 0 && questions != 0) {
        --questions;
        if (ask(entry.page)) {
          lists_[0].push_back({entry.page, true});
          continue;
        }
      }
      out.push_back(entry.page);
      balance();
    }
    return out;
  }

 private:
  struct Entry {
    hl_page page;
    bool heard;
  };
  std::size_t size_of(hl_page page) const {
    std::size_t found = 0;
    for (const auto& list : lists_) found += std::ranges::count(list, page, &Entry::page);
    return found;
  }
  std::size_t total() const {
    std::size_t sum = 0;
    for (const auto& list : lists_) sum += list.size();
    return sum;
  }
  void balance() {
    for (std::size_t list = 0; list + 1 < lists_.size(); ++list)
      for (int i = 0; i < 2 && lists_[list].size() > total() / lists_.size() + 1; ++i) {
        Entry entry = lists_[list].front();
        lists_[list].pop_front();
        bool used = ask(entry.page) && entry.heard;
        lists_[used ? 0 : list + 1].push_back({entry.page, true});
      }
  }
  std::array<std::deque<Entry>, 4> lists_;
};

std::unique_ptr<Model> model_of(const hl_policy_ops* policy) {
  if (policy == &kFifoPolicy) return std::make_unique<FifoModel>();
  if (policy == &kLruPolicy) return std::make_unique<LruModel>();
  return std::make_unique<AgedModel>(policy == &kPriorityPolicy);
}

class PolicyModelTest : public ::testing::TestWithParam<const hl_policy_ops*> {
 protected:
  PolicyModelTest() : model(model_of(GetParam())) {
    hl_policy_env environment{};
    environment.abi_version = HL_POLICY_ABI_VERSION;
    environment.window_pages = kModelPages;
    environment.reserve = reserve_zeroed;
    environment.was_hinted = [](void* named, hl_page page) -> int {
      return static_cast<int>(static_cast<Hinted*>(named)->erase(page));
    };
    environment.runtime = &hinted;
    state = GetParam()->create(&environment);
  }
  void choose(std::size_t max) {
    std::vector<hl_page> victims(max);
    victims.resize(GetParam()->choose_victims(state, victims.data(), static_cast<std::uint32_t>(max)));
    ASSERT_EQ(victims, model->choose(max));
  }
  void arrive(hl_page page, hl_arrival why, std::uint8_t priority) {
    GetParam()->arrived(state, page, 1, why, priority);
    model->arrive(page, why, priority);
  }

  Hinted hinted;  // for the policy; the model has its own
  std::unique_ptr<Model> model;
  void* state = nullptr;
};

TEST_P(PolicyModelTest, RandomCallsGiveTheSameVictims) {
  std::uint64_t seed = far::testing::test_seed();
  SCOPED_TRACE("HINTERLAND_TEST_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int step = 0; step < 30'000; ++step) {
    auto page = static_cast<hl_page>(random() % kModelPages);
    switch (random() % 16) {
      case 0:
        GetParam()->departed(state, page, 1);
        model->depart(page);
        break;
      case 1:
        ASSERT_NO_FATAL_FAILURE(choose(random() % 24)) << step;
        break;
      case 2:
      case 3:
      case 4:
      case 5:
      case 6:
      case 7:
        hinted.insert(page);
        model->hinted.insert(page);
        break;
      default:
        arrive(page, static_cast<hl_arrival>(random() % 6),
               static_cast<std::uint8_t>(random() % 2 == 0 ? 0 : random() % 16));
    }
    ASSERT_EQ(hinted, model->hinted) << step;
  }
  choose(kModelPages);
}

// The learner has no simpler model: learner_test.cpp holds it against what it is for.
INSTANTIATE_TEST_SUITE_P(All, PolicyModelTest,
                         ::testing::Values(&kFifoPolicy, &kLruPolicy, &kPriorityPolicy, &kSecondChancePolicy),
                         [](const auto& policy) {
                           std::string name = policy.param->name;
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace hinterland
