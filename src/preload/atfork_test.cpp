#include "preload/atfork.hpp"

#include <gtest/gtest.h>

#include <string>

namespace hinterland::atfork {
namespace {

std::string g_log;
int g_object, g_other_object;

template <char C>
void note() {
  g_log += C;
}
void registers_more() {
  g_log += '+';
  add(note<'x'>, note<'x'>, note<'x'>, &g_object);
}
void unloads_the_other() {
  g_log += '-';
  remove_all_of(&g_other_object);
}

class Atfork : public testing::Test {
 protected:
  void SetUp() override { g_log.clear(); }
  void TearDown() override {
    remove_all_of(&g_object);
    remove_all_of(&g_other_object);
  }
};

TEST_F(Atfork, PrepareBackwardsOthersForwards) {
  ASSERT_EQ(add(note<'a'>, note<'b'>, note<'c'>, &g_object), 0);
  ASSERT_EQ(add(nullptr, nullptr, nullptr, &g_object), 0);
  ASSERT_EQ(add(note<'d'>, note<'e'>, note<'f'>, &g_object), 0);
  std::size_t mark = run_prepare();
  g_log += '|';
  run_parent(mark);
  g_log += '|';
  run_child(mark);
  EXPECT_EQ(g_log, "da|be|cf");
}

TEST_F(Atfork, HandlersOfAnUnloadedObjectDoNotRun) {
  add(note<'a'>, note<'a'>, note<'a'>, &g_object);
  add(note<'b'>, note<'b'>, note<'b'>, &g_other_object);
  remove_all_of(&g_other_object);
  run_child(run_prepare());
  EXPECT_EQ(g_log, "aa");
}

TEST_F(Atfork, HandlersRegisteredInAForkWaitForTheNext) {
  add(registers_more, note<'p'>, nullptr, &g_object);
  run_parent(run_prepare());
  EXPECT_EQ(g_log, "+p");
}

TEST_F(Atfork, AnObjectMayBeUnloadedByAHandler) {
  add(note<'b'>, note<'b'>, nullptr, &g_other_object);
  add(unloads_the_other, note<'p'>, nullptr, &g_object);
  run_parent(run_prepare());
  EXPECT_EQ(g_log, "-p");
}

TEST_F(Atfork, ManyHandlers) {
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(add(note<'m'>, nullptr, nullptr, &g_object), 0);
  run_prepare();
  EXPECT_EQ(g_log.size(), 1000u);
}

}  // namespace
}  // namespace hinterland::atfork
