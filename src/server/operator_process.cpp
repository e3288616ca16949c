#include "server/operator_process.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/mutex.hpp"
#include "base/units.hpp"
#include "server/confine.hpp"

namespace hinterland {

using far::wire::Code;

namespace {

constexpr std::int32_t kExited = -1;
constexpr std::size_t kPieces = far::wire::kPagesMax;
constexpr std::uint64_t kMemoryBytes = 256 * kMiB;  // of the worker
// An operator that sleeps takes no processor's time: it has so many seconds in all.
constexpr time_t kSeconds = 10;
// The kernel ends the worker long before.
constexpr std::uint64_t kGiveUpNs = 3 * kSeconds * std::uint64_t{1'000'000'000};

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(HINTERLAND_COVERAGE)
constexpr bool kConfined = false;  // a sanitizer makes system calls, and takes memory, of its own
#else
constexpr bool kConfined = true;
#endif

void* shared_memory(std::size_t bytes) {
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return memory != MAP_FAILED ? memory : nullptr;
}

void limit_time(bool on) {
  itimerval processor{}, all{};
  if (on) {
    processor.it_value.tv_usec = HL_OPERATOR_TIME_MS * 1000;
    all.it_value.tv_sec = kSeconds;
  }
  ::setitimer(ITIMER_PROF, &processor, nullptr);
  ::setitimer(ITIMER_REAL, &all, nullptr);
}

// A child that dies with its parent, has the default handlers, and is no target of what a terminal or a service
// manager sends to all.
void settle_child(pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);  // no core file with clients' pages in it
  if (::getppid() != parent) ::_exit(0);
  for (int number = 1; number < NSIG; ++number) ::signal(number, SIG_DFL);
  for (int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) ::signal(number, SIG_IGN);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

void keep_standard_error_only() {
  int nowhere = ::open("/dev/null", O_RDWR);
  if (nowhere >= 0) {
    ::dup2(nowhere, 0);
    ::dup2(nowhere, 1);
  }
  ::close_range(3, ~0u, 0);
}

}  // namespace

// Of server and worker. What the worker writes there is looked at as numbers and as results, and nothing follows from
// the rest.
struct OperatorProcess::Shared {
  std::atomic<std::uint32_t> asked{0};     // futex: the message that is to be computed
  std::atomic<std::uint32_t> answered{0};  // futex: the message that was, or that the worker died of
  std::atomic<std::int32_t> died{0};       // of the last message: 0, the signal that ended the worker, or kExited
  std::uint32_t number = 0, pieces = 0;
  std::array<std::uint64_t, kPieces> words;
  std::array<std::uint16_t, kPieces> offsets, bytes;
  alignas(16) std::array<std::byte, HL_OPERATOR_ARGUMENT_MAX> argument;
  alignas(16) std::array<std::array<std::byte, HL_OPERATOR_RESULT_MAX>, kPieces> results;
};

Status OperatorProcess::share() {
  void* shared = shared_memory(sizeof(Shared));
  inputs_ = static_cast<std::byte*>(shared_memory(kPieces * kPageSize));
  if (shared == nullptr || inputs_ == nullptr)
    return std::unexpected(Error::make(errno, "operators: no memory to share with their process"));
  shared_ = new (shared) Shared;
  return {};
}

Result<std::unique_ptr<OperatorProcess>> OperatorProcess::start(std::vector<LoadedOperator> operators) {
  std::unique_ptr<OperatorProcess> made(new OperatorProcess(std::move(operators)));
  if (Status shared = made->share(); !shared) return std::unexpected(shared.error());
  const pid_t parent = ::getpid();
  made->keeper_ = ::fork();
  if (made->keeper_ < 0)
    return std::unexpected(Error::make(errno, "operators: cannot start a process for them")
                               .remedy("leave --operators out, or raise the limit of processes: ulimit -u"));
  if (made->keeper_ == 0) {
    settle_child(parent);
    keep_standard_error_only();
    made->keep();
  }
  return made;
}

OperatorProcess::~OperatorProcess() {
  // Where the server is confined it may do neither, and ends now, which ends them.
  if (keeper_ > 0 && ::kill(keeper_, SIGKILL) == 0) ::waitpid(keeper_, nullptr, 0);
  if (shared_ != nullptr) ::munmap(shared_, sizeof(Shared));
  if (inputs_ != nullptr) ::munmap(inputs_, kPieces * kPageSize);
}

// --- the keeper and the worker -----------------------------------------------------------------------------------

void OperatorProcess::keep() {
  for (;;) {
    const pid_t keeper = ::getpid();
    const pid_t worker = ::fork();
    if (worker == 0) {
      settle_child(keeper);
      work();
    }
    int status = 0;
    while (worker > 0 && ::waitpid(worker, &status, 0) < 0 && errno == EINTR) continue;
    const std::uint32_t message = shared_->asked.load();
    const bool owed = worker > 0 && shared_->answered.load() != message;
    if (owed) {
      shared_->died.store(WIFSIGNALED(status) ? WTERMSIG(status) : kExited);
      shared_->answered.store(message);
    }
    futex_wake(&shared_->answered, 1, true);  // also when it died between its answer and its call
    if (!owed) ::sleep(1);  // not for anything that was asked: let it not die a thousand times a second
  }
}

void OperatorProcess::work() {
  ::mprotect(inputs_, kPieces * kPageSize, PROT_READ);
  static_cast<void>(::setpriority(PRIO_PROCESS, 0, 19));
  if (kConfined) {
    const rlimit memory{kMemoryBytes, kMemoryBytes};
    ::setrlimit(RLIMIT_DATA, &memory);
    static_cast<void>(confine_operators());  // said by confine() of the server, on a kernel without filters
  }
  std::uint32_t done = shared_->answered.load();
  for (;;) {
    const std::uint32_t asked = shared_->asked.load();
    if (asked == done) {
      futex_wait(&shared_->asked, asked, 0, true);
      continue;
    }
    limit_time(true);
    compute_message();
    limit_time(false);
    done = asked;
    shared_->answered.store(done);
    futex_wake(&shared_->answered, 1, true);
  }
}

void OperatorProcess::compute_message() {
  const hl_operator& which = *operators_[shared_->number].what;
  for (std::uint32_t i = 0; i < shared_->pieces; ++i) {
    std::memset(shared_->results[i].data(), 0, which.result_bytes);
    which.compute(shared_->argument.data(), shared_->words[i], inputs_ + i * kPageSize + shared_->offsets[i],
                  shared_->bytes[i], shared_->results[i].data());
  }
}

// --- the server --------------------------------------------------------------------------------------------------

std::optional<std::uint32_t> OperatorProcess::find(const far::OperatorName& name) const {
  for (std::uint32_t number = 0; number < operators_.size(); ++number) {
    auto here = far::OperatorName::of(*operators_[number].what);
    if (here && *here == name && get(number) != nullptr) return number;
  }
  return std::nullopt;
}

const hl_operator* OperatorProcess::get(std::uint32_t number) const {
  // relaxed: nothing else follows from it
  if (number >= operators_.size() || withdrawn_[number].load(std::memory_order_relaxed)) return nullptr;
  return operators_[number].what;
}

Code OperatorProcess::run(std::uint32_t number, std::span<const std::byte> argument, std::span<const Piece> pieces,
                          std::byte* results) {
  const hl_operator* which = get(number);
  if (which == nullptr || broken_) return Code::no_operator;
  shared_->number = number;
  shared_->pieces = static_cast<std::uint32_t>(pieces.size());
  shared_->argument.fill(std::byte{0});
  std::memcpy(shared_->argument.data(), argument.data(), argument.size());
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const Piece& piece = pieces[i];
    shared_->words[i] = piece.word;
    shared_->offsets[i] = piece.offset;
    shared_->bytes[i] = piece.bytes;
    std::memcpy(inputs_ + i * kPageSize + piece.offset, piece.page + piece.offset, piece.bytes);
  }
  shared_->died.store(0);
  const std::uint32_t message = shared_->answered.load() + 1;
  shared_->asked.store(message);
  futex_wake(&shared_->asked, 1, true);
  broken_ = !wait_for(message);
  if (broken_) log::warning("the process of the operators does not answer: none is offered any more");
  if (broken_) return Code::no_operator;
  // An operator that reads beyond its piece finds nothing of the client before.
  for (std::size_t i = 0; i < pieces.size(); ++i)
    std::memset(inputs_ + i * kPageSize + pieces[i].offset, 0, pieces[i].bytes);
  if (const int died = shared_->died.load(); died != 0) return withdraw(number, died);
  for (std::size_t i = 0; i < pieces.size(); ++i)
    std::memcpy(results + i * which->result_bytes, shared_->results[i].data(), which->result_bytes);
  return Code::ok;
}

bool OperatorProcess::wait_for(std::uint32_t message) {
  const std::uint64_t end = now_ns() + kGiveUpNs;
  for (;;) {
    const std::uint32_t answered = shared_->answered.load();
    if (answered == message) return true;
    const std::uint64_t now = now_ns();
    if (now >= end) return false;
    futex_wait(&shared_->answered, answered, end - now, true);
  }
}

Code OperatorProcess::withdraw(std::uint32_t number, int died) {
  const LoadedOperator& which = operators_[number];
  // Whoever is short of memory, or somebody who may: that says nothing of the operator.
  if (died == SIGKILL) return Code::bad_request;
  withdrawn_[number].store(true, std::memory_order_relaxed);
  const char* why = died == kExited   ? "it ended its process"
                    : died == SIGPROF ? "it took too long"
                    : died == SIGALRM ? "it did not return"
                                      : ::strsignal(died);
  log::warning("operator %s (%s) is withdrawn until the server is started anew: %s", which.what->name,
               which.path.c_str(), why);
  return Code::no_operator;
}

}  // namespace hinterland
