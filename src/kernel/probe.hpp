// What this kernel and these privileges allow: opens a userfaultfd the best way there is and says what it can do.
// Used by the runtime at start, and by `hinterland run` and `hinterland doctor`.
#pragma once

#include <cstdint>

#include "base/error.hpp"
#include "kernel/kernel.hpp"

namespace hinterland {

struct ProbedDescriptor {
  int descriptor;  // the caller closes it
  KernelFeatures features;
  const char* way;        // how it could be had: "userfaultfd(2)" or "/dev/userfaultfd"
  std::uint64_t offered;  // the feature bits of the kernel, used by us or not
};

// A userfaultfd with the API handshake done and every feature on that exists, save those switched off with
// disable_kernel_features(). The error names the setting that forbids it and the command that mends it.
// `kept_device`: of open_fault_device(), borrowed.
Result<ProbedDescriptor> open_fault_descriptor(FaultDelivery delivery = FaultDelivery::messages,
                                               int kept_device = -1);

// /dev/userfaultfd, or -1 with errno. Who opened it makes userfaultfds from it also after the privileges are given
// up, and so do the forked children that inherit it: the kernel asks for permission when the file is opened. The
// caller closes it.
int open_fault_device();

// False: nothing but permission is missing.
bool faults_permitted();

// Faults of user code alone can be had, although those inside system calls may be forbidden: not enough for us.
bool user_mode_faults_permitted();

// Why there is no userfaultfd: errno of userfaultfd(2), and of opening /dev/userfaultfd (ENOENT: there is none).
Error fault_refusal(int call_error, int device_error);

// A descriptor (or the special number for "this process") that process_madvise(MADV_DONTNEED) accepts for ourselves;
// -1 when the kernel cannot. The caller closes it when it is >= 0.
int pidfd_for_self_advice();

// The features that `kernel` (open) has and that also work: each is tried out on pages that are thrown away.
KernelFeatures try_features(Kernel& kernel);

// Whether the kernel can tell of every use of a page that is there (RWP, Linux 7.2), tried out on a page that is
// thrown away. False where there is no userfaultfd to be had.
bool read_write_protect_works();

// Features not to use although they are there: for experiments, and to test the slower ways. Call before open.
struct DisabledFeatures {
  bool write_protect = false;
  bool move = false;
  bool poison = false;
  bool vectored_discard = false;
};
void disable_kernel_features(const DisabledFeatures& disabled);

}  // namespace hinterland
