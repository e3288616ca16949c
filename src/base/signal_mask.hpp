// The calling thread's signal mask, changed by the system call itself: libc's pthread_sigmask leaves out the signals
// that it keeps for itself.
//
// What the kernel reads and writes is not on the caller's stack: where that is far and faults are served by signal
// the kernel does not wait for the page. It would change the mask, and not say what it was.
#pragma once

#include <sys/syscall.h>

#include <csignal>
#include <cstdint>

#include "base/raw_call.hpp"

namespace hinterland::signal_mask {

struct Words {
  std::uint64_t word[8] = {};
  unsigned depth = 0;
};
extern __attribute__((tls_model("initial-exec"))) thread_local Words t_words;

// One of these words, for a moment. A handler that comes in that moment (of a fault: those are never blocked) takes
// another one; one that does not come back shifts all, which does no harm.
class Word {
 public:
  Word() : word_(t_words.word[t_words.depth++ % 8]) {}
  ~Word() { --t_words.depth; }
  Word(const Word&) = delete;
  Word& operator=(const Word&) = delete;
  volatile std::uint64_t& get() { return word_; }
  long address() const { return reinterpret_cast<long>(&word_); }

 private:
  volatile std::uint64_t& word_;
};

// Blocks these, too, and returns the mask as it was before. `stored` lies in memory that does not change: a handler
// that runs just before the call may come here itself.
inline std::uint64_t block(const std::uint64_t& stored) {
  Word before;
  raw::call(SYS_rt_sigprocmask, SIG_BLOCK, raw::word_of(&stored), before.address(), sizeof stored);
  return before.get();
}

// While signals are blocked.
inline void set(std::uint64_t mask) {
  Word wanted;
  wanted.get() = mask;
  raw::call(SYS_rt_sigprocmask, SIG_SETMASK, wanted.address(), 0, sizeof mask);
}

}  // namespace hinterland::signal_mask
