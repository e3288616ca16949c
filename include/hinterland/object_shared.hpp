// A far object with several owners: it ends with the last of them, as with std::shared_ptr.
//
//     hl::far::shared_ptr<record> a = hl::far::make_shared<record>(1, 2), b = a;
//     {
//       hl::far::scope s;
//       b.deref_mut(s)->count += 1;         // a sees it
//     }
//     record copy = a.read();
//
// 8 bytes. Owners share a count and one far pointer in ordinary memory, 16 bytes an object, so that copying and
// moving one does not concern the runtime, and it may lie in objects of any kind: holds<> does not have to name it.
//
// Threads: as std::shared_ptr. Several may use, copy and destroy pointers to the same object at a time, each thread
// its own; the object's contents are the program's to guard. Errors: as ptr.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <utility>

#include "hinterland/object.hpp"

namespace hl::far {

template <typename T>
class shared_ptr {
 public:
  using element_type = T;

  shared_ptr() noexcept = default;
  shared_ptr(std::nullptr_t) noexcept {}
  // Takes the object over. Throws std::bad_alloc, and then `object` still owns it.
  explicit shared_ptr(ptr<T>&& object) : shared_(object ? new shared : nullptr) {
    if (shared_ != nullptr) shared_->object = std::move(object);
  }
  shared_ptr(const shared_ptr& other) noexcept : shared_(other.shared_) {
    // relaxed: who copies one has it, so that the object cannot end meanwhile.
    if (shared_ != nullptr) shared_->owners.fetch_add(1, std::memory_order_relaxed);
  }
  shared_ptr(shared_ptr&& other) noexcept : shared_(std::exchange(other.shared_, nullptr)) {}
  shared_ptr& operator=(shared_ptr other) noexcept {
    swap(other);
    return *this;
  }
  ~shared_ptr() { reset(); }

  // Gives its ownership up. The last one ends the object.
  void reset() noexcept {
    shared* const given_up = std::exchange(shared_, nullptr);
    // acq_rel: what the others did to the object comes before its end.
    if (given_up != nullptr && given_up->owners.fetch_sub(1, std::memory_order_acq_rel) == 1) delete given_up;
  }
  void swap(shared_ptr& other) noexcept { std::swap(shared_, other.shared_); }
  friend void swap(shared_ptr& a, shared_ptr& b) noexcept { a.swap(b); }

  explicit operator bool() const noexcept { return shared_ != nullptr; }
  // How many own it, itself included; with other threads at work, how many did a moment ago.
  std::size_t use_count() const noexcept {
    return shared_ != nullptr ? shared_->owners.load(std::memory_order_relaxed) : 0;
  }
  // The same object, or both none.
  friend bool operator==(const shared_ptr& a, const shared_ptr& b) noexcept { return a.shared_ == b.shared_; }
  friend bool operator==(const shared_ptr& a, std::nullptr_t) noexcept { return a.shared_ == nullptr; }

  // As ptr's. There is an object.
  const T* deref(const scope& held, use how = use::temporal) const { return shared_->object.deref(held, how); }
  T* deref_mut(const scope& held, use how = use::temporal) const { return shared_->object.deref_mut(held, how); }
  T read() const
    requires std::is_trivially_copyable_v<T>
  {
    return shared_->object.read();
  }
  void write(const T& value) const
    requires std::is_trivially_copyable_v<T>
  {
    shared_->object.write(value);
  }

 private:
  friend struct std::hash<shared_ptr<T>>;
  struct shared {
    ptr<T> object;
    HL_FAR_ATOMIC<std::size_t> owners{1};
  };
  shared* shared_ = nullptr;
};

static_assert(sizeof(shared_ptr<int>) == 8);

// A new object. As make_as and make.
template <typename T, typename... Arguments>
shared_ptr<T> make_shared_as(use how, Arguments&&... arguments) {
  return shared_ptr<T>(make_as<T>(how, std::forward<Arguments>(arguments)...));
}
template <typename T, typename... Arguments>
shared_ptr<T> make_shared(Arguments&&... arguments) {
  return make_shared_as<T>(use::temporal, std::forward<Arguments>(arguments)...);
}

}  // namespace hl::far

template <typename T>
struct std::hash<hl::far::shared_ptr<T>> {
  std::size_t operator()(const hl::far::shared_ptr<T>& p) const noexcept {
    return std::hash<const void*>()(p.shared_);
  }
};
