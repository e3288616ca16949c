// Probing userfaultfd: how it may be opened, and which features this kernel has.
#include "kernel/probe.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "base/raw_call.hpp"
#include "kernel/userfaultfd_abi.hpp"

namespace hinterland {
namespace {

constexpr const char* kDevice = "/dev/userfaultfd";  // since 6.1

DisabledFeatures g_disabled;

int read_sysctl_unprivileged() {
  int file = open("/proc/sys/vm/unprivileged_userfaultfd", O_RDONLY | O_CLOEXEC);
  if (file < 0) return -1;
  char digit = '?';
  ssize_t got = read(file, &digit, 1);
  close(file);
  return got == 1 && digit >= '0' && digit <= '9' ? digit - '0' : -1;
}

struct OpenedDescriptor {
  int descriptor;
  const char* way;
};

// One that also serves faults taken inside system calls: needs CAP_SYS_PTRACE, the sysctl, or the device file. The
// file is tried whatever the call said: a sandbox may forbid the call and hand in the file. `kept_device`: the file,
// opened when the process might still do that; -1: none.
Result<OpenedDescriptor> open_descriptor(int kept_device = -1) {
  long descriptor = syscall(SYS_userfaultfd, O_CLOEXEC);
  if (descriptor >= 0) return OpenedDescriptor{static_cast<int>(descriptor), "userfaultfd(2)"};
  int error = errno;
  int device = open_fault_device();
  if (device < 0 && kept_device < 0) return std::unexpected(fault_refusal(error, errno));
  int made = ioctl(device >= 0 ? device : kept_device, abi::kIoctlNewDescriptor, O_CLOEXEC);
  int device_error = errno;
  if (device >= 0) close(device);
  if (made < 0) return std::unexpected(fault_refusal(error, device_error));
  return OpenedDescriptor{made, kDevice};
}

Result<__u64> handshake(int descriptor, __u64 features) {
  uffdio_api api{};
  api.api = UFFD_API;
  api.features = features;
  if (ioctl(descriptor, UFFDIO_API, &api) != 0)
    return std::unexpected(Error::make(errno, "the userfaultfd handshake failed"));
  return api.features;
}

}  // namespace

Error fault_refusal(int call_error, int device_error) {
  if (call_error == EMFILE || call_error == ENFILE)
    return Error::make(call_error, "userfaultfd cannot be opened").remedy("run: ulimit -n 1024");
  if (call_error != EPERM && call_error != EACCES)
    return Error::make(call_error, "userfaultfd cannot be had from this kernel")
        .remedy(
            "use a kernel with CONFIG_USERFAULTFD (Debian's and Ubuntu's have it), outside of sandboxes that "
            "forbid the system call");
  int setting = read_sysctl_unprivileged();
  unsigned user = geteuid();
  if (setting > 0)
    return Error::make(0,
                       "userfaultfd is not permitted, although sysctl vm.unprivileged_userfaultfd is %d: a sandbox "
                       "forbids it",
                       setting)
        .remedy("run outside of it, or hand %s to it and let user %u read and write that", kDevice, user);
  const char* value = setting == 0 ? "0" : "not there";
  if (device_error == ENOENT)
    return Error::make(0, "userfaultfd is not permitted: sysctl vm.unprivileged_userfaultfd is %s", value)
        .remedy("run: sudo sysctl vm.unprivileged_userfaultfd=1");
  return Error::make(0,
                     "userfaultfd is not permitted: sysctl vm.unprivileged_userfaultfd is %s, and %s cannot be "
                     "opened",
                     value, kDevice)
      .remedy("run: sudo sysctl vm.unprivileged_userfaultfd=1 (or: sudo setfacl -m u:%u:rw %s)", user, kDevice);
}

int open_fault_device() { return open(kDevice, O_RDWR | O_CLOEXEC); }

bool faults_permitted() {
  if (Result<OpenedDescriptor> opened = open_descriptor(); opened) {
    close(opened->descriptor);
    return true;
  }
  long descriptor = syscall(SYS_userfaultfd, O_CLOEXEC);
  return descriptor < 0 && errno != EPERM && errno != EACCES;  // it fails for another reason
}

bool user_mode_faults_permitted() {
  long descriptor = syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
  if (descriptor >= 0) close(static_cast<int>(descriptor));
  return descriptor >= 0;
}

void disable_kernel_features(const DisabledFeatures& disabled) { g_disabled = disabled; }

Result<ProbedDescriptor> open_fault_descriptor(FaultDelivery delivery, int kept_device) {
  // The handshake can be done once a descriptor: ask a throw-away one first.
  Result<OpenedDescriptor> throw_away = open_descriptor(kept_device);
  if (!throw_away) return std::unexpected(throw_away.error());
  Result<__u64> offered = handshake(throw_away->descriptor, 0);
  close(throw_away->descriptor);
  if (!offered) return std::unexpected(offered.error());

  __u64 wanted = *offered & (UFFD_FEATURE_PAGEFAULT_FLAG_WP | UFFD_FEATURE_THREAD_ID | abi::kFeatureExactAddress |
                             abi::kFeaturePoison | abi::kFeatureMove);
  if (delivery == FaultDelivery::signals) {
    if ((*offered & UFFD_FEATURE_SIGBUS) == 0)
      return std::unexpected(Error::make(0, "this kernel cannot deliver faults by signal")
                                 .remedy("use Linux 4.14 or newer, or --fault message"));
    wanted |= UFFD_FEATURE_SIGBUS;
  }
  if (g_disabled.write_protect) wanted &= ~static_cast<__u64>(UFFD_FEATURE_PAGEFAULT_FLAG_WP);
  if (g_disabled.poison) wanted &= ~abi::kFeaturePoison;
  if (g_disabled.move) wanted &= ~abi::kFeatureMove;

  Result<OpenedDescriptor> opened = open_descriptor(kept_device);
  if (!opened) return std::unexpected(opened.error());
  if (Result<__u64> enabled = handshake(opened->descriptor, wanted); !enabled) {
    close(opened->descriptor);
    return std::unexpected(enabled.error());
  }
  ProbedDescriptor probed{opened->descriptor, {}, opened->way, *offered};
  probed.features.kernel_faults = delivery == FaultDelivery::messages;
  probed.features.write_protect = (wanted & UFFD_FEATURE_PAGEFAULT_FLAG_WP) != 0;
  probed.features.exact_address = (wanted & abi::kFeatureExactAddress) != 0;
  probed.features.thread_id = (wanted & UFFD_FEATURE_THREAD_ID) != 0;
  probed.features.poison = (wanted & abi::kFeaturePoison) != 0;
  probed.features.move = (wanted & abi::kFeatureMove) != 0;
  return probed;
}

// The page is not touched while it is protected: nobody would serve that.
bool read_write_protect_works() {
  Result<OpenedDescriptor> opened = open_descriptor();
  if (!opened) return false;
  bool works = false;
  void* page = mmap(nullptr, kPageSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page != MAP_FAILED && handshake(opened->descriptor, abi::kFeatureReadWriteProtect)) {
    *static_cast<volatile char*>(page) = 1;
    uffdio_register place{};
    place.range = {reinterpret_cast<std::uintptr_t>(page), kPageSize};
    place.mode = abi::kRegisterReadWriteProtect;
    abi::uffdio_rwprotect protect{place.range, abi::kReadWriteProtect};
    works = ioctl(opened->descriptor, UFFDIO_REGISTER, &place) == 0 &&
            ioctl(opened->descriptor, abi::kIoctlReadWriteProtect, &protect) == 0;
  }
  if (page != MAP_FAILED) munmap(page, kPageSize);
  close(opened->descriptor);
  return works;
}

int pidfd_for_self_advice() {
  if (g_disabled.vectored_discard) return -1;
  void* page = mmap(nullptr, kPageSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return -1;
  iovec range{page, kPageSize};
  auto accepted = [&](int descriptor) {
    return raw::checked(SYS_process_madvise, descriptor, &range, 1, MADV_DONTNEED, 0) == static_cast<long>(kPageSize);
  };
  int result = -1;
  if (accepted(abi::kPidfdSelfThreadGroup)) {
    result = abi::kPidfdSelfThreadGroup;
  } else {
    int descriptor = static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0));
    if (descriptor >= 0 && accepted(descriptor)) result = descriptor;
    if (descriptor >= 0 && result < 0) close(descriptor);
  }
  munmap(page, kPageSize);
  return result;
}

}  // namespace hinterland
