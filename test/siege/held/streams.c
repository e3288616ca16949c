// What the kernel holds for a receiver: pipes filled by vmsplice, passed on by splice and tee to pipes and to a
// connection, and what is sent without copies.
#include "held.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/errqueue.h>
#include <sys/socket.h>
#include <sys/uio.h>

static char g_received[1 << 20];  // not far

static void open_pipe(struct Stream* stream) {
  int ends[2];
  CHECK(pipe2(ends, O_NONBLOCK | O_CLOEXEC) == 0 && fcntl(ends[1], F_SETPIPE_SZ, 64 * kPage) > 0);
  *stream = (struct Stream){.in = ends[1], .out = ends[0]};
}

// A receiver that takes little before it reads, so that most stays with the sender.
static void open_connection(struct Stream* stream) {
  struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t length = sizeof here;
  int one = 1, little = 1 << 15, much = 1 << 21;
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  CHECK(listener >= 0 && setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &little, sizeof little) == 0);
  CHECK(bind(listener, (struct sockaddr*)&here, sizeof here) == 0 && listen(listener, 1) == 0);
  CHECK(getsockname(listener, (struct sockaddr*)&here, &length) == 0);
  int from = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  CHECK(setsockopt(from, SOL_SOCKET, SO_SNDBUF, &much, sizeof much) == 0);
  CHECK(connect(from, (struct sockaddr*)&here, sizeof here) == 0 && fcntl(from, F_SETFL, O_NONBLOCK) == 0);
  int to = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
  CHECK(to >= 0 && setsockopt(from, SOL_SOCKET, SO_ZEROCOPY, &one, sizeof one) == 0);
  close(listener);
  *stream = (struct Stream){.in = from, .out = to, .is_socket = true};
}

void open_streams(struct Lane* lane) {
  for (int i = 0; i < kPipes; ++i) open_pipe(&lane->streams[i]);
  open_connection(&lane->streams[kSocket]);
}

static struct Part* part_of(struct Stream* stream, int index) {
  return &stream->parts[(stream->first + index) % kParts];
}

size_t bytes_waiting(const struct Stream* stream) {
  size_t bytes = 0;
  for (int i = 0; i < stream->count; ++i) bytes += (size_t)stream->parts[(stream->first + i) % kParts].bytes;
  return bytes;
}

static void append_part(struct Stream* stream, struct Part part) {
  CHECK(stream->count < kParts);
  *part_of(stream, stream->count++) = part;
}

void append_cells(struct Lane* lane, struct Stream* stream, int cell, size_t bytes) {
  for (; bytes > 0; ++cell) {
    short now = (short)(bytes < kCell ? bytes : kCell);
    append_part(stream, (struct Part){.stamps = {lane->cells[cell]}, .versions = 1, .at = (short)cell, .bytes = now});
    bytes -= (size_t)now;
  }
}

// The first bytes of a stream, in parts: each is given to take(), and leaves unless `stay`.
static void for_first(struct Stream* stream, size_t bytes, bool stay, void (*take)(void*, const struct Part*),
                      void* with) {
  for (int i = 0; bytes > 0; ++i) {
    struct Part* part = part_of(stream, stay ? i : 0);
    CHECK(stay ? i < stream->count : stream->count > 0);
    struct Part now = *part;
    if ((size_t)now.bytes > bytes) now.bytes = (short)bytes;
    bytes -= (size_t)now.bytes;
    take(with, &now);
    if (stay) continue;
    part->from = (short)(part->from + now.bytes);
    part->bytes = (short)(part->bytes - now.bytes);
    if (part->bytes > 0) continue;
    stream->first = (stream->first + 1) % kParts;
    --stream->count;
  }
}

static void append_to(void* stream, const struct Part* part) { append_part(stream, *part); }

struct Look {
  const struct Lane* lane;
  const char* at;
  const char* what;
  bool bytewise;
};

// Each word is of one of the versions. Each byte, where there is no whole word, and of what a connection brings: it
// is copied on another CPU, byte by byte, while the program may be writing.
static void look_at(void* with, const struct Part* part) {
  static char versions[kVersions][kCell];
  struct Look* look = with;
  for (int i = 0; i < part->versions; ++i) {
    fill_cell(part->stamps[i], versions[i]);
    if (memcmp(versions[i] + part->from, look->at, (size_t)part->bytes) != 0) continue;
    look->at += part->bytes;
    return;
  }
  for (int at = part->from, end = part->from + part->bytes; at < end;) {
    int step = !look->bytewise && at % 8 == 0 && end - at >= 8 ? 8 : 1, fits = 0;
    for (int i = 0; i < part->versions; ++i) fits |= memcmp(versions[i] + at, look->at, (size_t)step) == 0;
    if (!fits)
      wrong(look->lane, look->what, part->at * 1000 + at, part->stamps[0], stamp_of(look->at - (at - part->from)));
    at += step;
    look->at += step;
  }
}

