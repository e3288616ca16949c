// Several movers at work on the same few far objects, one schedule at a time: the room's own heap and evacuators, and
// far pointers as programs have them (hinterland/object.hpp), with a scheduler under their atomics, their locks and
// their device. What is looked at after every step and in the end is in word_interleaving.cpp.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/testing/explorer.hpp"
#include "base/testing/happens_before.hpp"
#include "hinterland/object.hpp"
#include "hinterland/object_shared.hpp"
#include "object/evacuator.hpp"
#include "object/heap.hpp"
#include "object/testing/stepped_device.hpp"

namespace hinterland::object::testing {

using hinterland::testing::AtomicOperation;
using hinterland::testing::Explored;
using hinterland::testing::HappensBefore;

// One object, two, or one that is reached through another.
enum class Shape : std::uint8_t {
  one,
  two,     // in the same region
  apart,   // two in regions of their own, so that two evacuators work beside each other
  large,   // of more than half a page
  holder,  // an object in one region with a far pointer to another in the next
  shared   // with two owners
};
enum class Start : std::uint8_t {
  cold,   // new, and not used since
  hot,    // used
  clean,  // brought, not used since, and equal to its far copy
  far
};
enum class Trouble : std::uint8_t { none, one_read_fails, one_write_fails };
enum class MoverKind : std::uint8_t {
  read,
  read_renewed,  // twice, with the scope renewed in between
  write,
  prefetch,
  move,         // to another pointer, and read there
  reset,        // the object ends
  make,         // another object, in the same region
  read_other,   // of two, the second; of holder, what is held, through its holder
  write_other,  // the same
  take_out,     // of holder: what is held moves to a pointer of the program's
  drop,         // of shared: an owner reads, and gives its ownership up
  guard_read,   // as a program with guards reads (guard_entries.cpp)
  guard_write,
  evacuate
};
const char* name_of(Shape shape);
const char* name_of(Start start);
const char* name_of(Trouble trouble);
const char* name_of(MoverKind kind);

struct WordOptions {
  Shape shape = Shape::one;
  Start start = Start::cold;
  Trouble trouble = Trouble::none;
  bool direct = true;   // the device's memory is copied from
  bool guards = false;  // evacuators wait for guards, too
  unsigned rounds = 1;  // of each evacuator
};

inline constexpr std::size_t kMovers = 4;
struct Item {
  std::uint64_t words[1 + kMovers];  // the first is never written again, word i + 1 by mover i
};
struct LargeItem {
  Item item;
  std::byte rest[kPageSize + 96];
};
struct Node {
  Item item;
  hl::far::ptr<Item> next;
};

}  // namespace hinterland::object::testing

template <>
struct hl::far::holds<hinterland::object::testing::Node>
    : hl::far::pointers<&hinterland::object::testing::Node::next> {};

namespace hinterland::object::testing {

class WordInterleaving final : public Explored, public Scheduler::Listener {
 public:
  explicit WordInterleaving(const WordOptions& options);
  ~WordInterleaving() override;
  void add(MoverKind kind);

  // --- Explored
  std::string run(const Scheduler::Choose& choose, std::uint64_t steps_max) override;
  std::uint64_t state() const override;
  Scheduler& scheduler() override { return scheduler_; }

  // --- Scheduler::Listener
  void word_changed(const void*, std::uint64_t, std::uint64_t) override {}
  std::uint64_t name_of(const void* cell) override;
  bool held_by_mover(const void*) override { return false; }
  void stepped() override;
  void entering(std::size_t mover) override;
  bool is_waited_for(const void*) override { return false; }  // who waits for a word naps, or sleeps
  bool steps_at_load(const void* cell) override;
  std::uint64_t meaning_of(const void* cell, std::uint64_t value) override { return meaning(cell, value); }
  bool may_be_late(const void* cell) override;
  void operated(AtomicOperation operation, const void* cell, std::memory_order order) override;
  bool steps_at_lock(const void* mutex) override;
  void locked(const void* mutex) override;
  void unlocking(const void* mutex) override;

