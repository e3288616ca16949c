// Far sequences: vector, array, queue and stack whose elements lie in far objects, many in each (AIFM, OSDI 2020, 6).
//
//     hl::far::vector<double> prices;
//     prices.push_back(1.5);
//     double first = prices[0];                       // copies; prices[0] = 2 writes
//     std::sort(prices.begin(), prices.end());        // iterators as those of std::vector<bool>: by proxy
//     for (double& price : prices.walk_mut()) price *= 2;      // fast: plain references, read ahead, one scope
//
// Elements are trivially copyable. What is kept local for each object is its pointer, 8 bytes. Threads: as the
// containers of the standard library. Errors: as ptr; std::out_of_range from at().
#pragma once

#include <compare>
#include <cstddef>
#include <deque>
#include <iterator>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

#include "hinterland/object.hpp"

namespace hl::far {

namespace detail {

// Elements that move together. Half of a page holds the objects that are packed (src/object/far_log.hpp), so that a
// chunk is one of these, and two of them lie on a page.
template <typename T>
inline constexpr std::size_t chunk_elements = sizeof(T) >= 1024 ? 1 : 2048 / sizeof(T);
template <typename T>
struct chunk {
  T elements[chunk_elements<T>];
};

}  // namespace detail

template <typename T>
class vector {
  static_assert(std::is_trivially_copyable_v<T> && std::is_default_constructible_v<T>,
                "elements of far containers are trivially copyable: keep a far::ptr to what is not");
  static constexpr std::size_t per_chunk = detail::chunk_elements<T>;
  using chunk = detail::chunk<T>;

 public:
  using value_type = T;
  using size_type = std::size_t;
  using difference_type = std::ptrdiff_t;

  // Stands for an element, as std::vector<bool>::reference does.
  class reference {
   public:
    operator T() const { return owner_->get(at_); }
    const reference& operator=(const T& value) const {
      owner_->set(at_, value);
      return *this;
    }
    const reference& operator=(const reference& other) const { return *this = static_cast<T>(other); }
    reference(const reference&) = default;
    friend void swap(reference a, reference b) {
      const T value = a;
      a = static_cast<T>(b);
      b = value;
    }

   private:
    friend class vector;
    reference(vector* owner, std::size_t at) : owner_(owner), at_(at) {}
    vector* owner_;
    std::size_t at_;
  };
  using const_reference = T;

  template <bool Const>
  class basic_iterator {
    using owner = std::conditional_t<Const, const vector, vector>;

   public:
    using iterator_category = std::random_access_iterator_tag;
    using iterator_concept = std::random_access_iterator_tag;
    using value_type = T;
    using difference_type = std::ptrdiff_t;
    using pointer = void;
    using reference = std::conditional_t<Const, T, typename vector::reference>;

    basic_iterator() = default;
    reference operator*() const { return (*owner_)[at_]; }
    reference operator[](difference_type n) const { return (*owner_)[at_ + static_cast<std::size_t>(n)]; }
    basic_iterator& operator++() { return ++at_, *this; }
    basic_iterator operator++(int) { return {owner_, at_++}; }
    basic_iterator& operator--() { return --at_, *this; }
    basic_iterator operator--(int) { return {owner_, at_--}; }
    basic_iterator& operator+=(difference_type n) { return at_ += static_cast<std::size_t>(n), *this; }
    basic_iterator& operator-=(difference_type n) { return at_ -= static_cast<std::size_t>(n), *this; }
    friend basic_iterator operator+(basic_iterator i, difference_type n) { return i += n; }
    friend basic_iterator operator+(difference_type n, basic_iterator i) { return i += n; }
    friend basic_iterator operator-(basic_iterator i, difference_type n) { return i -= n; }
    friend difference_type operator-(const basic_iterator& a, const basic_iterator& b) {
      return static_cast<difference_type>(a.at_) - static_cast<difference_type>(b.at_);
    }
    friend bool operator==(const basic_iterator& a, const basic_iterator& b) { return a.at_ == b.at_; }
    friend auto operator<=>(const basic_iterator& a, const basic_iterator& b) { return a.at_ <=> b.at_; }

   private:
    friend class vector;
    basic_iterator(owner* of, std::size_t at) : owner_(of), at_(at) {}
    owner* owner_ = nullptr;
    std::size_t at_ = 0;
  };
  using iterator = basic_iterator<false>;
  using const_iterator = basic_iterator<true>;

