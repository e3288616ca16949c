// A far list: elements in order, in chunks of up to 2 KiB that are far objects of their own (AIFM, OSDI 2020, 6).
//
//     hl::far::list<record> records;
//     records.push_back({1, 2});
//     for (auto i = records.begin(); i != records.end();) i = i->key == 7 ? records.erase(i) : std::next(i);
//     {
//       hl::far::scope s;
//       records.begin().get_mut(s).count += 1;             // in place, for as long as the scope is open
//     }
//     for (record& each : records.walk_mut()) each.count += 1;     // fast: plain references, read ahead, one scope
//     records.reverse();                                 // touches no element
//
// Elements are trivially copyable. What is kept local is some 50 bytes a chunk; chunks that come to be small are
// joined with their neighbours. Unlike std::list, an iterator names a place in a chunk: to insert or erase ends those
// into the same chunk and the ones before and behind it, but for the one that is returned. To splice and split ends
// those into a chunk that is cut, to reverse and merge ends all. Threads: as the containers of the standard library.
// Errors: as ptr.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <list>
#include <type_traits>
#include <utility>

#include "hinterland/object.hpp"
#include "hinterland/object_vector.hpp"

namespace hl::far {

template <typename T>
class list {
  static_assert(std::is_trivially_copyable_v<T> && std::is_default_constructible_v<T>,
                "elements of far containers are trivially copyable: keep a far::ptr to what is not");
  static constexpr std::size_t per_chunk = detail::chunk_elements<T>;
  using chunk = detail::chunk<T>;

  // Its elements are the first `count` of the chunk, the other way round if it is reversed.
  struct node {
    ptr<chunk> where;
    std::uint32_t count = 0;
    bool reversed = false;
    std::size_t place(std::size_t at) const { return reversed ? count - 1 - at : at; }
  };
  using nodes = std::list<node>;

 public:
  using value_type = T;
  using size_type = std::size_t;
  using difference_type = std::ptrdiff_t;

  template <bool Const>
  class basic_iterator {
    using of_nodes = std::conditional_t<Const, typename nodes::const_iterator, typename nodes::iterator>;
    struct arrow {
      T value;
      const T* operator->() const { return &value; }
    };

   public:
    using iterator_category = std::bidirectional_iterator_tag;
    using iterator_concept = std::bidirectional_iterator_tag;
    using value_type = T;
    using difference_type = std::ptrdiff_t;
    using pointer = arrow;
    using reference = T;

    basic_iterator() = default;
    operator basic_iterator<true>() const
      requires(!Const)
    {
      return {node_, at_};
    }
    T operator*() const {
      scope held;
      return get(held);
    }
    arrow operator->() const { return {**this}; }
    void set(const T& value) const
      requires(!Const)
    {
      scope held;
      get_mut(held) = value;
    }
    // In a scope of the caller's.
    const T& get(const scope& held, use how = use::temporal) const {
      return node_->where.deref(held, how)->elements[node_->place(at_)];
    }
    T& get_mut(const scope& held, use how = use::temporal) const
      requires(!Const)
    {
      return node_->where.deref_mut(held, how)->elements[node_->place(at_)];
    }
    basic_iterator& operator++() {
      if (++at_ == node_->count) ++node_, at_ = 0;
      return *this;
    }
    basic_iterator operator++(int) {
      basic_iterator before = *this;
      ++*this;
      return before;
    }
    basic_iterator& operator--() {
      if (at_ == 0) at_ = (--node_)->count;
      --at_;
      return *this;
    }
    basic_iterator operator--(int) {
      basic_iterator before = *this;
      --*this;
      return before;
    }
    friend bool operator==(const basic_iterator& a, const basic_iterator& b) {
      return a.node_ == b.node_ && a.at_ == b.at_;
    }

   private:
    friend class list;
    template <bool>
    friend class basic_iterator;
    basic_iterator(of_nodes in, std::size_t at) : node_(in), at_(at) {}
    of_nodes node_{};
    std::size_t at_ = 0;
  };
  using iterator = basic_iterator<false>;
  using const_iterator = basic_iterator<true>;

