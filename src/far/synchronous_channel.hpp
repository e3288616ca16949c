// A channel whose requests are done when submit() returns; poll() hands their completions out.
#pragma once

#include "far/ready_list.hpp"

namespace hinterland::far {

template <std::uint32_t kInFlightMax>
class SynchronousChannel : public Channel {
 public:
  int submit(std::span<const Request> requests) final {
    std::size_t count = std::min<std::size_t>(requests.size(), ready_.room());
    for (const Request& request : requests.first(count)) ready_.put({request.tag, serve(request)});
    return static_cast<int>(count);
  }
  int poll(std::span<Completion> completions) final { return ready_.take(completions); }
  void wait(std::uint64_t) final {}
  int event_descriptor() const final { return -1; }
  std::uint32_t in_flight() const final { return ready_.size(); }

 private:
  // Does one request; errno or 0.
  virtual int serve(const Request& request) = 0;

  ReadyList<kInFlightMax> ready_;
};

}  // namespace hinterland::far
