// Random sequences of system calls mixed with references that the kernel holds. main SEED FIRST COUNT [TRACED]: the
// sequences FIRST to FIRST + COUNT - 1, one line with its digest for each; of the sequence TRACED every call.
// Natively and under far memory the lines are the same, and neither has a line "wrong". What is received and how much
// of it at a time may differ; it is held against a model (held.h).
#include "held.h"

#include <sys/wait.h>

static struct Lane g_lanes[kLanes];
static uint64_t g_seed;

static void one_call(struct Lane* lane) {
  ++lane->call;
  unsigned kind = draw(lane, 100);
  if (kind < 6) return call_map(lane);
  if (kind < 9) return call_unmap(lane);
  if (kind < 16) return call_remap(lane);
  if (kind < 21) return call_protect(lane);
  if (kind < 27) return call_advise(lane);
  if (kind < 30) return call_process_advise(lane);
  if (kind < 44) return call_store(lane);
  if (kind < 52) return call_read(lane);
  if (kind < 58) return call_write(lane);
  if (kind < 68) return call_vmsplice(lane);
  if (kind < 76) return call_pass_on(lane);
  if (kind < 81) return call_send(lane);
  if (kind < 85) return call_ring_send(lane);
  if (kind < 90) return call_registered(lane);
  if (kind < 94) return call_request(lane);
  if (kind < 98) return call_receive(lane);
  check_memory(lane);
}

static void begin(struct Lane* lane) {
  lane->random = (g_seed * 1000003 + (uint64_t)(g_first + lane->number)) * 0x9e3779b97f4a7c15u;
  lane->digest = lane->next_stamp = lane->call = 0;
  lane->next_mapping = 1;
  CHECK(mmap(lane->memory, kAll, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
        lane->memory);
  for (int page = 0; page < kPages; ++page) {
    lane->protection[page] = PROT_READ | PROT_WRITE;
    lane->mapping[page] = 1;
  }
  memset(lane->cells, 0, sizeof lane->cells);
  for (int cell = 0; cell < kCells; ++cell) {
    if (cell % kCellsOfPage == 0 && chance(lane, 20))
      cell += kCellsOfPage - 1;  // a page that nobody writes at first
    else
      fill_cell(lane->cells[cell] = new_stamp(lane), lane->memory + (size_t)cell * kCell);
  }
}

// A child finds all as its parent has it, while its parent goes on.
static void fork_and_look(void) {
  fflush(stdout);
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    alarm(100);
    for (int i = 0; i < kLanes; ++i) check_memory(&g_lanes[i]);
    _exit(0);
  }
  for (int i = 0; i < kLanes; ++i) one_call(&g_lanes[i]);
  int status;
  CHECK(waitpid(child, &status, 0) == child);
  if (status != 0) {
    printf("wrong in a child: status %x\n", (unsigned)status);
    fflush(stdout);
    _exit(3);
  }
}

static void round_of_sequences(void) {
  struct Lane forks = {.random = (g_seed + (uint64_t)g_first) * 0x9e3779b97f4a7c15u};
  int fork_at = chance(&forks, 25) ? (int)draw(&forks, kCalls) : -1;
  for (int i = 0; i < kLanes; ++i) begin(&g_lanes[i]);
  for (int call = 0; call < kCalls; ++call) {
    for (int i = 0; i < kLanes; ++i) one_call(&g_lanes[i]);
    if (call == fork_at) fork_and_look();
  }
  for (int i = 0; i < kLanes; ++i) end_requests(&g_lanes[i]);
  for (int i = 0; i < kLanes; ++i) receive_all(&g_lanes[i]);
  for (int i = 0; i < kLanes; ++i) check_memory(&g_lanes[i]);
}

static void prepare(void) {
  const size_t bytes = (size_t)kLanes * kStride * kPage;
  char* memory = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  CHECK(memory != MAP_FAILED);
  open_memory();
  open_requests();
  for (unsigned i = 0; i < kLanes; ++i) {
    g_lanes[i].number = i;
    g_lanes[i].memory = memory + (size_t)i * kStride * kPage;
    open_streams(&g_lanes[i]);
  }
}

int main(int count, char** arguments) {
  static char room[1 << 16];
  CHECK(count >= 4);
  check_preloaded();
  setvbuf(stdout, room, _IOFBF, sizeof room);
  g_seed = strtoull(arguments[1], NULL, 0);
  long first = atol(arguments[2]) / kLanes * kLanes, end = atol(arguments[2]) + atol(arguments[3]);
  if (count > 4) g_traced = atol(arguments[4]);
  prepare();
  for (g_first = first; g_first < end; g_first += kLanes) {
    round_of_sequences();
    for (unsigned i = 0; i < kLanes && g_traced < 0; ++i)
      printf("%ld %016llx\n", g_first + (long)i, (unsigned long long)g_lanes[i].digest);
    fflush(stdout);
  }
  return 0;
}