  // Elements in order, by plain references, each of which holds until the next chunk is reached. One pass.
  template <bool Const>
  class basic_walk {
    using of_nodes = std::conditional_t<Const, typename nodes::const_iterator, typename nodes::iterator>;
    using element = std::conditional_t<Const, const T, T>;

   public:
    class iterator {
     public:
      using iterator_category = std::input_iterator_tag;
      using value_type = T;
      using difference_type = std::ptrdiff_t;
      using pointer = element*;
      using reference = element&;
      element& operator*() const { return *walk_->now_; }
      iterator& operator++() {
        if (walk_->left_ == 0)
          walk_->next_chunk();
        else
          walk_->now_ += walk_->step_, --walk_->left_;
        return *this;
      }
      void operator++(int) { ++*this; }
      bool operator==(std::default_sentinel_t) const { return walk_->now_ == nullptr; }

     private:
      friend class basic_walk;
      explicit iterator(basic_walk* walk) : walk_(walk) {}
      basic_walk* walk_;
    };
    iterator begin() { return iterator(this); }
    std::default_sentinel_t end() const { return {}; }

   private:
    friend class list;
    static constexpr std::size_t ahead = 32;  // chunks: 64 KiB

    basic_walk(of_nodes first, of_nodes last, use how) : node_(first), last_(last), ahead_(first), how_(how) {
      next_chunk();
    }
    void next_chunk() {
      now_ = nullptr;
      if (node_ == last_) return;
      held_.renew();
      if (node_ == ahead_) read_ahead();
      if constexpr (Const)
        now_ = node_->where.deref(held_, how_)->elements + node_->place(0);
      else
        now_ = node_->where.deref_mut(held_, how_)->elements + node_->place(0);
      step_ = node_->reversed ? -1 : 1;
      left_ = node_->count - 1;
      ++node_;
    }
    void read_ahead() {
      const detail::runtime* rt = detail::the_runtime();
      detail::word* words[ahead];
      std::size_t count = 0;
      for (std::size_t i = 0; i < ahead && ahead_ != last_; ++i, ++ahead_) {
        detail::word* const w = ahead_->where.far_word();
        if ((w->load(std::memory_order_relaxed) & detail::kAway) != 0) words[count++] = w;
      }
      if (count != 0) rt->reach_many(words, count, static_cast<std::uint32_t>(how_));
    }

    of_nodes node_, last_, ahead_;
    use how_;
    scope held_;
    element* now_ = nullptr;
    std::ptrdiff_t step_ = 1;
    std::size_t left_ = 0;
  };
  using walk_type = basic_walk<true>;
  using walk_mut_type = basic_walk<false>;

  // `how`: of all its elements, where they come into being.
  explicit list(use how = use::temporal) : how_(how) {}
  list(list&& other) noexcept
      : nodes_(std::move(other.nodes_)), size_(std::exchange(other.size_, 0)), how_(other.how_) {
    other.nodes_.clear();
  }
  list& operator=(list&& other) noexcept {
    nodes_ = std::move(other.nodes_);
    other.nodes_.clear();
    size_ = std::exchange(other.size_, 0);
    how_ = other.how_;
    return *this;
  }

  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  void clear() noexcept {
    nodes_.clear();
    size_ = 0;
  }
  iterator begin() { return {nodes_.begin(), 0}; }
  iterator end() { return {nodes_.end(), 0}; }
  const_iterator begin() const { return {nodes_.begin(), 0}; }
  const_iterator end() const { return {nodes_.end(), 0}; }
  const_iterator cbegin() const { return begin(); }
  const_iterator cend() const { return end(); }
  // Not of an empty one.
  T front() const { return *begin(); }
  T back() const { return *--end(); }

  // use::nontemporal: what the walk brings leaves before what others use.
  walk_type walk(use how = use::temporal) const { return {nodes_.begin(), nodes_.end(), how}; }
  walk_mut_type walk_mut(use how = use::temporal) { return {nodes_.begin(), nodes_.end(), how}; }

