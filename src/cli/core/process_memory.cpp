#include "cli/core/process_memory.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

namespace hinterland::cli {
namespace {

// 10 s: longer than a far device may take before it is given up and its pages are lost (--timeout, 5 s unless it is
// set). Counted in short waits, so that a machine that stood still meanwhile does not count.
constexpr int kWaitMs = 50, kWaitsMax = 200;

bool wait_for_answer(int channel) {
  pollfd waits{channel, POLLIN, 0};
  for (int i = 0; i < kWaitsMax; ++i)
    if (poll(&waits, 1, kWaitMs) == 1) return true;
  return false;
}

}  // namespace

ProcessMemory::ProcessMemory(pid_t pid) : pid_(pid) {
  memory_ = open(("/proc/" + std::to_string(pid) + "/mem").c_str(), O_RDONLY | O_CLOEXEC);
}

ProcessMemory::~ProcessMemory() {
  stop_reader();
  if (buffer_ != nullptr) munmap(buffer_, kBufferBytes);
  if (memory_ >= 0) close(memory_);
}

std::size_t ProcessMemory::read_resident(std::uint64_t address, void* to, std::size_t length) const {
  std::size_t done = 0;
  while (done < length) {
    ssize_t got = pread(memory_, static_cast<char*>(to) + done, length - done, static_cast<off_t>(address + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

std::size_t ProcessMemory::read(std::uint64_t address, void* to, std::size_t length) {
  std::size_t done = 0;
  while (done < length && !gave_up_) {
    std::size_t wanted = std::min(length - done, kBufferBytes);
    std::size_t got = ask_reader(address + done, wanted);
    std::memcpy(static_cast<char*>(to) + done, buffer_, got);
    done += got;
    if (got < wanted && !gave_up_) return done;
  }
  if (done < length) done += read_resident(address + done, static_cast<char*>(to) + done, length - done);
  return done;
}

bool ProcessMemory::start_reader() {
  if (buffer_ == nullptr) {
    void* memory = mmap(nullptr, kBufferBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return false;
    buffer_ = static_cast<std::byte*>(memory);
  }
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return false;
  pid_t parent = getpid();
  reader_ = fork();
  if (reader_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(0);
    serve_requests(ends[1]);
  }
  close(ends[1]);
  channel_ = ends[0];
  return reader_ > 0;
}

void ProcessMemory::stop_reader() {
  if (reader_ > 0) {
    kill(reader_, SIGKILL);
    waitpid(reader_, nullptr, 0);
  }
  if (channel_ >= 0) close(channel_);
  reader_ = channel_ = -1;
}

// process_vm_readv waits for faults where reads of /proc/PID/mem are refused: the kernel lets the first retry.
void ProcessMemory::serve_requests(int requests) const {
  Request request;
  while (recv(requests, &request, sizeof request, 0) == sizeof request) {
    iovec here{buffer_, request.length};
    iovec there{reinterpret_cast<void*>(request.address), request.length};
    ssize_t got = process_vm_readv(pid_, &here, 1, &there, 1, 0);
    if (send(requests, &got, sizeof got, MSG_NOSIGNAL) != sizeof got) break;
  }
  _exit(0);
}

std::size_t ProcessMemory::ask_reader(std::uint64_t address, std::size_t length) {
  if (reader_ < 0 && !start_reader()) {
    gave_up_ = true;
    return 0;
  }
  Request request{address, length};
  ssize_t answer = -1;
  bool answered = send(channel_, &request, sizeof request, MSG_NOSIGNAL) == sizeof request &&
                  wait_for_answer(channel_) && recv(channel_, &answer, sizeof answer, 0) == sizeof answer;
  if (!answered) {
    gave_up_ = true;
    stop_reader();
  }
  return answer > 0 ? static_cast<std::size_t>(answer) : 0;
}

}  // namespace hinterland::cli