  // --- from word_seams.cpp, by a mover
  static WordInterleaving* current();
  void all_pass_a_barrier();
  void all_restart_sequences();
  void copied(const void* to, const void* from, std::size_t bytes);
  Heap& heap() { return *heap_; }

 private:
  // The program's.
  struct Pointers {
    hl::far::ptr<Item> one, other;
    hl::far::ptr<Node> node;
    std::array<hl::far::ptr<Item>, kMovers> moved;
    std::array<hl::far::shared_ptr<Item>, 2> owners;
  };
  // An object, as it must be.
  enum Id : std::size_t { kOne, kOther, kMade };  // kMade + mover: made by that mover
  struct Known {
    bool exists = false;
    const Word* word = nullptr;  // its pointer; nullptr: it moves just now, or ends, or lies in the node
    Item is{};
  };
  static constexpr std::size_t kIds = kMade + kMovers;
  static constexpr std::size_t kRegions = 12;  // of addresses; a few come to be used

  // --- setting up
  void prepare();
  void make_all();
  void bring_to_start();
  Item item_of(std::size_t id) const { return {{10 + id}}; }
  hl::far::ptr<Item> make_item(std::size_t id, hl::far::use how);
  void know(std::size_t id, const Word* word);
  void touch_all(bool twice);

  // --- the movers (word_movers.cpp)
  void act(MoverKind kind, std::size_t which);
  void read(const hl::far::ptr<Item>& pointer, std::size_t id);
  void read_renewed();
  void write(hl::far::ptr<Item>& pointer, std::size_t id);
  void move();
  void reset();
  void make();
  void with_held(bool write);
  void take_out();
  void drop(std::size_t owner);
  void guard(bool write);
  void evacuate(Evacuator& evacuator);
  void hold(std::size_t id, const Item* at);
  void let_go() { held_[scheduler_.current()] = {}; }
  void at_point(std::uint64_t what);
  void remember_position();
  void look(std::size_t id, const Item* at);
  void change(std::size_t id, Item* at);

  // --- what must hold
  void fail(const std::string& what);
  const Word* word_of(std::size_t id) const;
  void check_held();
  void check_object(std::size_t id);
  std::string finish();
  void check_contents();
  void check_nothing_is_left();

  void note_regions();
  bool is_of_scopes(const void* mutex) const;
  bool is_scope_open() const;
  bool in_arena(const void* at) const;
  bool is_embedded_word(const void* cell) const;
  bool under_region_lock(const void* at) const;
  std::uint64_t meaning(const void* cell, std::uint64_t value) const;
  std::uint64_t meaning_of_pointer(std::uint64_t address) const;
  std::uint64_t hash_of_region(const Region& region) const;
  const Region& region(std::size_t number) const { return heap_->local().region_of(arena(number)); }
  const std::byte* arena(std::size_t region) const {
    return reinterpret_cast<const std::byte*>(heap_->local().base()) + region * kRegionBytes;
  }

  WordOptions options_;
  Scheduler scheduler_;
  HappensBefore ordered_;
  SteppedDevice* device_ = nullptr;  // the heap's
  std::unique_ptr<Heap> heap_;
  std::vector<std::unique_ptr<Evacuator>> evacuators_;
  Pointers* pointers_ = nullptr;
  const Word* shared_word_ = nullptr;
  std::array<Known, kIds> known_;
  std::array<std::array<const Item*, kIds>, kMovers> held_{};  // dereferenced in a scope that is open
  std::array<bool, kMovers> in_sequence_{}, restarted_{};
  std::array<std::unordered_set<const void*>, kMovers> locks_;
  std::array<Region::State, kRegions> region_states_{};
  std::array<std::size_t, kRegions> changed_by_{};
  std::array<std::uint64_t, kMovers> before_scopes_{}, rounds_{}, positions_{};  // of each mover
  std::vector<std::size_t> regions_in_order_;                                    // of the last change of their states
  std::size_t evacuating_ = 0, dropping_ = 0;                                    // so many movers
  std::size_t owners_left_ = 2;
  bool failed_once_ = false;
  bool taken_out_ = false;
  std::string wrong_;
};

}  // namespace hinterland::object::testing