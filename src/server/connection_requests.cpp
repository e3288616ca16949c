// Connection: what each request does. What is computed, and pages that are made of others: connection_computing.cpp.
#include <algorithm>
#include <bit>
#include <cstring>

#include "server/connection.hpp"

namespace hinterland {

using far::FarPage;
using far::wire::Code;
using far::wire::Fault;
using far::wire::Header;
using far::wire::list_of;
using far::wire::PageNumber;
using far::wire::Range;
using far::wire::Run;
using far::wire::Type;

bool Connection::on_request(const Header& request, std::span<const std::byte> list) {
  Type type{static_cast<std::uint16_t>(request.type)};
  bool opens = type == Type::session_open || type == Type::session_join;
  if (opens != (session_ == nullptr)) return false;
  add(state_.requests, 1);
  if (leaving_ != (type == Type::leave) && !opens) {
    leaving_ = !leaving_;
    leaving_ ? session_->leave(channel_) : session_->stay(channel_);
  }
  switch (type) {
    case Type::session_open:
    case Type::session_join:
      return on_session(request, list);
    case Type::leave:
    case Type::ping:
      reply(make_reply(request, Code::ok));
      return true;
    case Type::slab_allocate:
    case Type::slab_release:
      reply(session_->change_slabs(channel_, request));
      return true;
    case Type::discard:
      return on_discard(request, list_of<Run>(list));
    case Type::read:
      return on_read(request, list_of<PageNumber>(list));
    case Type::read_ranges:
      return on_read_ranges(request, list_of<Range>(list));
    case Type::write:
      return on_write(request, list_of<PageNumber>(list));
    case Type::compute:
      return on_compute(request, list);
    case Type::find_operator:
      return on_find_operator(request, list);
    case Type::apply:
      return on_apply(request, list);
    case Type::compose:
      return on_compose(request, list);
    case Type::patch:
      return on_patch(request, list);
  }
  return false;
}

void Connection::reply(const Header& header) {
  replies_[replies_used_] = header;
  parts_.push_back({&replies_[replies_used_], sizeof header});
  ++replies_used_;
}

bool Connection::on_session(const Header& request, std::span<const std::byte> body) {
  far::wire::SessionRequest wanted;
  std::memcpy(&wanted, body.data(), sizeof wanted);
  Code code = Code::ok;
  address_ = state_.addresses->of(PeerAddress::of(peer_));
  if (Type{static_cast<std::uint16_t>(request.type)} == Type::session_open)
    session_ = state_.sessions->open(wanted.token, address_, &code);
  else if ((session_ = state_.sessions->find(wanted.token)) == nullptr)
    code = Code::session_unknown;
  if (session_ == nullptr) {
    reply(make_reply(request, code));
    return true;  // the client reads why, and goes
  }
  session_request_ = request;
  channel_ = wanted.channel;
  return try_attach();
}

bool Connection::try_attach() {
  Session::Attach result = Session::Attach::too_many;
  // Only the worker that accepts adds to the number, so it stays below the limit.
  if (state_.joined.load(std::memory_order_relaxed) < state_.options.connections_max &&
      address_->connections.take()) {
    result = session_->attach(channel_, fd_, number_, state_.options.client_connections_max);
    if (result != Session::Attach::done) address_->connections.give_back();
  }
  waiting_ = result == Session::Attach::wait;
  if (waiting_) return true;
  if (result == Session::Attach::replaced) return false;
  if (result != Session::Attach::done) {
    session_.reset();
    reply(make_reply(session_request_, result == Session::Attach::ended ? Code::session_unknown : Code::too_many));
    return true;
  }
  attached_ = true;
  add(state_.joined, 1);
  // The body takes the place of a second reply: it is as long as one.
  static_assert(sizeof(far::wire::SessionReply) == sizeof(Header));
  reply(make_reply(session_request_, Code::ok));
  far::wire::SessionReply body{};
  body.slabs_max = session_->slabs_max();
  body.slab_pages = far::kSlabPages;
  body.page_bytes = static_cast<std::uint32_t>(kPageSize);
  body.operations = state_.options.compute ? hl::far::detail::operations_known : 0;
  body.operators = state_.operators != nullptr ? state_.operators->count() : 0;
  body.ranges = 1u;
  body.composes = state_.options.compute ? far::wire::kComposes | far::wire::kPatches : 0;
  body.grace_ms =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(state_.options.resume_grace_ns / 1'000'000, UINT32_MAX));
  reply(std::bit_cast<Header>(body));
  return true;
}

