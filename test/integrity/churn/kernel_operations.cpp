// System calls that read and write the memory: pipes and files.
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>

#include "worker.hpp"

namespace churn {

namespace {
constexpr std::size_t kPipeBytesMax = 60u << 10;  // a pipe takes 64 KiB, less what unaligned pages waste
constexpr std::size_t kFileBytesMax = 2u << 20;

// The span as two pieces, for readv and writev.
void halves(const Span& span, iovec (&pieces)[2]) {
  std::size_t first = span.bytes() / 3;
  pieces[0] = {span.address(), first};
  pieces[1] = {span.address() + first, span.bytes() - first};
}

}  // namespace

void Worker::through_pipe() {
  Span from = random_span(kPipeBytesMax), to = random_span(kPipeBytesMax);
  if (!from || !to || !intact(from)) return;
  from.count = to.count = std::min(from.count, to.count);
  ssize_t bytes = static_cast<ssize_t>(to.bytes());
  iovec pieces[2];
  halves(from, pieces);
  bool vectored = random_.one_in(2);
  ssize_t done = vectored ? writev(pipe_[1], pieces, 2) : write(pipe_[1], from.address(), from.bytes());
  if (done != bytes)
    fail(all_, mine_, "write of %zd bytes from %p to a pipe gave %zd", bytes, static_cast<void*>(from.address()),
         done);
  halves(to, pieces);
  done = vectored ? readv(pipe_[0], pieces, 2) : read(pipe_[0], to.address(), to.bytes());
  if (done != bytes)
    fail(all_, mine_, "read of %zd bytes from a pipe to %p gave %zd", bytes, static_cast<void*>(to.address()), done);
  copied(from, to, "pipe");
}

void Worker::through_file() {
  Span from = random_span(kFileBytesMax), to = random_span(kFileBytesMax);
  if (!from || !to || !intact(from)) return;
  from.count = to.count = std::min(from.count, to.count);
  ssize_t bytes = static_cast<ssize_t>(to.bytes());
  off_t at = static_cast<off_t>(random_.below(kFileBytesMax));
  ssize_t done = pwrite(file_, from.address(), from.bytes(), at);
  if (done != bytes)
    fail(all_, mine_, "pwrite of %zd bytes from %p gave %zd", bytes, static_cast<void*>(from.address()), done);
  done = pread(file_, to.address(), to.bytes(), at);
  if (done != bytes)
    fail(all_, mine_, "pread of %zd bytes to %p gave %zd", bytes, static_cast<void*>(to.address()), done);
  copied(from, to, "file");
}

}  // namespace churn
