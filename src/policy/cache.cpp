#include "policy/cache.hpp"

#include <sys/mman.h>

#include "base/check.hpp"

namespace hinterland {
namespace {

// For the policy being created: untouched parts cost nothing.
thread_local std::vector<std::pair<void*, std::size_t>>* t_reserved = nullptr;

void* reserve(std::uint64_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  t_reserved->emplace_back(memory, bytes);
  return memory;
}

}  // namespace

PolicyCache::PolicyCache(const hl_policy_ops* policy, std::string settings, std::uint64_t capacity,
                         std::uint32_t pages_max)
    : ops_(policy), settings_(std::move(settings)), capacity_(capacity), pages_max_(pages_max) {
  hl_policy_env environment{};
  environment.abi_version = HL_POLICY_ABI_VERSION;
  environment.window_pages = pages_max;
  environment.reserve = reserve;
  environment.runtime = this;
  environment.settings = settings_.c_str();
  environment.capacity = [](void* self) { return static_cast<PolicyCache*>(self)->capacity_; };
  environment.place_of = [](void* self, hl_page page) { return static_cast<PolicyCache*>(self)->pages_[page]; };
  environment.page_at = [](void* self, std::uint64_t place) {
    return static_cast<PolicyCache*>(self)->page_at(place);
  };
  t_reserved = &reserved_;
  state_ = policy->create(&environment);
  t_reserved = nullptr;
}

PolicyCache::~PolicyCache() {
  for (auto [memory, bytes] : reserved_) munmap(memory, bytes);
}

hl_page PolicyCache::number_of(std::uint64_t page) {
  auto [found, fresh] = numbers_.try_emplace(page, static_cast<hl_page>(pages_.size()));
  if (fresh) {
    HL_CHECK(pages_.size() < pages_max_);
    pages_.push_back(page);
    there_.push_back(false);
  }
  return found->second;
}

hl_page PolicyCache::page_at(std::uint64_t place) const {
  auto found = numbers_.find(place);
  return found != numbers_.end() ? found->second : HL_NO_PAGE;
}

bool PolicyCache::use(std::uint64_t page) {
  bool known = numbers_.contains(page);
  hl_page number = number_of(page);
  if (there_[number]) {
    if (ops_->accessed != nullptr) ops_->accessed(state_, number, HL_ACCESS_ANY);
    return true;
  }
  hl_page unused;  // pages to read next are not brought: a cache brings what is asked for
  if (ops_->missed != nullptr) ops_->missed(state_, number, &unused, 0);
  while (held_ >= capacity_) {
    hl_page victim = HL_NO_PAGE;
    std::uint32_t chosen = ops_->choose_victims(state_, &victim, 1);
    HL_CHECK(chosen == 1 && victim < pages_.size() && there_[victim]);
    there_[victim] = false;
    --held_;
  }
  ops_->arrived(state_, number, 1, known ? HL_ARRIVAL_FAULT : HL_ARRIVAL_FIRST_TOUCH, 0);
  there_[number] = true;
  ++held_;
  return false;
}

}  // namespace hinterland