bool Connection::on_read(const Header& request, std::span<const PageNumber> pages) {
  if (check_pages(pages) != Fault::none) return false;
  std::size_t held_before = held_.size();
  for (const PageNumber& number : pages) {
    HeldPage page = session_->hold(FarPage{number});
    if (!page) {
      held_.resize(held_before);
      Header refusal = make_reply(request, Code::not_yours);
      refusal.stamp = echo_of(pages);
      reply(refusal);
      return true;
    }
    held_.push_back(std::move(page));
  }
  Header header = make_reply(request, Code::ok);
  header.stamp = echo_of(pages);
  reply(header);
  for (std::size_t i = held_before; i < held_.size(); ++i) {
    std::byte* memory = held_[i].memory();
    iovec& last = parts_.back();
    if (static_cast<std::byte*>(last.iov_base) + last.iov_len == memory)
      last.iov_len += kPageSize;
    else
      parts_.push_back({memory, kPageSize});
  }
  add(state_.pages_read, pages.size());
  return true;
}

bool Connection::on_read_ranges(const Header& request, std::span<const Range> ranges) {
  if (check_ranges(ranges, request.slab) != Fault::none) return false;
  const std::size_t held_before = held_.size();
  Code code = Code::ok;
  for (const Range& range : ranges) {
    HeldPage page = session_->hold(range_page(range));
    if (!page) code = Code::not_yours;
    held_.push_back(std::move(page));
  }
  if (code != Code::ok) held_.resize(held_before);
  Header header = make_reply(request, code);
  header.stamp = echo_of(ranges);
  reply(header);
  for (std::size_t i = held_before; i < held_.size(); ++i) {
    const Range range = ranges[i - held_before];
    parts_.push_back({held_[i].memory() + range_offset(range), range_bytes(range)});
  }
  if (code == Code::ok) add(state_.ranges_read, ranges.size());
  return true;
}

bool Connection::on_write(const Header& request, std::span<const PageNumber> pages) {
  if (check_pages(pages) != Fault::none) return false;
  Code code = Code::ok;
  for (const PageNumber& number : pages) {
    HeldPage page = session_->hold(FarPage{number});
    bool ours = static_cast<bool>(page);
    if (!ours) code = Code::not_yours;
    // Older than what is there: sent again after a reconnect, when the first sending had arrived after all.
    if (ours && page.begin_write(request.stamp)) {
      write_targets_.push_back(page.memory());
      write_pages_.push_back(std::move(page));
    } else {
      if (scratch_ == nullptr) scratch_ = std::make_unique<std::byte[]>(kPageSize);
      write_targets_.push_back(scratch_.get());
    }
  }
  write_reply_ = make_reply(request, code);
  write_reply_.stamp = echo_of(pages);
  write_have_ = 0;
  return true;
}

std::size_t Connection::take_from_buffer() {
  std::size_t size = std::min(end_ - first_, kPageSize - write_have_ % kPageSize);
  std::memcpy(write_targets_[write_have_ / kPageSize] + write_have_ % kPageSize, buffer_.data() + first_, size);
  written(size);
  return size;
}

// `bytes` more of the write's pages are in place.
void Connection::written(std::size_t bytes) {
  write_have_ += bytes;
  if (write_have_ < write_targets_.size() * kPageSize) return;
  add(state_.pages_written, write_targets_.size());
  write_targets_.clear();
  write_pages_.clear();
  write_have_ = 0;
  reply(write_reply_);
}

bool Connection::on_discard(const Header& request, std::span<const Run> runs) {
  if (check_runs(runs) != Fault::none) return false;
  discard_reply_ = make_reply(request, Code::ok);
  discard_stamp_ = request.stamp;
  discards_.assign(runs.begin(), runs.end());
  discards_next_ = 0;
  discard_some();
  return true;
}

// A message may name 2 GiB, which take a tenth of a second to give back: other clients of this thread have their
// turns in between. True when it is done, and the reply queued.
bool Connection::discard_some() {
  constexpr std::uint32_t kPagesAtOnce = 1024;  // 0.2 ms
  std::uint64_t given_back = 0;
  for (std::uint32_t left = kPagesAtOnce; left > 0 && discarding();) {
    Run& run = discards_[discards_next_];
    std::uint32_t count = std::min<std::uint32_t>(left, run.count);
    // check_runs() made sure that the run ends in the slab where it begins.
    if (HeldPage page = session_->hold(FarPage{run.first}))
      given_back += page.discard(count, discard_stamp_);
    else
      discard_reply_.status = static_cast<std::uint32_t>(Code::not_yours);  // a reply without a body either way
    run.first = run.first + count;
    run.count = run.count - count;
    if (run.count == 0) ++discards_next_;
    left -= count;
  }
  add(state_.pages_discarded, given_back);
  if (discarding()) return false;
  reply(discard_reply_);
  return true;
}

}  // namespace hinterland
