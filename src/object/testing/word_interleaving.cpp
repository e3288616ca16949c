// Setting an interleaving up, running it, and what must hold.
#include "object/testing/word_interleaving.hpp"

#include <cstddef>
#include <cstring>
#include <new>
#include <thread>
#include <utility>

#include "base/check.hpp"

namespace hinterland::object::testing {
namespace {

// Slots belong to threads, and all movers are one. So each gets a slot that another thread has left behind.
struct Threads {
  explicit Threads(bool guards) {
    if (guards) HL_CHECK(grace.begin_guards().has_value());
    for (Grace::Slot*& slot : slots) std::thread([&] { slot = grace.enter(); }).join();
  }
  Grace grace;
  std::array<Grace::Slot*, kMovers + 1> slots{};  // the last is the test's own
};

std::array<std::unique_ptr<Threads>, 2> g_threads;  // without guards, with guards
WordInterleaving* g_current = nullptr;
bool g_guards = false;

// As a new one: parity 0.
Threads& threads(bool guards) {
  g_guards = guards;
  std::unique_ptr<Threads>& found = g_threads[guards ? 1 : 0];
  if (found == nullptr) found = std::make_unique<Threads>(guards);
  static const std::atomic<bool> never{false};
  if ((found->slots[0]->phase.peek() & 1) != 0) found->grace.wait(never);
  return *found;
}

Threads& threads() { return *g_threads[g_guards ? 1 : 0]; }

bool is_here(std::uint64_t value) { return value != 0 && (is_local(value) || is_kind(value, kLeaving)); }

}  // namespace

WordInterleaving* WordInterleaving::current() { return g_current; }

WordInterleaving::WordInterleaving(const WordOptions& options) : options_(options), scheduler_(*this) {
  g_current = this;
  hl::far::throw_when_lost(true);
  Threads& those = threads(options.guards);
  hl::far::detail::t_slot = those.slots[kMovers];
  HeapOptions heap;
  heap.local_bytes = HeapOptions::kLocalBytesMin;
  heap.arena_bytes = kRegions * kRegionBytes;
  heap.far_bytes_max = far::kSlabBytes;
  auto device = std::make_unique<SteppedDevice>(options.direct);
  device_ = device.get();
  auto created = Heap::create(heap, std::move(device), those.grace);
  HL_CHECK(created.has_value());
  heap_ = std::move(*created);
  hl_objects.base = heap_->local().base();
  hl_objects.size = heap_->local().bytes();
  for (unsigned i = 0; i < 2; ++i) {
    auto port = heap_->far().open_port();
    HL_CHECK(port.has_value());
    evacuators_.push_back(std::make_unique<Evacuator>(*heap_, 1 + i, std::move(*port)));
  }
  // Always in the same place, so that states can be told from each other by address.
  alignas(Pointers) static std::byte place[sizeof(Pointers)];
  pointers_ = new (place) Pointers;
  prepare();
}

WordInterleaving::~WordInterleaving() {
  if (heap_ != nullptr) pointers_->~Pointers();
  evacuators_.clear();
  heap_.reset();
  hl_objects.size = 0;
  g_current = nullptr;
}

void WordInterleaving::know(std::size_t id, const Word* word) { known_[id] = {true, word, item_of(id)}; }

hl::far::ptr<Item> WordInterleaving::make_item(std::size_t id, hl::far::use how) {
  return hl::far::make_as<Item>(how, item_of(id));
}

void WordInterleaving::prepare() {
  make_all();
  bring_to_start();
  note_regions();
  if (options_.trouble == Trouble::none) return;
  const auto what = options_.trouble == Trouble::one_read_fails ? far::Operation::read : far::Operation::write;
  device_->fails = [this, what](far::Operation operation) {
    if (operation != what || failed_once_ || Scheduler::running() == nullptr) return false;
    failed_once_ = scheduler_.decide(2) == 1;
    return failed_once_;
  };
}

void WordInterleaving::make_all() {
  using hl::far::use;
  Pointers& p = *pointers_;
  switch (options_.shape) {
    case Shape::large: {
      auto large = hl::far::make<LargeItem>(LargeItem{item_of(kOne), {}});
      heap_->move(large.far_word(), p.one.far_word());
      break;
    }
    case Shape::holder:
      p.node = hl::far::make<Node>(Node{item_of(kOne), make_item(kOther, use::nontemporal)});
      know(kOne, p.node.far_word());
      know(kOther, nullptr);
      return;
    case Shape::shared:
      p.owners[0] = hl::far::shared_ptr<Item>(make_item(kOne, use::temporal));
      p.owners[1] = p.owners[0];
      {
        hl::far::scope held;
        shared_word_ = Header::of(p.owners[0].deref(held))->owner_word();
      }
      return know(kOne, shared_word_);
    default:
      p.one = make_item(kOne, use::temporal);
  }
  know(kOne, p.one.far_word());
  if (options_.shape != Shape::two && options_.shape != Shape::apart) return;
  p.other = make_item(kOther, options_.shape == Shape::two ? use::temporal : use::nontemporal);
  know(kOther, p.other.far_word());
}

void WordInterleaving::touch_all(bool twice) {
  for (int time = 0; time < (twice ? 2 : 1); ++time)
    for (std::size_t id : {kOne, kOther}) {
      hl::far::scope held;
      int error = 0;
      if (const Word* word = word_of(id)) HL_CHECK(heap_->reach(const_cast<Word*>(word), 0, &error) != nullptr);
    }
}

void WordInterleaving::bring_to_start() {
  if (options_.start == Start::cold) return;
  if (options_.start == Start::hot) return touch_all(true);
  // Two regions may have to leave, and of each what is in use only moves on in the first round.
  for (int round = 0; round < 6; ++round) evacuators_[0]->round();
  const Word* first = known_[kOne].word;
  HL_CHECK(is_kind(first->peek(), kFar) || is_kind(first->peek(), kFarLarge));
  if (options_.start == Start::clean) touch_all(false);
}

void WordInterleaving::fail(const std::string& what) {
  if (!wrong_.empty()) return;
  wrong_ =
      (Scheduler::running() != nullptr ? scheduler_.name(scheduler_.current()) : "seen from outside") + ": " + what;
}

std::string WordInterleaving::run(const Scheduler::Choose& choose, std::uint64_t steps_max) {
  std::string wrong = scheduler_.run(choose, steps_max);
  hl::far::detail::t_slot = threads().slots[kMovers];
  wrong += wrong_;
  if (wrong.empty()) wrong = finish();
  if (wrong.empty()) return wrong;
  // Somebody still waits in it, or it is not to be relied on: it stays as it is, and the next gets another.
  for (auto& evacuator : evacuators_) static_cast<void>(evacuator.release());
  static_cast<void>(heap_.release());
  static_cast<void>(g_threads[g_guards ? 1 : 0].release());
  return wrong;
}

std::string WordInterleaving::finish() {
  device_->fails = nullptr;
  check_contents();
  pointers_->~Pointers();
  pointers_ = new (pointers_) Pointers;
  // What cannot be read when it ends has no destructor to run: what it holds is lost with it (object.hpp).
  const bool lost = failed_once_ && options_.trouble == Trouble::one_read_fails && options_.shape == Shape::holder;
  if (wrong_.empty() && !lost) check_nothing_is_left();
  return wrong_;
}

void WordInterleaving::check_contents() {
  for (std::size_t id = 0; id < kIds; ++id) {
    if (!known_[id].exists) continue;
    hl::far::scope held;
    int error = 0;
    if (id == kOther && options_.shape == Shape::holder && !taken_out_)
      heap_->reach(pointers_->node.far_word(), 0, &error);
    const Word* word = word_of(id);
    if (word == nullptr) return fail("an object has no pointer in the end");
    if (word->peek() == 0) return fail("an object is lost");
    const void* at = heap_->reach(const_cast<Word*>(word), 0, &error);
    if (at == nullptr) return fail("an object cannot be had in the end");
    if (std::memcmp(at, &known_[id].is, sizeof(Item)) != 0) return fail("an object holds other bytes in the end");
  }
}

void WordInterleaving::check_nothing_is_left() {
  if (heap_->far().live_bytes() != 0 || heap_->far().large_pages() != 0)
    fail("far bytes live on, or ended twice, when all objects have ended");
  for (std::size_t i = 0; i < kRegions; ++i)
    if (region(i).live_bytes.load() != 0) fail("local bytes live on, or ended twice, when all objects have ended");
  for (const Grace::Slot* slot : threads().slots)
    if (slot->active[0].peek() != 0 || slot->active[1].peek() != 0) fail("a scope is open when all have ended");
}

// --- after each step
// ---------------------------------------------------------------------------------------------

void WordInterleaving::stepped() {
  if (!wrong_.empty()) return;
  if (!device_->wrong().empty()) fail(device_->wrong());
  check_held();
  for (std::size_t id = 0; id < kIds; ++id)
    if (known_[id].exists) check_object(id);
}

// nullptr where nobody can say, for it is on its way.
const Word* WordInterleaving::word_of(std::size_t id) const {
  if (id != kOther || options_.shape != Shape::holder || taken_out_) return known_[id].word;
  const std::uint64_t holder = pointers_->node.far_word()->peek();
  if (!is_here(holder) || is_busy(holder)) return nullptr;
  return reinterpret_cast<const Node*>(address_of(holder))->next.far_word();
}

void WordInterleaving::check_held() {
  for (const auto& of_mover : held_)
    for (std::size_t id = 0; id < kIds; ++id) {
      const Word* word = of_mover[id] != nullptr ? word_of(id) : nullptr;
      if (word == nullptr) continue;
      const std::uint64_t value = word->peek();
      if (!is_here(value) || is_busy(value) || address_of(value) != reinterpret_cast<const std::byte*>(of_mover[id]))
        fail("an object moves, or leaves, that a scope holds");
    }
}

// What must hold of an object that is here and that nobody moves just now.
void WordInterleaving::check_object(std::size_t id) {
  const Word* word = word_of(id);
  const std::uint64_t value = word != nullptr ? word->peek() : 0;
  if (!is_here(value) || is_busy(value)) return;
  const std::byte* at = address_of(value);
  if (!in_arena(at)) return fail("a word names no object");
  const Region& there = heap_->local().region_of(at);
  if (there.state.load() == Region::State::free) return fail("a region is free in which an object lives");
  if (std::memcmp(at, &known_[id].is, sizeof(Item)) != 0) return fail("an object holds other bytes");
  for (const auto& locks : locks_)
    if (locks.contains(&there.lock)) return;
  if (Header::of(at)->owner() != Header::owner_of(word)) fail("an object's header names another pointer");
}

// --- Scheduler::Listener
// -----------------------------------------------------------------------------------------

void WordInterleaving::entering(std::size_t mover) { hl::far::detail::t_slot = threads().slots[mover]; }

bool WordInterleaving::in_arena(const void* at) const {
  return reinterpret_cast<std::uintptr_t>(at) - heap_->local().base() < heap_->local().bytes();
}

bool WordInterleaving::is_embedded_word(const void* cell) const {
  if (options_.shape != Shape::holder) return false;
  const std::uint64_t holder = pointers_->node.far_word()->peek();
  return is_here(holder) && reinterpret_cast<const Node*>(address_of(holder))->next.far_word() == cell;
}

bool WordInterleaving::under_region_lock(const void* at) const {
  return locks_[scheduler_.current()].contains(&heap_->local().region_of(at).lock);
}

// A header changes under its region's lock, but where its object is being made or brought.
bool WordInterleaving::steps_at_load(const void* cell) {
  return !in_arena(cell) || is_embedded_word(cell) || !under_region_lock(cell);
}

bool WordInterleaving::may_be_late(const void* cell) {
  for (const Grace::Slot* slot : threads().slots)
    if (cell == &slot->active[0] || cell == &slot->active[1]) return true;
  return false;
}

void WordInterleaving::operated(AtomicOperation operation, const void* cell, std::memory_order order) {
  ordered_.operated(scheduler_.current(), operation, cell, order);
}

// The far log's own: what it does under them is one step (its own tests are far_log_test.cpp).
bool WordInterleaving::steps_at_lock(const void* mutex) {
  return reinterpret_cast<std::uintptr_t>(mutex) - reinterpret_cast<std::uintptr_t>(&heap_->far()) >= sizeof(FarLog);
}

void WordInterleaving::locked(const void* mutex) {
  locks_[scheduler_.current()].insert(mutex);
  ordered_.locked(scheduler_.current(), mutex);
  if (is_of_scopes(mutex)) before_scopes_[scheduler_.current()] = scheduler_.remembered();
}

// Who waits for scopes looks at all slots, and keeps of that only whether one of them is open.
bool WordInterleaving::is_of_scopes(const void* mutex) const {
  return reinterpret_cast<std::uintptr_t>(mutex) - reinterpret_cast<std::uintptr_t>(&threads().grace) < sizeof(Grace);
}

bool WordInterleaving::is_scope_open() const {
  for (const Grace::Slot* slot : threads().slots)
    if (slot->active[(slot->phase.peek() & 1) ^ 1].peek() != 0) return true;
  return false;
}

void WordInterleaving::unlocking(const void* mutex) {
  ordered_.unlocking(scheduler_.current(), mutex);
  locks_[scheduler_.current()].erase(mutex);
  note_regions();
  if (is_of_scopes(mutex)) scheduler_.remember_only(mix(before_scopes_[scheduler_.current()], is_scope_open()));
}

// What the queue's lock guards, as far as it does not show in the regions: in which order they were sealed, or freed,
// and whose lane fills them, or who has claimed them.
void WordInterleaving::note_regions() {
  for (std::size_t i = 0; i < kRegions; ++i) {
    const Region::State now = region(i).state.load();
    if (now == region_states_[i]) continue;
    std::erase(regions_in_order_, i);
    regions_in_order_.push_back(i);
    region_states_[i] = now;
    changed_by_[i] = Scheduler::running() != nullptr ? scheduler_.current() : kMovers;
  }
}

void WordInterleaving::all_pass_a_barrier() {
  scheduler_.point(13);
  // An evacuator that has marked knows which regions it has claimed.
  scheduler_.remember_only(mix(13, rounds_[scheduler_.current()]));
  scheduler_.show_all_late_stores();
  ordered_.barrier(scheduler_.current());
}

void WordInterleaving::all_restart_sequences() {
  all_pass_a_barrier();
  for (std::size_t i = 0; i < kMovers; ++i) restarted_[i] = in_sequence_[i];
}

void WordInterleaving::copied(const void* to, const void* from, std::size_t bytes) {
  const std::size_t mover = scheduler_.current();
  bool ordered = true;
  if (in_arena(from)) {
    ordered = ordered_.read(mover, from, bytes, HappensBefore::Of::runtime);
    for (std::size_t at = 0; at + 8 <= bytes && at < sizeof(Item); at += 8)
      scheduler_.observe(*reinterpret_cast<const std::uint64_t*>(static_cast<const std::byte*>(from) + at));
  }
  if (in_arena(to)) ordered = ordered_.write(mover, to, bytes, HappensBefore::Of::runtime) && ordered;
  if (!ordered) fail("copies bytes while nothing orders that after another's use of them");
}

// --- states
// ------------------------------------------------------------------------------------------------------

std::uint64_t WordInterleaving::meaning_of_pointer(std::uint64_t address) const {
  if (in_arena(reinterpret_cast<const void*>(address))) return mix(80, address - heap_->local().base());
  const std::uint64_t within = address - reinterpret_cast<std::uintptr_t>(pointers_);
  if (within < sizeof(Pointers)) return mix(81, within);
  if (address == reinterpret_cast<std::uintptr_t>(shared_word_)) return 82;
  return mix(83, address % kPageSize);  // on a stack, whose pages may be another mover's next time
}

std::uint64_t WordInterleaving::meaning(const void* cell, std::uint64_t value) const {
  const std::uint64_t address = value & kAddress;
  if (in_arena(reinterpret_cast<const void*>(address))) return mix(value - address, meaning_of_pointer(address));
  if (in_arena(cell)) {  // a header, or a word that says where its object is far
    if (is_embedded_word(cell)) return value;
    const std::uint64_t owner = (value & Header::kOwner) << 3;
    return owner <= Header::kMaking << 3 ? value : mix(value & ~Header::kOwner, meaning_of_pointer(owner));
  }
  if (is_kind(value, kFarLarge) && address != 0)
    return mix(84, reinterpret_cast<const LargeObject*>(address)->pages[0].value);
  return value;
}

std::uint64_t WordInterleaving::name_of(const void* cell) {
  if (in_arena(cell)) return mix(85, reinterpret_cast<std::uintptr_t>(cell) - heap_->local().base());
  const std::uint64_t within = reinterpret_cast<std::uintptr_t>(cell) - reinterpret_cast<std::uintptr_t>(pointers_);
  if (within < sizeof(Pointers)) return mix(86, within);
  for (std::size_t i = 0; i < threads().slots.size(); ++i) {
    const std::uint64_t in_slot =
        reinterpret_cast<std::uintptr_t>(cell) - reinterpret_cast<std::uintptr_t>(threads().slots[i]);
    if (in_slot < sizeof(Grace::Slot)) return mix(87 + i, in_slot);
  }
  return 0;  // follows from what its mover knows
}

std::uint64_t WordInterleaving::hash_of_region(const Region& there) const {
  std::uint64_t hash = mix(static_cast<std::uint64_t>(there.state.load()), there.nontemporal);
  if (there.state.load() == Region::State::free) return hash;
  hash = mix(mix(mix(hash, there.end), there.live_bytes.load()), there.left_bytes);
  if (there.state.load() != Region::State::sealed)
    hash = mix(hash, changed_by_[static_cast<std::size_t>(&there - &region(0))]);
  heap_->local().walk(there, [&](Header* header) {
    hash = mix(hash, meaning(header, header->value()));
    if (header->owner() == 0) return;
    const std::byte* end = reinterpret_cast<const std::byte*>(header) + header->units() * kUnit;
    for (const std::byte* at = header->object(); at < end; at += kUnit) {
      if (at >= header->object() + sizeof(Node) + kUnit && at + kUnit < end)
        continue;  // of a large one, always equal
      const std::uint64_t value = *reinterpret_cast<const std::uint64_t*>(at);
      const bool large = header->units() * kUnit > kPackedMax && header->placed() && at + kUnit == end;
      hash = mix(hash, large ? value != 0 : is_embedded_word(at) ? meaning(at, value) : value);
    }
  });
  return hash;
}

std::uint64_t WordInterleaving::state() const {
  std::uint64_t hash = scheduler_.knowledge();
  for (std::size_t at = 0; at < offsetof(Pointers, owners); at += sizeof(Word)) {
    const auto* cell = reinterpret_cast<const std::byte*>(pointers_) + at;
    hash = mix(hash, meaning(cell, *reinterpret_cast<const std::uint64_t*>(cell)));
  }
  if (shared_word_ != nullptr && known_[kOne].exists) hash = mix(hash, meaning(shared_word_, shared_word_->peek()));
  for (std::size_t i = 0; i < kRegions; ++i) hash = mix(hash, hash_of_region(region(i)));
  for (const Grace::Slot* slot : threads().slots)
    hash = mix(mix(mix(hash, slot->phase.peek()), slot->active[0].peek()), slot->active[1].peek());
  hash = mix(mix(hash, device_->hash()), heap_->far().live_bytes());
  hash = mix(mix(hash, heap_->far().pages_held()), heap_->far().large_pages());
  for (const std::size_t i : regions_in_order_) hash = mix(hash, i);
  for (std::size_t i = 0; i < kMovers; ++i) hash = mix(hash, in_sequence_[i] + 2 * restarted_[i]);
  for (const Known& known : known_)
    for (const std::uint64_t word : known.is.words) hash = mix(hash, word + known.exists);
  return mix(hash, owners_left_ + 4 * failed_once_);
}

const char* name_of(Shape shape) {
  static constexpr std::array kNames = {"one", "two", "apart", "large", "holder", "shared"};
  return kNames[static_cast<std::size_t>(shape)];
}
const char* name_of(Start start) {
  static constexpr std::array kNames = {"cold", "hot", "clean", "far"};
  return kNames[static_cast<std::size_t>(start)];
}
const char* name_of(Trouble trouble) {
  static constexpr std::array kNames = {"none", "one-read-fails", "one-write-fails"};
  return kNames[static_cast<std::size_t>(trouble)];
}
const char* name_of(MoverKind kind) {
  static constexpr std::array kNames = {"read",  "read-renewed", "write",       "prefetch",    "move",
                                        "reset", "make",         "read-other",  "write-other", "take-out",
                                        "drop",  "guard-read",   "guard-write", "evacuate"};
  return kNames[static_cast<std::size_t>(kind)];
}

}  // namespace hinterland::object::testing