  // Elements in order, by plain references, which hold until the next but one chunk is reached: a scope of its own is
  // renewed at each. Chunks that come next are read together, ahead. One pass.
  template <bool Const>
  class basic_walk {
    using owner = std::conditional_t<Const, const vector, vector>;
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
        if (++walk_->now_ == walk_->end_) walk_->next_chunk();
        return *this;
      }
      void operator++(int) { ++*this; }
      bool operator==(std::default_sentinel_t) const { return walk_->now_ == nullptr; }

     private:
      friend class basic_walk;
      explicit iterator(basic_walk* walk) : walk_(walk) {}
      basic_walk* walk_;
    };
    // The walk itself is what moves: begin() is where it stands.
    iterator begin() { return iterator(this); }
    std::default_sentinel_t end() const { return {}; }

   private:
    friend class vector;
    static constexpr std::size_t ahead = 32;  // chunks: 64 KiB

    basic_walk(owner* of, std::size_t first, std::size_t last, use how)
        : owner_(of), at_(first), last_(last), how_(how) {
      next_chunk();
    }
    void next_chunk() {
      now_ = end_ = nullptr;
      if (at_ >= last_) return;
      held_.renew();
      const std::size_t number = at_ / per_chunk, in_chunk = at_ % per_chunk;
      if (number >= read_until_) {
        const std::size_t end = (last_ - 1) / per_chunk + 1, count = end - number < ahead ? end - number : ahead;
        prefetch(owner_->chunks_.data() + number, count, how_);
        read_until_ = number + count;
      }
      auto& where = owner_->chunks_[number];
      if constexpr (Const)
        now_ = where.deref(held_, how_)->elements + in_chunk;
      else
        now_ = where.deref_mut(held_, how_)->elements + in_chunk;
      const std::size_t count = per_chunk - in_chunk < last_ - at_ ? per_chunk - in_chunk : last_ - at_;
      end_ = now_ + count;
      at_ += count;
    }

    owner* owner_;
    std::size_t at_, last_, read_until_ = 0;
    use how_;
    scope held_;
    element* now_ = nullptr;
    element* end_ = nullptr;
  };
  using walk_type = basic_walk<true>;
  using walk_mut_type = basic_walk<false>;

  // `how`: of all its elements, where they come into being.
  explicit vector(use how = use::temporal) : how_(how) {}
  explicit vector(std::size_t count, const T& value = T(), use how = use::temporal) : how_(how) {
    resize(count, value);
  }
  vector(vector&& other) noexcept
      : chunks_(std::move(other.chunks_)), size_(std::exchange(other.size_, 0)), how_(other.how_) {}
  vector& operator=(vector&& other) noexcept {
    chunks_ = std::move(other.chunks_);
    size_ = std::exchange(other.size_, 0);
    how_ = other.how_;
    return *this;
  }

  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  T get(std::size_t at) const {
    scope held;
    return chunks_[at / per_chunk].deref(held)->elements[at % per_chunk];
  }
  void set(std::size_t at, const T& value) {
    scope held;
    chunks_[at / per_chunk].deref_mut(held)->elements[at % per_chunk] = value;
  }
  // In a scope of the caller's.
  const T& get(std::size_t at, const scope& held, use how = use::temporal) const {
    return chunks_[at / per_chunk].deref(held, how)->elements[at % per_chunk];
  }
  T& get_mut(std::size_t at, const scope& held, use how = use::temporal) {
    return chunks_[at / per_chunk].deref_mut(held, how)->elements[at % per_chunk];
  }
  T operator[](std::size_t at) const { return get(at); }
  reference operator[](std::size_t at) { return {this, at}; }
  T at(std::size_t at) const {
    if (at >= size_) throw std::out_of_range("hl::far::vector::at: there are fewer elements");
    return get(at);
  }
  T front() const { return get(0); }
  T back() const { return get(size_ - 1); }

  void push_back(const T& value) {
    const T copy = value;  // it may lie in this vector, and move when a chunk is made
    if (size_ == chunks_.size() * per_chunk) chunks_.push_back(make_as<chunk>(how_));
    set(size_, copy);
    ++size_;
  }
  void pop_back() {
    if (--size_ % per_chunk == 0) chunks_.pop_back();
  }
  void resize(std::size_t count, const T& value = T()) {
    const std::size_t before = size_;
    chunks_.reserve((count + per_chunk - 1) / per_chunk);
    while (chunks_.size() * per_chunk < count) chunks_.push_back(make_as<chunk>(how_));
    chunks_.resize((count + per_chunk - 1) / per_chunk);
    size_ = count;
    if (count > before)
      for (T& element : walk_mut(before, count)) element = value;
  }
  void reserve(std::size_t count) { chunks_.reserve((count + per_chunk - 1) / per_chunk); }
  void clear() noexcept {
    chunks_.clear();
    size_ = 0;
  }

  iterator begin() { return {this, 0}; }
  iterator end() { return {this, size_}; }
  const_iterator begin() const { return {this, 0}; }
  const_iterator end() const { return {this, size_}; }
  const_iterator cbegin() const { return begin(); }
  const_iterator cend() const { return end(); }

  // use::nontemporal: what the walk brings leaves before what others use.
  walk_type walk(use how = use::temporal) const { return {this, 0, size_, how}; }
  walk_type walk(std::size_t first, std::size_t last, use how = use::temporal) const {
    return {this, first, last, how};
  }
  walk_mut_type walk_mut(use how = use::temporal) { return {this, 0, size_, how}; }
  walk_mut_type walk_mut(std::size_t first, std::size_t last, use how = use::temporal) {
    return {this, first, last, how};
  }
  // Elements start, start + step, ...: count of them are used soon.
  void prefetch_elements(std::size_t start, std::size_t step, std::size_t count) const {
    std::size_t last = static_cast<std::size_t>(-1);
    for (std::size_t i = 0; i < count && start + i * step < size_; ++i) {
      const std::size_t number = (start + i * step) / per_chunk;
      if (number != last) prefetch(&chunks_[number], 1, use::temporal);
      last = number;
    }
  }

 private:
  std::vector<ptr<chunk>> chunks_;
  std::size_t size_ = 0;
  use how_ = use::temporal;
};

