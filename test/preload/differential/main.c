// Random sequences of memory calls. main SEED FIRST COUNT [TRACED]: the sequences FIRST to FIRST + COUNT - 1, one
// line with its digest for each; of the sequence TRACED every call. Natively and under far memory the lines are the
// same.
#include "lane.h"

#include <fcntl.h>
#include <sys/utsname.h>
#include <sys/wait.h>

bool g_multiple_moves;
int g_own_files, g_small_file;
long g_first;

static struct Lane g_lanes[kLanes];
static uint64_t* g_child_digests;  // shared with forked children
static uint64_t g_seed;

static void one_call(struct Lane* lane) {
  ++lane->call;
  unsigned kind = draw(lane, 100);
  if (kind < 20) return call_map(lane);
  if (kind < 22) return call_map_badly(lane);
  if (kind < 28) return call_unmap(lane);
  if (kind < 39) return call_protect(lane);
  if (kind < 50) return call_advise(lane);
  if (kind < 53) return call_free_advice(lane);
  if (kind < 63) return call_remap(lane);
  if (kind < 65) return call_remap_badly(lane);
  if (kind < 68) return call_lock(lane);
  if (kind < 70) return call_core(lane);
  if (kind < 72) return call_sync(lane);
  if (kind < 86) return call_write(lane);
  if (kind < 94) return call_touch(lane);
  call_show(lane);
}

static void begin(struct Lane* lane) {
  const int kind = MAP_ANONYMOUS | MAP_FIXED | MAP_PRIVATE;
  if (lane->away != NULL) CHECK(munmap(lane->away, (size_t)lane->away_pages * kPage) == 0);
  lane->away = NULL;
  lane->call = 0;
  lane->digest = 0;
  lane->random = (g_seed * 1000003 + (uint64_t)(g_first + lane->number)) * 0x9e3779b97f4a7c15u;
  lane->alone = chance(lane, 40);
  int protection = chance(lane, 60) ? PROT_READ | PROT_WRITE : PROT_NONE;
  CHECK(mmap(lane->inside, kInside * kPage, protection, kind | MAP_NORESERVE, -1, 0) == lane->inside);
  int outside = kind | MAP_NORESERVE | stack_flag(lane);
  CHECK(mmap(lane->outside, kOutside * kPage, protection, outside, -1, 0) == lane->outside);
  if (chance(lane, 10)) CHECK(munmap(lane->inside, kInside * kPage) == 0);
  if (lane->alone) return;
  static char pattern[kFilePages * kPage];
  for (unsigned page = 0; page < kFilePages; ++page) memset(pattern + page * kPage, (int)page + 1, kPage);
  CHECK(pwrite(g_own_files, pattern, sizeof pattern, (off_t)lane->number * (off_t)sizeof pattern) == sizeof pattern);
}

// What a child does not inherit is a hole. Not in the away mappings: there the child's own memory might come to lie.
static void keep_away_mappings(void) {
  for (unsigned i = 0; i < kLanes; ++i)
    if (g_lanes[i].away != NULL) madvise(g_lanes[i].away, (size_t)g_lanes[i].away_pages * kPage, MADV_DOFORK);
}

// In a child: what each lane reads as, and what comes of a few calls more.
static void look_in_child(bool only_alone, unsigned calls) {
  for (unsigned i = 0; i < kLanes; ++i) {
    struct Lane* lane = &g_lanes[i];
    if (only_alone && !lane->alone) continue;
    lane->forked = true;
    record_digest(lane, "bytes", digest_of_lane(lane));
  }
  for (unsigned call = 0; call < calls; ++call)
    for (unsigned i = 0; i < kLanes; ++i)
      if (!only_alone || g_lanes[i].alone) one_call(&g_lanes[i]);
  for (unsigned i = 0; i < kLanes; ++i)
    if (!only_alone || g_lanes[i].alone)
      g_child_digests[i] = g_child_digests[i] * 31 + (g_lanes[i].digest ^ digest_of_lane(&g_lanes[i]));
}

static void await(pid_t child) {
  int status;
  CHECK(waitpid(child, &status, 0) == child);
  if (status != 0) {
    printf("child: status %x\n", (unsigned)status);
    fflush(stdout);
    _exit(3);
  }
}

