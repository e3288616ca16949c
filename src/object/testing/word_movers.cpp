// The movers of an interleaving: what each of them does, as a program does it, and what it may see.
#include <cstring>
#include <utility>

#include "object/testing/word_interleaving.hpp"

namespace hinterland::object::testing {

using hl::far::scope;

void WordInterleaving::add(MoverKind kind) {
  const std::size_t which = kind == MoverKind::evacuate ? evacuating_++ : kind == MoverKind::drop ? dropping_++ : 0;
  scheduler_.add(testing::name_of(kind), [this, kind, which] {
    try {
      act(kind, which);
    } catch (const hl::far::object_lost&) {
      let_go();  // a read has failed, which the program survives; the object must still be there in the end
    }
  });
}

void WordInterleaving::act(MoverKind kind, std::size_t which) {
  const bool in_node = options_.shape == Shape::holder;
  switch (kind) {
    case MoverKind::read:
      return read(pointers_->one, kOne);
    case MoverKind::read_renewed:
      return read_renewed();
    case MoverKind::write:
      return write(pointers_->one, kOne);
    case MoverKind::prefetch:
      return hl::far::prefetch(&pointers_->one, 1);
    case MoverKind::move:
      return move();
    case MoverKind::reset:
      return reset();
    case MoverKind::make:
      return make();
    case MoverKind::read_other:
      return in_node ? with_held(false) : read(pointers_->other, kOther);
    case MoverKind::write_other:
      return in_node ? with_held(true) : write(pointers_->other, kOther);
    case MoverKind::take_out:
      return take_out();
    case MoverKind::drop:
      return drop(which);
    case MoverKind::guard_read:
    case MoverKind::guard_write:
      return guard(kind == MoverKind::guard_write);
    case MoverKind::evacuate:
      return evacuate(*evacuators_[which]);
  }
}

// All that a program's thread knows between two of its accesses: how far it has come, and what it holds.
void WordInterleaving::remember_position() {
  const std::size_t mover = scheduler_.current();
  std::uint64_t known = ++positions_[mover];
  for (const Item* at : held_[mover])
    known = mix(known, at == nullptr ? 0 : meaning_of_pointer(reinterpret_cast<std::uintptr_t>(at)));
  scheduler_.remember_only(known);
}

void WordInterleaving::hold(std::size_t id, const Item* at) {
  held_[scheduler_.current()][id] = at;
  remember_position();
}

void WordInterleaving::at_point(std::uint64_t what) {
  remember_position();
  scheduler_.spins_no_more();
  scheduler_.goes_on();
  scheduler_.point(mix(50, what));
}

void WordInterleaving::look(std::size_t id, const Item* at) {
  at_point(id);
  if (!ordered_.read(scheduler_.current(), at, sizeof *at, HappensBefore::Of::program))
    fail("reads an object while nothing orders that after its arrival there");
  if (std::memcmp(at, &known_[id].is, sizeof *at) != 0) fail("reads other bytes than were written last");
}

void WordInterleaving::change(std::size_t id, Item* at) {
  at_point(10 + id);
  const std::size_t word = 1 + scheduler_.current();
  if (!ordered_.write(scheduler_.current(), &at->words[word], sizeof at->words[word], HappensBefore::Of::program))
    fail("writes to an object while nothing orders that after its arrival there");
  known_[id].is.words[word] = at->words[word] = 1000 + word;
}

void WordInterleaving::read(const hl::far::ptr<Item>& pointer, std::size_t id) {
  remember_position();
  scope held;
  remember_position();
  const Item* at = pointer.deref(held);
  hold(id, at);
  look(id, at);
  look(id, at);
  let_go();
}

void WordInterleaving::read_renewed() {
  remember_position();
  scope held;
  remember_position();
  const Item* at = pointers_->one.deref(held);
  hold(kOne, at);
  look(kOne, at);
  let_go();
  held.renew();
  at = pointers_->one.deref(held);
  hold(kOne, at);
  look(kOne, at);
  let_go();
}

void WordInterleaving::write(hl::far::ptr<Item>& pointer, std::size_t id) {
  remember_position();
  scope held;
  remember_position();
  Item* at = pointer.deref_mut(held);
  hold(id, at);
  change(id, at);
  look(id, at);
  let_go();
}

void WordInterleaving::move() {
  hl::far::ptr<Item>& to = pointers_->moved[scheduler_.current()];
  known_[kOne].word = nullptr;
  to = std::move(pointers_->one);
  known_[kOne].word = to.far_word();
  read(to, kOne);
}

void WordInterleaving::reset() {
  known_[kOne].exists = false;
  if (options_.shape == Shape::holder) {
    known_[kOther].exists = false;
    pointers_->node.reset();
  } else {
    pointers_->one.reset();
  }
}

void WordInterleaving::make() {
  const std::size_t id = kMade + scheduler_.current();
  hl::far::ptr<Item>& to = pointers_->moved[scheduler_.current()];
  to = make_item(id, hl::far::use::temporal);
  know(id, to.far_word());
  read(to, id);
}

// Of an object that is held by another.
void WordInterleaving::with_held(bool writes) {
  remember_position();
  scope held;
  remember_position();
  Node* node = pointers_->node.deref_mut(held);
  hold(kOne, &node->item);
  look(kOne, &node->item);
  if (writes) {
    Item* at = node->next.deref_mut(held);
    hold(kOther, at);
    change(kOther, at);
    look(kOther, at);
  } else {
    const Item* at = node->next.deref(held);
    hold(kOther, at);
    look(kOther, at);
  }
  let_go();
}

void WordInterleaving::take_out() {
  hl::far::ptr<Item>& to = pointers_->moved[scheduler_.current()];
  {
    remember_position();
    scope held;
    remember_position();
    Node* node = pointers_->node.deref_mut(held);
    hold(kOne, &node->item);
    at_point(20);
    taken_out_ = true;
    known_[kOther].word = nullptr;
    to = std::move(node->next);
    known_[kOther].word = to.far_word();
    let_go();
  }
  read(to, kOther);
}

void WordInterleaving::drop(std::size_t owner) {
  {
    remember_position();
    scope held;
    remember_position();
    const Item* at = pointers_->owners[owner].deref(held);
    hold(kOne, at);
    look(kOne, at);
    let_go();
  }
  at_point(21);
  if (--owners_left_ == 0) known_[kOne] = {};
  pointers_->owners[owner].reset();
}

// As guard_entries.cpp does it, whose instructions cannot be stepped: one that is interrupted by a barrier between
// its look at the word and its access begins anew.
void WordInterleaving::guard(bool writes) {
  const std::size_t mover = scheduler_.current();
  hl::far::detail::word* word = pointers_->one.far_word();
  const std::uint64_t flags = kAway | kCold | (writes ? kClean : 0);
  for (;;) {
    scheduler_.remember_only(mix(70, writes));
    scheduler_.spins_no_more();
    scheduler_.goes_on();
    restarted_[mover] = false;
    in_sequence_[mover] = true;
    const std::uint64_t value = word->load(std::memory_order_acquire);
    if ((value & flags) != 0) {
      in_sequence_[mover] = false;
      int error = 0;
      if (heap_->reach(word, writes ? std::uint32_t{hl::far::detail::kReachWrite} : 0, &error) == nullptr) return;
      continue;
    }
    at_point(22);
    if (restarted_[mover]) continue;
    auto* at = reinterpret_cast<Item*>(address_of(value));
    if (writes)
      known_[kOne].is.words[1 + mover] = at->words[1 + mover] = 1001 + mover;
    else if (std::memcmp(at, &known_[kOne].is, sizeof *at) != 0)
      fail("a guard reads other bytes than were written last");
    in_sequence_[mover] = false;
    return;
  }
}

// Between two rounds an evacuator knows nothing of objects.
void WordInterleaving::evacuate(Evacuator& evacuator) {
  for (unsigned round = 0; round < options_.rounds; ++round) {
    rounds_[scheduler_.current()] = round;
    scheduler_.remember_only(mix(90, round));
    scheduler_.goes_on();
    evacuator.round();
  }
}

}  // namespace hinterland::object::testing