  void push_back(const T& value) {
    const T copy = value;  // it may lie in this list, and move when a chunk is made
    if (nodes_.empty() || nodes_.back().count == per_chunk) make_node(nodes_.end(), false);
    insert_into(std::prev(nodes_.end()), nodes_.back().count, copy);
  }
  // A chunk that is made in front is filled from its last place on.
  void push_front(const T& value) {
    const T copy = value;
    if (nodes_.empty() || nodes_.front().count == per_chunk) make_node(nodes_.begin(), true);
    insert_into(nodes_.begin(), 0, copy);
  }
  void pop_back() { erase(--end()); }
  void pop_front() { erase(begin()); }

  // In front of `at`. The new element.
  iterator insert(iterator at, const T& value) {
    if (at == begin()) return push_front(value), begin();
    if (at == end()) return push_back(value), --end();
    const T copy = value;
    if (at.node_->count == per_chunk) {
      if constexpr (per_chunk == 1) {
        at = {make_node(at.node_, false), 0};
      } else {
        const typename nodes::iterator behind = cut(at.node_, per_chunk / 2);
        if (at.at_ > at.node_->count) at = {behind, at.at_ - at.node_->count};
      }
    }
    insert_into(at.node_, at.at_, copy);
    return at;
  }
  // What was behind it.
  iterator erase(iterator at) {
    node& in = *at.node_;
    {
      scope held;
      chunk& there = *in.where.deref_mut(held);
      const std::size_t place = in.place(at.at_);
      for (std::size_t i = place; i + 1 < in.count; ++i) there.elements[i] = there.elements[i + 1];
    }
    --size_;
    if (--in.count == 0) return {nodes_.erase(at.node_), 0};
    return joined(at);
  }
  iterator erase(iterator first, iterator last) {
    if (first == last) return last;
    const auto [from, to] = cut_out(first, last);
    for (auto each = from; each != to; ++each) size_ -= each->count;
    return {nodes_.erase(from, to), 0};
  }

  // Moves elements of `other` in front of `at`: all, one, or those from `first` to `last`, without touching more than
  // the chunks at the ends. `other` may be this list where `at` is not among what moves.
  void splice(iterator at, list& other) { splice(at, other, other.begin(), other.end()); }
  void splice(iterator at, list& other, iterator which) { splice(at, other, which, std::next(which)); }
  void splice(iterator at, list& other, iterator first, iterator last) {
    if (first == last) return;
    const std::size_t before = at.at_;
    typename nodes::iterator to = at.node_;
    // To cut at `at` first would end `first` or `last` where they lie behind it in the same chunk.
    if (&other == this && before != 0) {
      to = cut(at.node_, before);
      for (iterator* each : {&first, &last})
        if (each->node_ == at.node_ && each->at_ >= before) *each = {to, each->at_ - before};
    }
    const auto [from, until] = other.cut_out(first, last);
    if (&other != this && before != 0) to = cut(to, before);
    if (&other == this && to == from) return;
    std::size_t moved = 0;
    for (auto each = from; each != until; ++each) moved += each->count;
    nodes_.splice(to, other.nodes_, from, until);
    other.size_ -= moved;
    size_ += moved;
  }
  // From `at` on, as a list of its own.
  list split(iterator at) {
    list behind(how_);
    behind.splice(behind.end(), *this, at, end());
    return behind;
  }
  // Both are in order: so is this afterwards, and `other` empty. Of equals, those of this one come first.
  template <typename Less = std::less<>>
  void merge(list& other, Less less = {}) {
    if (&other == this) return;
    list both(how_);
    while (!empty() && !other.empty()) both.take_fronts(*this, other, less);
    both.splice(both.end(), empty() ? other : *this);
    *this = std::move(both);
  }
  void reverse() noexcept {
    nodes_.reverse();
    for (node& each : nodes_) each.reversed = !each.reversed;
  }

