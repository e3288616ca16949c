// Sockets and waiting.
#include <netinet/in.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>

#include "signal/held.hpp"
#include "signal/interposed.hpp"
#include "signal/masks.hpp"
#include "signal/transfers.hpp"

using namespace hinterland;

HL_INTERPOSED(ssize_t, recvfrom,
              (int socket, void* bytes, size_t count, int flags, sockaddr* from, socklen_t* size)) {
  if (!self_paging()) return NEXT(recvfrom)(socket, bytes, count, flags, from, size);
  Held held;
  held.address(from, size);
  return held.done(in_steps(socket, bytes, count, false, [=](void* at, size_t some, size_t) {
    return NEXT(recvfrom)(socket, at, some, flags, from, size);
  }));
}
HL_INTERPOSED(ssize_t, sendto,
              (int socket, const void* bytes, size_t count, int flags, const sockaddr* to, socklen_t size)) {
  if (!self_paging()) return NEXT(sendto)(socket, bytes, count, flags, to, size);
  Held held;
  held.in(to, size);
  return held.done(in_steps(socket, bytes, count, true, [=](void* at, size_t some, size_t) {
    return NEXT(sendto)(socket, at, some, flags, to, size);
  }));
}
// MSG_WAITALL asks for all of it, in as many steps as it takes; MSG_PEEK for the same bytes each time.
HL_INTERPOSED(ssize_t, recv, (int socket, void* bytes, size_t count, int flags)) {
  if (!self_paging()) return NEXT(recv)(socket, bytes, count, flags);
  auto one = [=](void* at, size_t some, size_t) { return NEXT(recv)(socket, at, some, flags); };
  if ((flags & MSG_WAITALL) == 0 || (flags & MSG_PEEK) != 0 || count <= kHeldMax)
    return in_steps(socket, bytes, count, false, one);
  size_t done = 0;
  while (done < count) {
    size_t step = count - done < kHeldMax ? count - done : kHeldMax;
    ssize_t got = in_steps(socket, static_cast<char*>(bytes) + done, step, false, one);
    if (got < 0) return done != 0 ? static_cast<ssize_t>(done) : got;
    done += static_cast<size_t>(got);
    if (static_cast<size_t>(got) < step) break;
  }
  return static_cast<ssize_t>(done);
}
HL_INTERPOSED(ssize_t, send, (int socket, const void* bytes, size_t count, int flags)) {
  if (!self_paging()) return NEXT(send)(socket, bytes, count, flags);
  return in_steps(socket, bytes, count, true,
                  [=](void* at, size_t some, size_t) { return NEXT(send)(socket, at, some, flags); });
}

HL_HELD(ssize_t, recvmsg, (int socket, msghdr* message, int flags), (socket, message, flags),
        held.message(message, true))
HL_HELD(ssize_t, sendmsg, (int socket, const msghdr* message, int flags), (socket, message, flags),
        held.message(message, false))

HL_HELD(int, recvmmsg, (int socket, mmsghdr* messages, unsigned count, int flags, timespec* timeout),
        (socket, messages, count, flags, timeout), held.messages(messages, count, true), held.out(timeout))
HL_HELD(int, sendmmsg, (int socket, mmsghdr* messages, unsigned count, int flags), (socket, messages, count, flags),
        held.messages(messages, count, false))

HL_HELD(int, accept, (int socket, sockaddr* from, socklen_t* size), (socket, from, size), held.address(from, size))
HL_HELD(int, accept4, (int socket, sockaddr* from, socklen_t* size, int flags), (socket, from, size, flags),
        held.address(from, size))
HL_HELD(int, getsockname, (int socket, sockaddr* name, socklen_t* size), (socket, name, size),
        held.address(name, size))
HL_HELD(int, getpeername, (int socket, sockaddr* name, socklen_t* size), (socket, name, size),
        held.address(name, size))
HL_HELD(int, bind, (int socket, const sockaddr* name, socklen_t size), (socket, name, size), held.in(name, size))
HL_HELD(int, connect, (int socket, const sockaddr* name, socklen_t size), (socket, name, size), held.in(name, size))
HL_HELD(int, getsockopt, (int socket, int level, int name, void* value, socklen_t* size),
        (socket, level, name, value, size), held.address(value, size))
HL_HELD(int, setsockopt, (int socket, int level, int name, const void* value, socklen_t size),
        (socket, level, name, value, size), held.in(value, size))
HL_HELD(int, socketpair, (int domain, int type, int protocol, int* pair), (domain, type, protocol, pair),
        held.out(pair, 2 * sizeof *pair))
HL_HELD(int, pipe, (int* pair), (pair), held.out(pair, 2 * sizeof *pair))
HL_HELD(int, pipe2, (int* pair, int flags), (pair, flags), held.out(pair, 2 * sizeof *pair))

HL_HELD(int, poll, (pollfd * waits, nfds_t count, int timeout), (waits, count, timeout),
        held.out(waits, count * sizeof *waits))
// libc copies the time limit.
HL_HELD(int, ppoll, (pollfd * waits, nfds_t count, const timespec* timeout, const sigset_t* mask),
        (waits, count, timeout, MaskForKernel(mask).get()), held.out(waits, count * sizeof *waits))

static void hold_sets(Held& held, int count, const fd_set* a, const fd_set* b, const fd_set* c) {
  size_t bytes = count > 0 ? (static_cast<size_t>(count) + 63) / 64 * 8 : 0;
  for (const fd_set* set : {a, b, c}) held.out(set, bytes);
}
HL_HELD(int, select, (int count, fd_set* reads, fd_set* writes, fd_set* others, timeval* timeout),
        (count, reads, writes, others, timeout), hold_sets(held, count, reads, writes, others), held.out(timeout))
HL_HELD(int, pselect,
        (int count, fd_set* reads, fd_set* writes, fd_set* others, const timespec* timeout, const sigset_t* mask),
        (count, reads, writes, others, timeout, MaskForKernel(mask).get()),
        hold_sets(held, count, reads, writes, others))

HL_HELD(int, epoll_wait, (int set, epoll_event* events, int count, int timeout), (set, events, count, timeout),
        held.out(events, count > 0 ? static_cast<size_t>(count) * sizeof *events : 0))
HL_HELD(int, epoll_pwait, (int set, epoll_event* events, int count, int timeout, const sigset_t* mask),
        (set, events, count, timeout, MaskForKernel(mask).get()),
        held.out(events, count > 0 ? static_cast<size_t>(count) * sizeof *events : 0))
HL_HELD(int, epoll_pwait2, (int set, epoll_event* events, int count, const timespec* timeout, const sigset_t* mask),
        (set, events, count, timeout, MaskForKernel(mask).get()),
        held.out(events, count > 0 ? static_cast<size_t>(count) * sizeof *events : 0), held.in(timeout))
HL_HELD(int, epoll_ctl, (int set, int what, int file, epoll_event* event), (set, what, file, event), held.in(event))
