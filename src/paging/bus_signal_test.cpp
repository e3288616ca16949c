// Signal mode with the real kernel: faults in far memory, everybody else's SIGBUS, and what system calls need.
#include "paging/bus_signal.hpp"

#include <gtest/gtest.h>
#include <pthread.h>
#include <setjmp.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <thread>
#include <vector>

#include "base/stats.hpp"
#include "paging/testing/real_pager.hpp"

namespace hinterland::testing {
namespace {

constexpr int kReadWrite = PROT_READ | PROT_WRITE;
constexpr std::size_t kBytes = 16 * kMiB;  // four budgets

// The body runs in a process of its own and returns what is wrong.
void by_signal(const std::function<std::string(Pager&)>& body, const char* far_url = "mem:") {
  if (std::string reason = why_no_real_pager(); !reason.empty()) GTEST_SKIP() << reason;
  run_with_real_pager({far_url, true, true}, body);
}

std::uint64_t* words_of(std::uintptr_t address) { return reinterpret_cast<std::uint64_t*>(address); }

// Every word holds its number.
std::uintptr_t filled(Pager& pager) {
  auto address = static_cast<std::uintptr_t>(pager.map(kBytes, kPageSize, kReadWrite));
  for (std::size_t i = 0; i < kBytes / 8; ++i) words_of(address)[i] = i;
  return address;
}
bool is_filled(std::uintptr_t address) {
  for (std::size_t i = 0; i < kBytes / 8; ++i)
    if (words_of(address)[i] != i) return false;
  return true;
}

std::uint64_t counted(Counter counter) { return stat_page()->counters[counter]; }

TEST(BusSignalTest, FaultsAreServedWithoutAHandlerThread) {
  by_signal([](Pager& pager) -> std::string {
    std::uintptr_t address = filled(pager);
    if (!is_filled(address) || !is_filled(address)) return "a word is wrong";
    if (counted(Counter::faults_first_touch) == 0 || counted(Counter::faults_read) == 0) return "nothing was counted";
    words_of(address)[0] = 0;  // far by now; written, it is clean no longer
    if (has_thread("hl-faults") || has_thread("hl-faults-more")) return "there is a handler thread";
    return "";
  });
}

TEST(BusSignalTest, KeepsErrno) {
  by_signal([](Pager& pager) -> std::string {
    std::uintptr_t address = filled(pager);
    errno = EILSEQ;
    for (std::size_t i = 0; i < kBytes / 8; i += 512) {
      if (words_of(address)[i] != i) return "a word is wrong";
      if (errno != EILSEQ) return "a fault changed errno";
    }
    return "";
  });
}

// The kernel writes the signal's frame to the stack, or cannot, and then the process is gone.
TEST(BusSignalTest, AThreadOnAFarStackHasAnotherForItsFaults) {
  by_signal([](Pager& pager) -> std::string {
    constexpr std::size_t kStack = 512 * kKiB;
    auto stack = static_cast<std::uintptr_t>(pager.map(kStack, kPageSize, kReadWrite));
    std::uintptr_t data = filled(pager);
    struct Work {
      std::uintptr_t data;
      bool right = false;
    } work{data};
    auto body = [](void* argument) -> void* {
      static std::array<char, 64 * 1024> alternate, serving;
      stack_t own{alternate.data(), 0, alternate.size()};
      sigaltstack(&own, nullptr);
      bus_signal::use_stack(serving.data(), serving.size());
      auto* asked = static_cast<Work*>(argument);
      // Each pass pushes the stack out; each call needs it.
      asked->right = is_filled(asked->data) && is_filled(asked->data);
      // What holds pages moves pages: it must not stand on one of them.
      Pager& here = *Pager::current();
      for (std::size_t at = 0; at < kBytes; at += 64 * kKiB) {
        asked->right = here.hold_for_call(asked->data + at, 64 * kKiB, true) && asked->right;
        here.let_go_after_call(asked->data + at, 64 * kKiB);
      }
      return nullptr;
    };
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstack(&attributes, reinterpret_cast<void*>(stack), kStack);
    // What the kernel writes when the thread starts and ends cannot wait for a fault.
    pager.hold(stack + kStack - 2 * kPageSize, 2 * kPageSize);
    pthread_t thread;
    if (pthread_create(&thread, &attributes, body, &work) != 0) return "pthread_create";
    pthread_join(thread, nullptr);
    return work.right ? "" : "a word is wrong";
  });
}

// --- SIGBUS that is not ours -----------------------------------------------------------------------------------

sigjmp_buf g_back;
volatile sig_atomic_t g_signals = 0;
std::atomic<std::uintptr_t> g_address{0};
std::uintptr_t g_far = 0;

void jump_back(int, siginfo_t* info, void*) {
  g_address.store(reinterpret_cast<std::uintptr_t>(info->si_addr));
  siglongjmp(g_back, 1);
}
// A handler of the program's that touches far memory itself.
void count_and_read(int, siginfo_t* info, void*) {
  g_address.store(reinterpret_cast<std::uintptr_t>(info->si_addr));
  if (is_filled(g_far)) g_signals = g_signals + 1;
}

void set_handler(void (*handler)(int, siginfo_t*, void*), int flags = 0) {
  struct sigaction action{};
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO | flags;
  bus_signal::change_action(&action, nullptr);
}

// A page of a mapping whose file is empty.
char* beyond_the_file() {
  int file = memfd_create("hinterland-test", MFD_CLOEXEC);
  void* mapped = mmap(nullptr, kPageSize, kReadWrite, MAP_SHARED, file, 0);
  close(file);
  return static_cast<char*>(mapped);
}

TEST(BusSignalTest, TheProgramsOwnGoesToItsHandler) {
  by_signal([](Pager& pager) -> std::string {
    std::uintptr_t address = filled(pager);
    set_handler(jump_back);
    char* foreign = beyond_the_file();
    for (int round = 0; round < 3; ++round) {
      if (sigsetjmp(g_back, 1) == 0) {
        foreign[8] = 1;
        return "no signal";
      }
      if (g_address.load() != reinterpret_cast<std::uintptr_t>(foreign) + 8) return "a wrong address";
      if (!is_filled(address)) return "a word is wrong";
    }
    struct sigaction now{};
    bus_signal::change_action(nullptr, &now);
    return now.sa_sigaction == jump_back && now.sa_flags == SA_SIGINFO ? "" : "not the program's action";
  });
}

// The same in the middle of the window: a file mapped there by the program.
TEST(BusSignalTest, AForeignMappingInTheWindowIsNotOurs) {
  by_signal([](Pager& pager) -> std::string {
    filled(pager);
    auto address = static_cast<std::uintptr_t>(pager.map(kPageSize, kPageSize, kReadWrite));
    pager.surrender(address, kPageSize);
    int file = memfd_create("hinterland-test", MFD_CLOEXEC);
    mmap(reinterpret_cast<void*>(address), kPageSize, kReadWrite, MAP_SHARED | MAP_FIXED, file, 0);
    set_handler(jump_back);
    if (sigsetjmp(g_back, 1) == 0) {
      *reinterpret_cast<volatile char*>(address) = 1;
      return "no signal";
    }
    return g_address.load() == address ? "" : "a wrong address";
  });
}

TEST(BusSignalTest, AHandlerMayTouchFarMemory) {
  by_signal([](Pager& pager) -> std::string {
    g_far = filled(pager);
    set_handler(count_and_read);
    for (int i = 0; i < 3; ++i) syscall(SYS_tgkill, getpid(), gettid(), SIGBUS);
    return g_signals == 3 ? "" : "the handler did not run, or saw wrong words";
  });
}

// Its faults' frames must not be written over ours, on the same alternate stack.
TEST(BusSignalTest, AHandlerMayTouchFarMemoryWhereThereIsAnAlternateStack) {
  by_signal([](Pager& pager) -> std::string {
    static std::array<char, 64 * 1024> alternate, serving;
    stack_t own{alternate.data(), 0, alternate.size()};
    sigaltstack(&own, nullptr);
    bus_signal::use_stack(serving.data(), serving.size());
    g_far = filled(pager);
    for (int flags : {0, SA_ONSTACK}) {
      set_handler(count_and_read, flags);
      syscall(SYS_tgkill, getpid(), gettid(), SIGBUS);
    }
    return g_signals == 2 ? "" : "the handler did not run, or saw wrong words";
  });
}

void count_and_read_a_little(int, siginfo_t*, void*) {
  constexpr std::size_t kStep = 997 * 512;
  for (std::size_t i = static_cast<std::size_t>(g_signals) % 512; i < kBytes / 8; i += kStep)
    if (words_of(g_far)[i] != i) return;
  g_signals = g_signals + 1;
}

// Sent at any moment, also while the thread serves a fault or holds pages.
TEST(BusSignalTest, OneThatIsSentInTheMiddleOfAFaultWaitsForItsEnd) {
  by_signal([](Pager& pager) -> std::string {
    static std::array<char, 64 * 1024> alternate, serving;
    stack_t own{alternate.data(), 0, alternate.size()};
    sigaltstack(&own, nullptr);
    bus_signal::use_stack(serving.data(), serving.size());
    g_far = filled(pager);
    set_handler(count_and_read_a_little);
    std::atomic<int> sent{0};
    std::atomic<bool> ends{false};
    pid_t self = gettid();
    std::thread sender([&] {
      for (; !ends.load(); ++sent) {
        syscall(SYS_tgkill, getpid(), self, SIGBUS);
        usleep(50);
      }
    });
    bool right = true;
    for (int round = 0; round < 5; ++round) {
      right = is_filled(g_far) && right;
      for (std::size_t at = 0; at < kBytes; at += 64 * kKiB) {
        right = pager.hold_for_call(g_far + at, 64 * kKiB, true) && right;
        pager.let_go_after_call(g_far + at, 64 * kKiB);
      }
    }
    ends.store(true);
    sender.join();
    if (!right) return "a word is wrong, or not there";
    return g_signals > 10 && g_signals <= sent.load() ? audit(pager, true) : "the handler did not run";
  });
}

TEST(BusSignalTest, AHandlerOnceIsOnce) {
  by_signal([](Pager& pager) -> std::string {
    g_far = filled(pager);
    set_handler(count_and_read, static_cast<int>(SA_RESETHAND));
    syscall(SYS_tgkill, getpid(), gettid(), SIGBUS);
    struct sigaction now{};
    bus_signal::change_action(nullptr, &now);
    return g_signals == 1 && now.sa_handler == SIG_DFL ? "" : "the action did not go back to the default";
  });
}

TEST(BusSignalTest, AProgramThatBlocksItStillHasItsMemory) {
  by_signal([](Pager& pager) -> std::string {
    g_far = filled(pager);
    set_handler(count_and_read);
    bus_signal::block(true);
    if (!is_filled(g_far)) return "a word is wrong";
    syscall(SYS_tgkill, getpid(), gettid(), SIGBUS);
    if (g_signals != 0) return "delivered though blocked";
    if (!bus_signal::block(false)) return "it was not blocked";
    return g_signals == 1 ? "" : "lost when it was let through";
  });
}

TEST(BusSignalTest, OneThatIsIgnoredIsIgnored) {
  by_signal([](Pager& pager) -> std::string {
    std::uintptr_t address = filled(pager);
    struct sigaction action{};
    action.sa_handler = SIG_IGN;
    bus_signal::change_action(&action, nullptr);
    kill(getpid(), SIGBUS);
    return is_filled(address) ? "" : "a word is wrong";
  });
}

TEST(BusSignalTest, WithoutAHandlerTheProgramEndsByIt) {
  by_signal([](Pager& pager) -> std::string {
    filled(pager);
    for (int sent = 0; sent < 2; ++sent) {
      pid_t child = 0;
      // Not the pager's fork: the child has no far memory, and needs none.
      if (child = static_cast<pid_t>(syscall(SYS_fork)); child == 0) {
        struct sigaction by_default{};
        by_default.sa_handler = SIG_DFL;
        bus_signal::change_action(&by_default, nullptr);
        if (sent != 0)
          syscall(SYS_tgkill, getpid(), gettid(), SIGBUS);
        else
          beyond_the_file()[0] = 1;
        _exit(0);
      }
      int status = 0;
      waitpid(child, &status, 0);
      if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGBUS) return "it did not end by SIGBUS";
    }
    return "";
  });
}

bool is_resident(std::uintptr_t address) {
  unsigned char there = 0;
  return mincore(reinterpret_cast<void*>(address), kPageSize, &there) == 0 && (there & 1) != 0;
}

// I1: a copy of the process that libc did not make has the parent's descriptor, and must bring nothing in with it:
// not where it mapped a file of its own in the place of a page that is far in the parent.
TEST(BusSignalTest, ACopysFaultsDoNotReachItsParent) {
  by_signal([](Pager& pager) -> std::string {
    std::uintptr_t address = filled(pager), end = address + kBytes;
    while (address < end && is_resident(address)) address += kPageSize;
    if (address == end) return "no page is far";
    int file = memfd_create("hinterland-test", MFD_CLOEXEC);
    pid_t child = 0;
    if (child = static_cast<pid_t>(syscall(SYS_fork)); child == 0) {
      struct sigaction by_default{};
      by_default.sa_handler = SIG_DFL;
      bus_signal::change_action(&by_default, nullptr);
      void* place = reinterpret_cast<void*>(address);
      if (mmap(place, kPageSize, kReadWrite, MAP_SHARED | MAP_FIXED, file, 0) != place) _exit(1);
      words_of(address)[0] = 1;  // beyond the end of the file
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGBUS) return "it did not end by SIGBUS";
    return is_resident(address) ? "the parent has a page that it did not ask for" : "";
  });
}

// 1: the word is right; 0: it is wrong; 2: a signal came instead.
__attribute__((noinline)) int look_at(std::uintptr_t address, std::size_t i) {
  if (sigsetjmp(g_back, 1) != 0) return 2;
  return words_of(address)[i] == i ? 1 : 0;
}

// As filled(), one page. A page that leaves half written may be lost when it is asked for again: the signal comes.
__attribute__((noinline)) void fill_words(std::uintptr_t address, std::size_t first) {
  for (std::size_t i = first; i < first + kPageSize / 8; ++i) words_of(address)[i] = i;
}
__attribute__((noinline)) void fill_page(std::uintptr_t address, std::size_t first) {
  if (sigsetjmp(g_back, 1) == 0) fill_words(address, first);
}

// I4: a page that cannot be had is SIGBUS, with the address, never zeros and never a fault without end.
TEST(BusSignalTest, ALostPageIsTheProgramsSignal) {
  by_signal(
      [](Pager& pager) -> std::string {
        auto address = static_cast<std::uintptr_t>(pager.map(kBytes, kPageSize, kReadWrite));
        set_handler(jump_back);
        for (std::size_t i = 0; i < kBytes / 8; i += 512) fill_page(address, i);
        for (std::size_t i = 0; i < kBytes / 8; i += 512) {
          int seen = look_at(address, i);
          if (seen == 0) return "a word is wrong";
          if (seen == 2 && page_floor(g_address.load()) != address + i * 8) return "a wrong address";
          if (seen == 2) g_signals = g_signals + 1;
        }
        return g_signals != 0 ? "" : "no page was lost: nothing was tested";
      },
      "sim:fail_reads=0.2,inner=mem:");  // of pages that are asked for, and with read-ahead those are few
}

// --- system calls ----------------------------------------------------------------------------------------------

TEST(BusSignalTest, HeldBytesAreThereForSystemCalls) {
  by_signal([](Pager& pager) -> std::string {
    std::uintptr_t address = filled(pager);
    int file = memfd_create("hinterland-test", MFD_CLOEXEC);
    constexpr std::size_t kPiece = 256 * kKiB;
    if (pwrite(file, words_of(address), kBytes, 0) == static_cast<ssize_t>(kBytes)) return "nothing is far";
    for (std::size_t at = 0; at < kBytes; at += kPiece) {
      if (!pager.hold_for_call(address + at, kPiece, false)) return "not all was held";
      ssize_t wrote = pwrite(file, words_of(address + at), kPiece, static_cast<off_t>(at));
      pager.let_go_after_call(address + at, kPiece);
      if (wrote != static_cast<ssize_t>(kPiece)) return "pwrite of held bytes";
    }
    auto copy = static_cast<std::uintptr_t>(pager.map(kBytes, kPageSize, kReadWrite));
    for (std::size_t at = 0; at < kBytes; at += kPiece) {
      pager.hold_for_call(copy + at, kPiece, true);
      ssize_t got = pread(file, words_of(copy + at), kPiece, static_cast<off_t>(at));
      pager.let_go_after_call(copy + at, kPiece);
      if (got != static_cast<ssize_t>(kPiece)) return "pread into held bytes";
    }
    if (!is_filled(copy) || !is_filled(address)) return "a word is wrong";
    return audit(pager, true);
  });
}

TEST(BusSignalTest, HoldingWhatIsNotThereIsNoError) {
  by_signal([](Pager& pager) -> std::string {
    std::uintptr_t address = filled(pager);
    pager.unmap(address, kBytes);
    if (pager.hold_for_call(address, kBytes, true)) return "it says that all is there";
    errno = 0;
    bool refused = write(STDERR_FILENO, words_of(address), 8) < 0 && errno == EFAULT;
    pager.let_go_after_call(address, kBytes);
    return refused ? "" : "a write of unmapped bytes is not EFAULT";
  });
}

TEST(BusSignalTest, PinsAndLocksBringPagesIn) {
  by_signal([](Pager& pager) -> std::string {
    std::uintptr_t address = filled(pager);
    if (pager.pin(address, 64 * kKiB) != 0) return "pin";
    if (int error = pager.lock(address + kMiB, 64 * kKiB, 0); error != 0) return "mlock";
    if (!is_filled(address)) return "a word is wrong";
    for (std::uintptr_t at : {address, address + kMiB})
      if (write(memfd_create("hinterland-test", MFD_CLOEXEC), words_of(at), 64 * kKiB) != 64 * 1024)
        return "a page that must stay is not there";
    return pager.unpin(address, 64 * kKiB) == 0 ? "" : "unpin";
  });
}

}  // namespace
}  // namespace hinterland::testing