 private:
  typename nodes::iterator make_node(typename nodes::iterator before, bool reversed) {
    return nodes_.insert(before, node{make_as<chunk>(how_), 0, reversed});
  }
  // There is room.
  void insert_into(typename nodes::iterator where, std::size_t at, const T& value) {
    node& in = *where;
    scope held;
    chunk& there = *in.where.deref_mut(held);
    const std::size_t place = in.reversed ? in.count - at : at;
    for (std::size_t i = in.count; i > place; --i) there.elements[i] = there.elements[i - 1];
    there.elements[place] = value;
    ++in.count;
    ++size_;
  }
  // Takes from the first chunks of two lists in order, until one of these has been used up.
  template <typename Less>
  void take_fronts(list& one, list& other, Less& less) {
    node &a = one.nodes_.front(), &b = other.nodes_.front();
    std::size_t from_a = 0, from_b = 0;
    {
      scope held;
      const T* const as = a.where.deref(held)->elements;
      const T* const bs = b.where.deref(held)->elements;
      while (from_a < a.count && from_b < b.count) {
        const T &mine = as[a.place(from_a)], &its = bs[b.place(from_b)];
        const bool other_first = less(its, mine);
        push_back(other_first ? its : mine);
        ++(other_first ? from_b : from_a);
      }
    }
    one.drop_front(from_a);
    other.drop_front(from_b);
  }
  // The first elements of the first chunk.
  void drop_front(std::size_t count) {
    node& in = nodes_.front();
    size_ -= count;
    if (count == in.count) return nodes_.pop_front();
    if (count != 0 && !in.reversed) {
      scope held;
      chunk& there = *in.where.deref_mut(held);
      for (std::size_t i = count; i < in.count; ++i) there.elements[i - count] = there.elements[i];
    }
    in.count -= static_cast<std::uint32_t>(count);
  }
  // Elements from `at` on, which is neither the first nor behind the last, go to a chunk of their own. That.
  typename nodes::iterator cut(typename nodes::iterator where, std::size_t at) {
    const typename nodes::iterator behind = make_node(std::next(where), false);
    scope held;
    const chunk& from = *where->where.deref(held);
    chunk& to = *behind->where.deref_mut(held);
    for (std::size_t i = at; i < where->count; ++i) to.elements[behind->count++] = from.elements[where->place(i)];
    if (where->reversed) {  // those that stay were the last of the chunk
      chunk& stay = *where->where.deref_mut(held);
      for (std::size_t i = 0; i < at; ++i) stay.elements[i] = stay.elements[where->count - at + i];
    }
    where->count = static_cast<std::uint32_t>(at);
    return behind;
  }
  // Chunks that hold exactly those elements.
  std::pair<typename nodes::iterator, typename nodes::iterator> cut_out(iterator first, iterator last) {
    if (last.at_ != 0) last.node_ = cut(last.node_, last.at_);
    if (first.at_ != 0) first.node_ = cut(first.node_, first.at_);
    return {first.node_, last.node_};
  }
  // After an erasure in its chunk: two neighbours that fit into three quarters of one become one. Where `at` is now.
  iterator joined(iterator at) {
    const auto fit = [](const node& a, const node& b) { return (a.count + b.count) * 4 <= per_chunk * 3; };
    typename nodes::iterator next = std::next(at.node_);
    if (next != nodes_.end() && fit(*at.node_, *next)) {
      join(at.node_, next);
    } else if (at.node_ != nodes_.begin()) {
      const typename nodes::iterator before = std::prev(at.node_);
      if (fit(*before, *at.node_)) {
        const std::size_t count = before->count;
        join(before, at.node_);
        at = {before, count + at.at_};
      }
    }
    if (at.at_ == at.node_->count) return {std::next(at.node_), 0};
    return at;
  }
  void join(typename nodes::iterator to, typename nodes::iterator from) {
    scope held;
    chunk& into = *to->where.deref_mut(held);
    const chunk& out_of = *from->where.deref(held);
    if (to->reversed) {
      for (std::size_t i = 0; i < to->count / 2; ++i) std::swap(into.elements[i], into.elements[to->count - 1 - i]);
      to->reversed = false;
    }
    for (std::size_t i = 0; i < from->count; ++i) into.elements[to->count + i] = out_of.elements[from->place(i)];
    to->count += from->count;
    nodes_.erase(from);
  }

  nodes nodes_;
  std::size_t size_ = 0;
  use how_;
};

}  // namespace hl::far
