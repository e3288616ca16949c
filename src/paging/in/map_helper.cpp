#include "paging/in/map_helper.hpp"

#include "base/clock.hpp"
#include "base/inside.hpp"
#include "base/log.hpp"
#include "paging/in/fetcher.hpp"
#include "paging/place/runtime_thread.hpp"

namespace hinterland {

bool MapHelper::ready() {
  if (ready_.load(std::memory_order_acquire)) return true;  // pairs with start()
  if (!wanted_.exchange(true, std::memory_order_relaxed) && wake_housekeeper_ != nullptr) wake_housekeeper_();
  return false;
}

bool MapHelper::lend(const Piece& piece) {
  LockGuard guard(mutex_);
  if (count_ == kPiecesMax) return false;
  pieces_[(first_ + count_++) % kPiecesMax] = piece;
  return true;
}

void MapHelper::call() {
  calls_.fetch_add(1);
  if (sleeps_.load() != 0) futex_wake(&calls_, 1);
}

bool MapHelper::take(Piece* piece) {
  LockGuard guard(mutex_);
  if (count_ == 0) return false;
  *piece = pieces_[first_];
  first_ = (first_ + 1) % kPiecesMax;
  --count_;
  return true;
}

void MapHelper::wait(std::uint32_t seen, std::uint64_t timeout_ns) {
  waiters_.fetch_add(1);
  futex_wait(&mapped_, seen, timeout_ns);
  waiters_.fetch_sub(1);
}

void MapHelper::start() {
  if (!wants_start()) return;
  tried_ = true;
  if (!companions_.several_cpus()) return;
  auto entry = [](void* self) -> void* {
    static_cast<MapHelper*>(self)->run();
    return nullptr;
  };
  Status status = start_runtime_thread("hl-map", this, entry);
  if (status)
    ready_.store(true, std::memory_order_release);  // pairs with ready()
  else                                              // no warning: nothing is lost but speed
    log::info("%s; the fault handler maps all runs itself", status.error().what());
}

void MapHelper::run() {
  InsideRuntime inside;
  note_runtime_thread();
  companions_.join();
  for (;;) {
    std::uint32_t calls = calls_.load();
    if (help()) {
      spin_.answered();
      spin_.start(now_ns());
    } else if (!spin_.spin(now_ns())) {
      sleep(calls);
    }
  }
}

void MapHelper::sleep(std::uint32_t calls) {
  sleeps_.store(1);
  futex_wait(&calls_, calls);
  sleeps_.store(0);
  spin_.start(now_ns());
}

bool MapHelper::help() {
  Piece piece;
  if (!take(&piece)) return false;
  piece.fetcher->bring_piece(piece);
  mapped_.fetch_add(1);
  if (waiters_.load() != 0) futex_wake(&mapped_, INT32_MAX);
  return true;
}

void MapHelper::after_fork_in_child() {
  wanted_.store(false, std::memory_order_relaxed);
  tried_ = false;
  ready_.store(false, std::memory_order_relaxed);
  mutex_.reset_after_fork();
  first_ = count_ = 0;
  sleeps_.store(0);
  waiters_.store(0);
}

}  // namespace hinterland
