// What this kernel can do, and what is said when it may not.
#include "kernel/probe.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "kernel/userfaultfd_abi.hpp"

namespace hinterland {
namespace {

bool has(const char* text, const char* part) { return std::strstr(text, part) != nullptr; }

TEST(Probe, TheTrialsAgreeWithWhatTheKernelSays) {
  Result<ProbedDescriptor> probed = open_fault_descriptor();
  if (!probed) GTEST_SKIP() << probed.error().what();
  close(probed->descriptor);
  EXPECT_NE(probed->way[0], '\0');
  ASSERT_TRUE(real_kernel().open());
  KernelFeatures works = try_features(real_kernel());
  EXPECT_TRUE(works.kernel_faults);
  EXPECT_EQ(works.write_protect, (probed->offered & UFFD_FEATURE_PAGEFAULT_FLAG_WP) != 0);
  EXPECT_EQ(works.move, (probed->offered & abi::kFeatureMove) != 0);
  EXPECT_EQ(works.poison, (probed->offered & abi::kFeaturePoison) != 0);
  EXPECT_EQ(read_write_protect_works(), (probed->offered & abi::kFeatureReadWriteProtect) != 0);
}

TEST(Probe, WhatIsSwitchedOffDoesNotWork) {
  disable_kernel_features({.write_protect = true, .move = true, .poison = true, .vectored_discard = true});
  Status opened = real_kernel().open();
  disable_kernel_features({});
  if (!opened) GTEST_SKIP() << opened.error().what();
  KernelFeatures works = try_features(real_kernel());
  EXPECT_FALSE(works.write_protect);
  EXPECT_FALSE(works.move);
  EXPECT_FALSE(works.poison);
  EXPECT_FALSE(works.vectored_discard);
}

TEST(Probe, ARefusalNamesTheSettingAndTheCommand) {
  Error refused = fault_refusal(EPERM, EACCES);
  EXPECT_TRUE(has(refused.what(), "vm.unprivileged_userfaultfd")) << refused.what();
  EXPECT_TRUE(has(refused.next_step(), "/dev/userfaultfd")) << refused.next_step();
  Error without_device = fault_refusal(EPERM, ENOENT);
  EXPECT_TRUE(has(without_device.what(), "vm.unprivileged_userfaultfd")) << without_device.what();
  EXPECT_FALSE(has(without_device.what(), "/dev/userfaultfd")) << without_device.what();
  EXPECT_STRNE(without_device.next_step(), "");
}

TEST(Probe, OtherRefusalsHaveOtherRemedies) {
  EXPECT_TRUE(has(fault_refusal(ENOSYS, ENOENT).next_step(), "CONFIG_USERFAULTFD"));
  EXPECT_TRUE(has(fault_refusal(EMFILE, EMFILE).next_step(), "ulimit -n"));
}

}  // namespace
}  // namespace hinterland
