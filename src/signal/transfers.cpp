// read, write and their kin.
#include "signal/transfers.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "signal/interposed.hpp"

namespace hinterland {

bool is_one_message(int descriptor) {
  int saved_errno = errno, type = 0;
  socklen_t size = sizeof type;
  bool socket = syscall(SYS_getsockopt, descriptor, SOL_SOCKET, SO_TYPE, &type, &size) == 0;
  errno = saved_errno;
  return socket && type != SOCK_STREAM;
}

bool reads_on(int descriptor) {
  int saved_errno = errno;
  struct stat what;
  bool known = fstat(descriptor, &what) == 0;
  errno = saved_errno;
  return known && (S_ISREG(what.st_mode) || S_ISBLK(what.st_mode));
}

}  // namespace hinterland

using hinterland::holds_pins;
using hinterland::in_steps;
using hinterland::vector_in_steps;

HL_INTERPOSED(ssize_t, read, (int file, void* bytes, size_t count)) {
  if (!holds_pins()) return NEXT(read)(file, bytes, count);
  return in_steps(file, bytes, count, false,
                  [=](void* at, size_t size, size_t) { return NEXT(read)(file, at, size); });
}
HL_INTERPOSED(ssize_t, write, (int file, const void* bytes, size_t count)) {
  if (!holds_pins()) return NEXT(write)(file, bytes, count);
  return in_steps(file, bytes, count, true,
                  [=](void* at, size_t size, size_t) { return NEXT(write)(file, at, size); });
}

#define HL_AT_OFFSET(name, pointer, in)                                                 \
  HL_INTERPOSED(ssize_t, name, (int file, pointer bytes, size_t count, off_t offset)) { \
    if (!holds_pins()) return NEXT(name)(file, bytes, count, offset);                   \
    return in_steps(file, bytes, count, in, [=](void* at, size_t size, size_t done) {   \
      return NEXT(name)(file, at, size, offset + static_cast<off_t>(done));             \
    });                                                                                 \
  }
HL_AT_OFFSET(pread, void*, false)
HL_AT_OFFSET(pread64, void*, false)
HL_AT_OFFSET(pwrite, const void*, true)
HL_AT_OFFSET(pwrite64, const void*, true)

#define HL_VECTOR(name, in)                                                                                \
  HL_INTERPOSED(ssize_t, name, (int file, const iovec* parts, int count)) {                                \
    if (!holds_pins()) return NEXT(name)(file, parts, count);                                              \
    return vector_in_steps(file, parts, count, in,                                                         \
                           [=](const iovec* at, int some, size_t) { return NEXT(name)(file, at, some); }); \
  }
HL_VECTOR(readv, false)
HL_VECTOR(writev, true)

#define HL_VECTOR_AT_OFFSET(name, in)                                                            \
  HL_INTERPOSED(ssize_t, name, (int file, const iovec* parts, int count, off_t offset)) {        \
    if (!holds_pins()) return NEXT(name)(file, parts, count, offset);                            \
    return vector_in_steps(file, parts, count, in, [=](const iovec* at, int some, size_t done) { \
      return NEXT(name)(file, at, some, offset + static_cast<off_t>(done));                      \
    });                                                                                          \
  }
HL_VECTOR_AT_OFFSET(preadv, false)
HL_VECTOR_AT_OFFSET(preadv64, false)
HL_VECTOR_AT_OFFSET(pwritev, true)
HL_VECTOR_AT_OFFSET(pwritev64, true)

// offset -1: from and to the file's own position.
#define HL_VECTOR_WITH_FLAGS(name, in)                                                                   \
  HL_INTERPOSED(ssize_t, name, (int file, const iovec* parts, int count, off_t offset, int flags)) {     \
    if (!holds_pins()) return NEXT(name)(file, parts, count, offset, flags);                             \
    return vector_in_steps(file, parts, count, in, [=](const iovec* at, int some, size_t done) {         \
      return NEXT(name)(file, at, some, offset < 0 ? offset : offset + static_cast<off_t>(done), flags); \
    });                                                                                                  \
  }
HL_VECTOR_WITH_FLAGS(preadv2, false)
HL_VECTOR_WITH_FLAGS(preadv64v2, false)
HL_VECTOR_WITH_FLAGS(pwritev2, true)
HL_VECTOR_WITH_FLAGS(pwritev64v2, true)

// Programs that were compiled with _FORTIFY_SOURCE call these.
extern "C" [[noreturn]] void __chk_fail();

HL_INTERPOSED(ssize_t, __read_chk, (int file, void* bytes, size_t count, size_t room)) {
  if (count > room) __chk_fail();
  return read(file, bytes, count);
}
HL_INTERPOSED(ssize_t, __pread_chk, (int file, void* bytes, size_t count, off_t offset, size_t room)) {
  if (count > room) __chk_fail();
  return pread(file, bytes, count, offset);
}
HL_INTERPOSED(ssize_t, __pread64_chk, (int file, void* bytes, size_t count, off_t offset, size_t room)) {
  if (count > room) __chk_fail();
  return pread(file, bytes, count, offset);
}
HL_INTERPOSED(ssize_t, __recv_chk, (int socket, void* bytes, size_t count, size_t room, int flags)) {
  if (count > room) __chk_fail();
  return recv(socket, bytes, count, flags);
}
HL_INTERPOSED(ssize_t, __recvfrom_chk,
              (int socket, void* bytes, size_t count, size_t room, int flags, sockaddr* from, socklen_t* size)) {
  if (count > room) __chk_fail();
  return recvfrom(socket, bytes, count, flags, from, size);
}
HL_INTERPOSED(int, __poll_chk, (pollfd * waits, nfds_t count, int timeout, size_t room)) {
  if (room / sizeof *waits < count) __chk_fail();
  return poll(waits, count, timeout);
}