// What the kernel says of pages that it has sent: nothing that matters here, but it wants to be taken.
static void take_notices(int socket) {
  char room[128];
  for (;;) {
    struct msghdr message = {.msg_control = room, .msg_controllen = sizeof room};
    if (recvmsg(socket, &message, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) return;
  }
}

void receive(struct Lane* lane, struct Stream* stream, size_t bytes) {
  for (size_t left = bytes; left > 0;) {
    size_t now = left < sizeof g_received ? left : sizeof g_received;
    ssize_t got = read(stream->out, g_received, now);
    CHECK(got > 0);
    struct Look look = {lane, g_received, stream->is_socket ? "what the connection brings" : "what the pipe brings",
                        stream->is_socket};
    for_first(stream, (size_t)got, false, look_at, &look);
    left -= (size_t)got;
  }
  if (stream->is_socket && bytes > 0) take_notices(stream->in);
  note(lane, "received", (long)(stream - lane->streams), (long)bytes, 0);
}

void receive_all(struct Lane* lane) {
  for (int i = 0; i < kStreams; ++i) receive(lane, &lane->streams[i], bytes_waiting(&lane->streams[i]));
}

void call_receive(struct Lane* lane) {
  struct Stream* stream = &lane->streams[draw(lane, kStreams)];
  unsigned percent = 1 + draw(lane, 100);
  receive(lane, stream, bytes_waiting(stream) * percent / 100);
}

static bool has_room(const struct Stream* stream, int parts) { return stream->count + parts + 2 < kParts; }

static int draw_pages(struct Lane* lane, int* pages) {
  int page = (int)draw(lane, kPages);
  *pages = 1 + (int)draw(lane, kLongest);
  if (page + *pages > kPages) *pages = kPages - page;
  return page;
}

// By signal nobody brings in what the kernel holds on to later than at the call: what has left is touched again.
void call_vmsplice(struct Lane* lane) {
  struct Stream* stream = &lane->streams[draw(lane, kPipes)];
  int pages, page = draw_pages(lane, &pages);
  if (!all_have(lane, page, pages, PROT_READ) || is_busy(lane, page, pages) ||
      !has_room(stream, pages * kCellsOfPage))
    return;
  struct iovec from = {lane->memory + (size_t)page * kPage, (size_t)pages * kPage};
  long done = syscall(SYS_vmsplice, stream->in, &from, 1, 2 /* SPLICE_F_NONBLOCK */);
  note(lane, "vmsplice", page, pages, done);
  CHECK(done > 0 || errno == EAGAIN);
  if (done > 0) append_cells(lane, stream, page * kCellsOfPage, (size_t)done);
}

// From a pipe to the other, or to the connection; once, or so that both have it.
void call_pass_on(struct Lane* lane) {
  int pipe = (int)draw(lane, kPipes);
  bool copy = chance(lane, 40);
  struct Stream *from = &lane->streams[pipe], *to = &lane->streams[copy || chance(lane, 50) ? 1 - pipe : kSocket];
  size_t waiting = bytes_waiting(from), bytes = waiting * (1 + draw(lane, 100)) / 100;
  if (bytes == 0 || !has_room(to, from->count)) return;
  const unsigned flags = 2 | 1;  // SPLICE_F_NONBLOCK | SPLICE_F_MOVE
  long done = copy ? syscall(SYS_tee, from->out, to->in, bytes, flags)
                   : syscall(SYS_splice, from->out, NULL, to->in, NULL, bytes, flags);
  note(lane, copy ? "tee" : "splice", pipe, (long)(to - lane->streams), done);
  CHECK(done >= 0 || errno == EAGAIN);
  if (done > 0) for_first(from, (size_t)done, copy, append_to, to);
}

// Without a copy, or with one, which holds nothing afterwards.
void call_send(struct Lane* lane) {
  struct Stream* stream = &lane->streams[kSocket];
  int pages, page = draw_pages(lane, &pages);
  bool copy = chance(lane, 20);
  if (!all_have(lane, page, pages, PROT_READ) || is_busy(lane, page, pages) ||
      !has_room(stream, pages * kCellsOfPage))
    return;
  struct iovec from = {lane->memory + (size_t)page * kPage, (size_t)pages * kPage};
  struct msghdr message = {.msg_iov = &from, .msg_iovlen = 1};
  long done = syscall(SYS_sendmsg, stream->in, &message, MSG_DONTWAIT | (copy ? 0 : MSG_ZEROCOPY));
  note(lane, copy ? "send" : "send without a copy", page, pages, done);
  CHECK(done > 0 || errno == EAGAIN || errno == ENOBUFS);
  if (done <= 0) return;
  int before = stream->count;
  append_cells(lane, stream, page * kCellsOfPage, (size_t)done);
  for (int i = before; copy && i < stream->count; ++i) part_of(stream, i)->at = -1;
}
