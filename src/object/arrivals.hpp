// Objects that are brought while nobody blocks: fibers park meanwhile, and coroutines wait in an event loop.
//
// Who begins puts what he wants in a queue. Whoever drives sends all of the queue to the device together, gathers
// what has come, for anybody, and settles the words: workers between two fibers, event loops, and threads that block
// for an object that somebody else brings. So a read that was begun ends also where its beginner does something else.
//
// Pages that were read are kept until others need their place, so that neighbours are read once. Where the device
// reads parts of pages, an object is read alone unless much of its page is wanted (page_or_part.hpp), and what is
// asked for goes out many at a time: a message costs as much as several objects.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

#include "base/mutex.hpp"
#include "object/heap.hpp"
#include "object/page_or_part.hpp"
#include "object/port.hpp"
#include "object/words.hpp"

// The arrivals of an event loop's coroutines. Guarded by Arrivals::mutex().
struct hl::far::detail::loop {
  arrival *first = nullptr, *last = nullptr;  // over, to be gathered
  arrival* watching = nullptr;                // for words that somebody else brings, who blocks
  int set = -1, event = -1;                   // epoll(7): the event, and the device's; -1: nobody has asked
  int watched = -1;                           // the device's, while it is in the set
  bool signalled = false;                     // the event is readable
  bool gathering = false;                     // settle() comes soon, and sees to the event
  loop *before = nullptr, *next = nullptr;    // of all that there are
};

namespace hinterland::object {

using Arrival = hl::far::detail::arrival;
using ArrivalLoop = hl::far::detail::loop;

class Arrivals {
 public:
  explicit Arrivals(Heap& heap) : heap_(heap) {}
  ~Arrivals();
  Arrivals(const Arrivals&) = delete;
  Arrivals& operator=(const Arrivals&) = delete;

  // Of all arrivals and loops of the process.
  static Mutex& mutex();

  // What has become of who->where. there: it is local, look at it. waits: it is on its way. over: an error, or, where
  // who does not want it beyond the limit of memory, no room.
  enum class Begun { there, waits, over };
  Begun begin(Arrival& who, bool may_go_beyond = true);
  // Sends off and gathers. False: nothing has come, or somebody else is at it. Any thread; blocks for nobody, but to
  // open the first connection.
  bool drive();
  // Whether there is anything to gather. A hint: others begin meanwhile.
  bool any_begun() const { return begun_.load(std::memory_order_relaxed) != 0; }
  // Of an arrival that was given to begin(), by anybody. Does not look at it once it is over.
  static bool is_on_its_way(const Arrival& who);

  // Nobody wants it any more.
  void forget(Arrival& who);
  // Sends off. The device's descriptor, readable when drive() may find something; -1: there is none, or something is
  // waited for of which it does not tell.
  int descriptor();
  // As hl::far::detail::runtime says.
  Arrival* gather(ArrivalLoop& of);
  void settle(ArrivalLoop& of);
  // None of its coroutines is waited for any more. Under the mutex.
  void forget_all(ArrivalLoop& of);

  // Everything that was begun comes to its end: nothing is on its way in a child. Nobody else is in a call.
  void before_fork();
  void after_fork_in_child();

 private:
  static constexpr std::uint32_t kSlots = Port::kPages;
  struct Bringing;
  // A part of an object, on one page.
  struct Piece {
    Bringing* of;
    far::FarPage page;
    std::uint32_t from, bytes;  // on the page
    std::uint64_t to;           // in the object
    bool alone;                 // without its page
    Piece* next;
  };
  struct Bringing {
    Word* word;
    std::uint64_t value;
    std::uint32_t flags;
    std::uint32_t left = 0;  // pieces
    int error = 0;
    Header* header = nullptr;  // nullptr: there is no room yet
    FarLog::Pin pin{};         // of a packed object
    Arrival* waiters = nullptr;
    std::uint64_t began_ns = 0;
    Piece first{};                      // all of a packed object
    std::unique_ptr<Piece[]> pieces{};  // of a large one
    Bringing *before = nullptr, *next = nullptr;
  };
  // A page of the port.
  enum class State : std::uint8_t { free, assigned, sent, held };
  struct Slot {
    State state = State::free;
    bool part = false;  // of the page, for one piece
    far::FarPage page;
    PageRecord* record = nullptr;  // of a held one, and counted there
    Piece* pieces = nullptr;       // to be filled from it
  };

  Begun begin_locked(Arrival& who, bool may_go_beyond);
  Bringing* bringing_of(const Word* word);
  static void join(Bringing& bringing, Arrival& who);
  static std::unique_ptr<Bringing> make(Word* word, std::uint64_t value, std::uint32_t flags);
  Begun bring(Bringing& bringing, Arrival& who, bool may_go_beyond);
  bool take_room(Bringing& bringing, bool beyond);
  void retry_for_room();
  void fail_without_room(int error);
  void piece_done(Piece& piece, int error);
  void finish(Bringing& bringing);
  void tell(Arrival& who, int error, void* object);
  void abandon(int error);

  // --- the device's side (arrivals_device.cpp)
  void ask_for(Bringing& bringing);
  bool find_page(Piece& piece);
  void ask_for_piece(Piece& piece);
  int take(const Piece& piece, const std::byte* from);
  bool reads_alone(const Piece& piece) const;
  bool gathers_more(bool all);
  bool drive_locked(bool all);
  int open_port();
  void fail_queue(int error);
  void send();
  std::uint32_t free_slot();
  void give_up_page(Slot& slot);
  void receive();
  void fill_from(std::uint32_t index, int error);
  void fill_alone(Piece& piece, std::uint32_t index, int error);

  // --- loops (arrival_loops.cpp)
  void look_after(ArrivalLoop& of, bool all);
  bool watch_again(Arrival& who);

  Heap& heap_;
  std::unique_ptr<Port> port_;
  std::array<Slot, kSlots> slots_;
  std::uint32_t next_slot_ = 0;                           // to be used again
  Piece *queue_first_ = nullptr, *queue_last_ = nullptr;  // to be read
  std::uint32_t queued_ = 0;
  bool asked_ = false;  // since somebody drove last
  PageOrPart<kSlots> choice_;
  Bringing* bringing_ = nullptr;         // all of them
  std::atomic<std::uint32_t> begun_{0};  // their number
  std::uint32_t without_room_ = 0;       // of these
  std::uint64_t finished_ = 0;           // for one in so many to be timed
  bool finished_any_ = false;            // since drive_locked() began
};

}  // namespace hinterland::object