// As many elements as its extents say, all zero at first: array<int, 100, 200> table; table(3, 4) = 5.
template <typename T, std::size_t... Extents>
class array {
  static_assert(sizeof...(Extents) > 0);

 public:
  explicit array(use how = use::temporal) : elements_(size(), T(), how) {}
  static constexpr std::size_t size() { return (Extents * ...); }

  template <typename... Index>
    requires(sizeof...(Index) == sizeof...(Extents))
  auto operator()(Index... index) {
    return elements_[offset(static_cast<std::size_t>(index)...)];
  }
  template <typename... Index>
    requires(sizeof...(Index) == sizeof...(Extents))
  T operator()(Index... index) const {
    return elements_.get(offset(static_cast<std::size_t>(index)...));
  }
  // All, the last extent the fastest.
  vector<T>& flat() { return elements_; }
  const vector<T>& flat() const { return elements_; }

 private:
  template <typename... Index>
  static constexpr std::size_t offset(Index... index) {
    std::size_t at = 0;
    ((at = at * Extents + index), ...);
    return at;
  }
  vector<T> elements_;
};

// Last in, first out.
template <typename T>
class stack {
 public:
  void push(const T& value) { elements_.push_back(value); }
  void pop() { elements_.pop_back(); }
  T top() const { return elements_.back(); }
  bool empty() const noexcept { return elements_.empty(); }
  std::size_t size() const noexcept { return elements_.size(); }

 private:
  vector<T> elements_;
};

// First in, first out.
template <typename T>
class queue {
  static constexpr std::size_t per_chunk = detail::chunk_elements<T>;
  using chunk = detail::chunk<T>;

 public:
  queue() = default;
  queue(queue&& other) noexcept { swap(other); }
  queue& operator=(queue&& other) noexcept {
    queue before(std::move(other));
    swap(before);
    return *this;
  }
  void swap(queue& other) noexcept {
    chunks_.swap(other.chunks_);
    std::swap(begin_, other.begin_);
    std::swap(end_, other.end_);
  }

  void push(const T& value) {
    const T copy = value;
    if (end_ == chunks_.size() * per_chunk) chunks_.push_back(make<chunk>());
    scope held;
    chunks_.back().deref_mut(held)->elements[end_ % per_chunk] = copy;
    ++end_;
  }
  T front() const {
    scope held;
    return chunks_.front().deref(held)->elements[begin_];
  }
  void pop() {
    if (++begin_ != per_chunk && begin_ != end_) return;
    chunks_.pop_front();
    end_ = end_ > per_chunk ? end_ - per_chunk : 0;
    begin_ = 0;
    // What comes next is read together.
    if (!chunks_.empty()) prefetch(&chunks_.front(), 1);
  }
  bool empty() const noexcept { return begin_ == end_; }
  std::size_t size() const noexcept { return end_ - begin_; }

 private:
  std::deque<ptr<chunk>> chunks_;
  std::size_t begin_ = 0, end_ = 0;  // counted from the first chunk's first element
};

}  // namespace hl::far
