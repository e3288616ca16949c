// The choice of operations, and of the memory they work on.
#include "worker.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace churn {

Gate::Gate() : lock_(static_cast<pthread_rwlock_t*>(shadow_memory(sizeof(pthread_rwlock_t)))) {
  pthread_rwlockattr_t attributes;
  pthread_rwlockattr_init(&attributes);
  // else a stream of operations would keep the fork waiting for ever
  pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
  pthread_rwlock_init(lock_, &attributes);
  pthread_rwlockattr_destroy(&attributes);
}

Worker::Worker(const Everything& all, ThreadShadow& mine, Gate& gate, Chances chances, std::uint64_t seed)
    : all_(all), mine_(mine), gate_(gate), random_(seed), chances_(chances) {
  open_scratch();
}

Worker::~Worker() { close_scratch(); }

void Worker::open_scratch() {
  const char* folder = std::getenv("TMPDIR");
  file_ = open(folder != nullptr ? folder : "/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (file_ < 0) file_ = memfd_create("churn-scratch", MFD_CLOEXEC);
  if (file_ < 0 || pipe2(pipe_, O_CLOEXEC) != 0) fail(all_, mine_, "no scratch file or pipe");
}

void Worker::close_scratch() {
  for (int descriptor : {file_, pipe_[0], pipe_[1]}) close(descriptor);
}

void Worker::take_share() {
  gate_.enter();
  for (Area& area : mine_.areas) {
    make_area(area);
    if (area.kind == Area::Kind::mapping) write_new(area, 0, area.cell_count());
  }
  gate_.leave();
}

void Worker::step() {
  // forks besides the thousandths of operate()
  if (random_.below(10000) < chances_.forks_per_10000 && generation_ < 2) return fork_child();
  if (generation_ == 0) gate_.enter();  // a child has no other threads, and the gate was held when it was made
  operate();
  if (generation_ == 0) gate_.leave();
}

void Worker::operate() {
  struct Choice {
    unsigned weight;
    void (Worker::*what)();
  };
  static constexpr Choice kChoices[] = {
      {135, &Worker::read_cells},
      {70, &Worker::hint},
      {10, &Worker::pin},
      {5, &Worker::pin_others},
      {10, &Worker::discard},
      {15, &Worker::change_what_comes},
      {185, &Worker::write_cells},
      {60, &Worker::set_span},
      {70, &Worker::copy_span},
      {130, &Worker::add_to_counters},
      {10, &Worker::verify_area},
      {40, &Worker::through_pipe},
      {30, &Worker::through_file},
      {30, &Worker::drop_pages},
      {30, &Worker::punch_or_mend},
      {20, &Worker::remap},
      {20, &Worker::flip_protection},
      {30, &Worker::replace_area},
      {20, &Worker::reallocate},
      {80, &Worker::small_allocations},
  };
  ++mine_.operations;
  unsigned draw = static_cast<unsigned>(random_.below(1000));
  for (const Choice& choice : kChoices) {
    if (draw < choice.weight) return (this->*choice.what)();
    draw -= choice.weight;
  }
}

Area* Worker::random_area() {
  for (int tries = 0; tries < 16; ++tries) {
    Area& area = mine_.areas[random_.below(mine_.areas.size())];
    if (area.kind != Area::Kind::none) return &area;
  }
  replace_area();
  return nullptr;
}

Area* Worker::random_area(Area::Kind kind) {
  Area* area = random_area();
  for (int tries = 0; area != nullptr && area->kind != kind; ++tries) area = tries < 8 ? random_area() : nullptr;
  return area;
}

Span Worker::random_span(std::size_t bytes_max) {
  Area* area = random_area();
  if (area == nullptr || area->bytes < kCellBytes) return {};
  std::size_t whole = area->bytes / kCellBytes;
  std::size_t first = random_.below(whole);
  std::size_t most = std::min(random_.up_to(std::max<std::size_t>(1, bytes_max / kCellBytes)), whole - first);
  std::size_t count = 0;
  while (count < most && area->cells[first + count] != kHole) ++count;
  return {area, first, count};
}

Span Worker::random_pages(Area& area, std::size_t pages_max) {
  std::size_t first = random_.below(area.page_count());
  std::size_t count = std::min(random_.up_to(pages_max), area.page_count() - first);
  return {&area, first * kCellsPerPage, count * kCellsPerPage};
}

bool Worker::intact(const Span& span) const {
  if (span.area->kind == Area::Kind::none || span.first + span.count > span.area->bytes / kCellBytes) return false;
  const Stamp* first = span.area->cells + span.first;
  return std::find(first, first + span.count, kHole) == first + span.count;
}

std::size_t Worker::room_bytes() const {
  std::size_t share = all_.bytes_total / all_.threads.size();
  return share > mine_.bytes_in_use ? share - mine_.bytes_in_use : 0;
}

void Worker::write_new(Area& area, std::size_t first, std::size_t count) {
  for (std::size_t i = first; i < first + count; ++i) {
    area.cells[i] = new_stamp(random_);
    fill(area.cell(i), area.cell_bytes(i), area.cells[i]);
  }
}

void Worker::finish() {
  reap(0);
  gate_.enter();
  verify_thread(all_, mine_, "at the end");
  gate_.leave();
}

}  // namespace churn
