// As much of io_uring as sending without copies takes, by system calls of its own.
#pragma once

#include <errno.h>
#include <linux/io_uring.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

struct Ring {
  int descriptor;
  char *sent, *done;  // the queues' memory
  struct io_uring_sqe* entries;
  struct io_uring_params about;
  int pending;  // sends whose pages the kernel has not given back
};

static unsigned* ring_word(char* queue, unsigned offset) { return (unsigned*)(queue + offset); }

static void* ring_map(const struct Ring* ring, size_t length, off_t which) {
  return mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring->descriptor, which);
}

static int ring_knows_send(int descriptor) {
  union {
    struct io_uring_probe head;
    char room[sizeof(struct io_uring_probe) + 256 * sizeof(struct io_uring_probe_op)];
  } probe;
  memset(&probe, 0, sizeof probe);
  if (syscall(SYS_io_uring_register, descriptor, IORING_REGISTER_PROBE, &probe, 256) != 0) return 0;
  return probe.head.last_op >= IORING_OP_SEND_ZC &&
         (probe.head.ops[IORING_OP_SEND_ZC].flags & IO_URING_OP_SUPPORTED) != 0;
}

// False where the kernel has no such ring.
static int ring_open(struct Ring* ring) {
  memset(ring, 0, sizeof *ring);
  ring->descriptor = (int)syscall(SYS_io_uring_setup, 8, &ring->about);
  if (ring->descriptor < 0) return 0;
  if (!ring_knows_send(ring->descriptor)) return close(ring->descriptor), 0;
  const struct io_uring_params* about = &ring->about;
  ring->sent = ring_map(ring, about->sq_off.array + about->sq_entries * sizeof(unsigned), IORING_OFF_SQ_RING);
  ring->done =
      ring_map(ring, about->cq_off.cqes + about->cq_entries * sizeof(struct io_uring_cqe), IORING_OFF_CQ_RING);
  ring->entries = ring_map(ring, about->sq_entries * sizeof(struct io_uring_sqe), IORING_OFF_SQES);
  CHECK(ring->sent != MAP_FAILED && ring->done != MAP_FAILED && ring->entries != MAP_FAILED);
  return 1;
}

// Takes one completion, waiting for it: of a send its result in *result; or that its pages are given back.
static void ring_take(struct Ring* ring, int* result) {
  unsigned* head = ring_word(ring->done, ring->about.cq_off.head);
  while (*head == __atomic_load_n(ring_word(ring->done, ring->about.cq_off.tail), __ATOMIC_ACQUIRE))
    CHECK(syscall(SYS_io_uring_enter, ring->descriptor, 0, 1, IORING_ENTER_GETEVENTS, NULL, 0) >= 0 ||
          errno == EINTR);
  struct io_uring_cqe* cqes = (struct io_uring_cqe*)(ring->done + ring->about.cq_off.cqes);
  struct io_uring_cqe done = cqes[*head & (ring->about.cq_entries - 1)];
  __atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
  if ((done.flags & IORING_CQE_F_NOTIF) != 0) {
    --ring->pending;
    return;
  }
  *result = done.res;
  ring->pending += (done.flags & IORING_CQE_F_MORE) != 0;
}

// How many bytes the socket took, or -errno.
static int ring_send(struct Ring* ring, int socket, const void* from, size_t bytes) {
  unsigned* tail = ring_word(ring->sent, ring->about.sq_off.tail);
  unsigned index = *tail & (ring->about.sq_entries - 1);
  struct io_uring_sqe* entry = &ring->entries[index];
  memset(entry, 0, sizeof *entry);
  entry->opcode = IORING_OP_SEND_ZC;
  entry->fd = socket;
  entry->addr = (uintptr_t)from;
  entry->len = (unsigned)bytes;
  entry->msg_flags = MSG_DONTWAIT | MSG_NOSIGNAL;
  ring_word(ring->sent, ring->about.sq_off.array)[index] = index;
  __atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
  CHECK(syscall(SYS_io_uring_enter, ring->descriptor, 1, 0, 0, NULL, 0) == 1);
  int result = INT32_MIN;
  while (result == INT32_MIN) ring_take(ring, &result);
  return result;
}

static inline void ring_wait_until_given_back(struct Ring* ring) {
  int none;
  while (ring->pending > 0) ring_take(ring, &none);
}