// A child and, sometimes, its child, which looks first. Calm: the parent waits. Else parent and child work side by
// side, on the lanes that share nothing.
static void fork_and_look(bool calm, bool again) {
  memset(g_child_digests, 0, sizeof(uint64_t) * kLanes);
  keep_away_mappings();
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    alarm(100);
    open_copy();
    if (again) {
      pid_t grandchild = fork();
      CHECK(grandchild >= 0);
      if (grandchild != 0) await(grandchild);
    }
    look_in_child(!calm, calm ? 2 : 4);
    _exit(0);
  }
  if (!calm)
    for (unsigned i = 0; i < kLanes; ++i)
      for (unsigned call = 0; call < 2; ++call) one_call(&g_lanes[i]);
  await(child);
  for (unsigned i = 0; i < kLanes; ++i)
    if (calm || g_lanes[i].alone) record_digest(&g_lanes[i], "child", g_child_digests[i]);
}

// Which forks happen belongs to the round, that is to kLanes sequences that start at a multiple of kLanes.
static void round_of_sequences(void) {
  struct Lane forks = {.random = (g_seed + (uint64_t)g_first) * 0x9e3779b97f4a7c15u};
  unsigned fork_at = draw(&forks, kCalls);
  bool forked = chance(&forks, 40), calm = chance(&forks, 60), again = chance(&forks, 25);
  for (unsigned i = 0; i < kLanes; ++i) begin(&g_lanes[i]);
  for (unsigned call = 0; call < kCalls; ++call) {
    for (unsigned i = 0; i < kLanes; ++i) one_call(&g_lanes[i]);
    if (forked && call == fork_at) fork_and_look(calm, again);
  }
  for (unsigned i = 0; i < kLanes; ++i) record_digest(&g_lanes[i], "bytes at the end", digest_of_lane(&g_lanes[i]));
}

// Addresses for `kLanes` stretches on a 2 MiB border, between two gaps. A page before and behind stays taken: a hole
// at the end of a stretch would else be one with the gap, and the kernel might put something else there.
static char* make_room(int kind) {
  const size_t gap = (size_t)64 << 20, bytes = (size_t)kLanes * kStride * kPage;
  char* all = mmap(NULL, bytes + 2 * gap, PROT_NONE, kind | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  CHECK(all != MAP_FAILED);
  char* first = (char*)(((uintptr_t)all + gap + (2 << 20) - 1) & ~(uintptr_t)((2 << 20) - 1));
  CHECK(munmap(all, (size_t)(first - all) - kPage) == 0);
  CHECK(munmap(first + bytes + kPage, (size_t)(all + bytes + 2 * gap - first) - bytes - kPage) == 0);
  return first;
}

static void prepare(void) {
  struct utsname name;
  CHECK(uname(&name) == 0);
  int major = 0, minor = 0;
  CHECK(sscanf(name.release, "%d.%d", &major, &minor) == 2);
  g_multiple_moves = major > 6 || (major == 6 && minor >= 17);
  open_bytes();
  g_own_files = memfd_create("own", MFD_CLOEXEC);
  g_small_file = memfd_create("small", MFD_CLOEXEC);
  CHECK(g_own_files >= 0 && ftruncate(g_own_files, (off_t)kLanes * kFilePages * kPage) == 0);
  for (int i = 0; i < kFilePages * kPage; i += 4) CHECK(write(g_small_file, &i, 4) == 4);
  char path[64];
  snprintf(path, sizeof path, "/proc/self/fd/%d", g_small_file);
  g_small_file = open(path, O_RDONLY | O_CLOEXEC);
  CHECK(g_small_file >= 0);
  g_child_digests = mmap(NULL, sizeof(uint64_t) * kLanes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(g_child_digests != MAP_FAILED);
  char *inside = make_room(MAP_PRIVATE), *outside = make_room(MAP_SHARED);
  for (unsigned i = 0; i < kLanes; ++i) {
    g_lanes[i].number = i;
    g_lanes[i].inside = inside + (size_t)i * kStride * kPage;
    g_lanes[i].outside = outside + (size_t)i * kStride * kPage;
  }
}

int main(int count, char** arguments) {
  CHECK(count >= 4);
  check_preloaded();
  FILE* huge = fopen("/proc/sys/vm/nr_hugepages", "r");
  int huge_pages = 0;
  if (huge != NULL && (fscanf(huge, "%d", &huge_pages) != 1 || huge_pages != 0)) {
    fprintf(stderr, "huge pages are set aside: MAP_HUGETLB would succeed\n");
    return 77;
  }
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
