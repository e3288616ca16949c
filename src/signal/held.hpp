// What one system call reads and writes, brought in and kept there until the call is done. Before it, because a call
// that finds a page missing half-way may have had its effect already: a connection accepted, a datagram taken.
//
// Costs a few atomic instructions a page that is there. What does not lie in far memory costs two comparisons.
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "signal/self_paging.hpp"

namespace hinterland {

class Held {
 public:
  Held() {}  // not the array
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

  void in(const void* pointer, std::size_t bytes) { hold(pointer, bytes, false); }
  void out(const void* pointer, std::size_t bytes) { hold(pointer, bytes, true); }
  template <typename T>
  void in(const T* pointer) {
    hold(pointer, sizeof *pointer, false);
  }
  template <typename T>
  void out(const T* pointer) {
    hold(pointer, sizeof *pointer, true);
  }
  // With its end. Stops where nothing is mapped.
  void text(const char* pointer);
  // An array that ends with a null pointer, and its texts.
  void texts(char* const* pointers);
  // An address that is filled in, and the size of its room.
  void address(const void* address, const socklen_t* size);
  // More than `most` are refused by the kernel.
  void vector(const iovec* parts, std::size_t count, bool write, std::size_t most = 1024);
  void message(const msghdr* message, bool receive);
  void messages(const mmsghdr* messages, std::size_t count, bool receive);

  // Lets go; keeps errno, and returns what it is given.
  template <typename T>
  T done(T result) {
    if (count_ != 0) let_go();
    return result;
  }

  // What is held is the caller's to let go: take(address, bytes) of each piece.
  template <typename Take>
  void hand_over(Take&& take) {
    for (std::size_t i = 0; i < count_; ++i) {
      const Piece& piece = i < kHere ? here_[i] : more_[i - kHere];
      take(piece.address, piece.bytes);
    }
    give_back_more();
    more_ = nullptr;
    count_ = room_more_ = 0;
  }

 private:
  struct Piece {
    std::uintptr_t address;
    std::size_t bytes;
  };
  // Few calls name more. What is here is part of the caller's stack, which may be a small one.
  static constexpr std::size_t kHere = 3;
  bool hold(const void* pointer, std::size_t bytes, bool write);
  Piece* place();
  bool grow();
  void give_back_more();
  void let_go();

  Piece here_[kHere];  // not cleared
  Piece* more_ = nullptr;
  std::size_t count_ = 0, room_more_ = 0;
};

}  // namespace hinterland
