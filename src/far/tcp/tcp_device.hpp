// The tcp: device: far memory at a memory server (`hinterland serve`).
//
// A device is one session at the server: a control connection for slabs and discards, and a connection for each
// channel that has been asked for something. A busy server is asked again, with pauses, until the time limit
// (link.hpp). Slabs live as long as any connection of the session, and a grace period longer, in which a broken
// connection can be replaced. Forked children join the session of their parent.
//
// What goes wrong, and what then happens:
// - connection lost, no answer for DeviceSettings::timeout_ns, or an answer that cannot be right: a fresh connection
//   resumes the session, with all unanswered requests. If that breaks, too, there is another one, until nothing was
//   answered for the time limit plus kRetryNs; silence and wrong answers are forgiven once. Then the device is lost:
//   the log says why (-v), and every outstanding and later request completes with an error.
// - a page whose checksum is wrong: one more read, then EBADMSG for that page.
// - a server that stands still, or a connection that breaks, while slabs and pages are given back: nobody waits, and
//   it is told when it can be (give_backs.hpp).
// - a page that was never written, or was discarded: EIO, without asking the server. Never invented zeros.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.hpp"
#include "base/stats.hpp"
#include "far/descriptor_set.hpp"
#include "far/device.hpp"
#include "far/tcp/give_backs.hpp"
#include "far/tcp/link.hpp"
#include "far/tcp/shared_pages.hpp"
#include "far/tcp/tcp_address.hpp"
#include "far/tcp/tcp_computer.hpp"
#include "kernel/kept_file.hpp"

namespace hinterland::far {

// Time for retries, beyond the time limit. Below one second, so that the outcome is within limit plus 1 s.
inline constexpr std::uint64_t kRetryNs = 800'000'000;

// Connects, proves the key (read from settings.key_file) and opens a session. Blocks up to settings.timeout_ns.
// The errors say which server, why, and what to do: unreachable, not one of ours, wrong version, keys that differ.
Result<std::unique_ptr<Device>> open_tcp_device(const TcpAddress& address, const DeviceSettings& settings);

class TcpChannel;

class TcpDevice final : public Device {
 public:
  static Result<std::unique_ptr<TcpDevice>> open(const TcpAddress& address, const DeviceSettings& settings);
  ~TcpDevice() override;

  const DeviceInfo& info() const override { return info_; }
  DeviceUsage usage() const override;
  Result<std::uint32_t> allocate_slab() override;
  void release_slab(std::uint32_t slab) override;
  // Lazy: pages are gathered, and told to the server many at a time.
  void discard(std::span<const FarPage> pages) override;
  Result<std::unique_ptr<Channel>> open_channel() override;
  Status after_fork_in_child() override;
  bool settle() override;
  void leave() override;
  void stay() override;
  std::uint32_t operations() const override { return operations_; }
  int compute(const hl_computation& what, std::span<const Piece> pieces, std::byte* results, bool* done) override {
    return computer_.compute(what, pieces, results, done);
  }
  bool has_operators() const override { return has_operators_; }
  int apply(const OperatorName& which, const std::byte* argument, std::span<const Piece> pieces, std::byte* results,
            bool* done) override {
    return computer_.apply(which, argument, pieces, results, done);
  }
  bool composes() const override { return composes_; }
  int compose(std::uint32_t element_bytes, std::span<const ComposedPage> pages, std::span<const ComposedPart> parts,
              bool* done) override {
    return computer_.compose(element_bytes, pages, parts, done);
  }
  bool patches() const override { return patches_; }
  int patch(std::uint32_t element_bytes, std::span<const PatchedPage> pages, std::span<const hl_patch> patches,
            bool* done) override {
    return computer_.patch(element_bytes, pages, patches, done);
  }
  int lost() const override { return lost_.load(std::memory_order_relaxed); }
  std::size_t descriptors(int* out, std::size_t max) const override { return descriptors_.list(out, max); }

  // --- for channels -------------------------------------------------------------------------------------------
  SharedPages& pages() { return pages_; }
  // For a channel's connection, over its reconnects. Never 0 in the lower half, which is the control connection.
  std::uint64_t next_channel_name() {
    return control_channel_ | (channels_named_.fetch_add(1, std::memory_order_relaxed) + 1);
  }
  std::uint64_t timeout_ns() const { return timeout_ns_; }
  // Starts a connection, which has to be there at `deadline_ns`. 0 or -errno.
  int connect(Link& link, wire::Type session, std::uint64_t channel, std::uint64_t deadline_ns);
  // Does what the link can do without waiting: Link::drive(). Its descriptor may get another number.
  int drive(Link& link);
  int drive_to_end(Link& link);                                                  // likewise, and waits
  int broke(Link& link, int code, const char* what, std::uint64_t deadline_ns);  // Link::broke()
  void drop(Link& link);                                                         // Link::drop()
  bool is_of_forked_child() const { return forked_; }
  // Gives the device up: the first call says why in the log. Thread-safe.
  void lose(int code, const char* what);
  void lose(const wire::HandshakeFailure& failure) { lose(failure.code, failure.what); }
  void channel_closed(TcpChannel* channel);
  void count_reconnect() {
    reconnects_.fetch_add(1, std::memory_order_relaxed);
    count(Counter::device_reconnects);
  }

  DescriptorSet& open_descriptors() { return descriptors_; }

  std::uint64_t reconnects() const { return reconnects_.load(std::memory_order_relaxed); }

 private:
  void renumber(int before, const Link& link);
  TcpDevice(SecretKey key, const DeviceSettings& settings) : key_(std::move(key)), timeout_ns_(settings.timeout_ns) {}
  Result<std::uint32_t> allocate_slab_alone();
  // Another copy of the control connection's descriptor, for the keeper: while that lives the session does, though
  // the program closes all that it can and asks for nothing for longer than the server waits.
  void anchor();
  Status open_session(const std::vector<Endpoint>& endpoints);
  Error describe(const wire::HandshakeFailure& failure) const;
  bool tell(wire::Type type, int milliseconds);
  // One request without a body and its reply over the control connection, with its retries, behind all that was given
  // back before. The reply, or an errno (device lost).
  std::expected<wire::Header, int> call_locked(wire::Type type);
  int exchange_locked(const wire::Header& request, std::uint64_t give_backs_end, wire::Header* reply,
                      std::uint64_t deadline_ns);
  std::int64_t send_give_backs_locked(std::uint64_t end);
  int receive_reply_locked(wire::Header* reply);
  bool is_expected_locked(const wire::Header& reply);
  void connected_anew_locked();
  // Without waiting. False when the connection takes no more now, or is broken.
  bool tell_give_backs_locked();
  bool take_answers_locked();
  void tell_give_backs();
  bool reconnect_locked();
  bool nothing_untold();
  bool has_marks();

  DeviceInfo info_;
  SecretKey key_;
  std::uint64_t timeout_ns_;
  Endpoint endpoint_;
  wire::Token token_{};
  SharedPages pages_;
  std::atomic<int> lost_{0};                  // relaxed: readers need only the value
  std::atomic<std::uint64_t> reconnects_{0};  // relaxed: a figure
  std::atomic<std::uint32_t> channels_named_{0};
  std::atomic<bool> said_leave_{false};
  bool forked_ = false;  // set before there are other threads

  DescriptorSet descriptors_;  // of all connections and channels
  std::uint32_t operations_ = 0;
  bool has_operators_ = false, composes_ = false, patches_ = false;
  TcpComputer computer_{*this, descriptors_};
  std::optional<KeptFile> anchor_;

  mutable Mutex control_mutex_;
  // Guarded by control_mutex_:
  Link control_{descriptors_};
  std::uint64_t control_channel_ = 0;  // and in its upper half the name of this process in the session
  std::array<std::byte, sizeof(wire::Header)> reply_{};  // of a reply that has come in part
  std::size_t reply_have_ = 0;

  mutable Mutex
      give_backs_mutex_;  // for moments, and never while somebody waits for the server; after control_mutex_
  GiveBacks give_backs_;  // guarded by give_backs_mutex_

  Mutex channels_mutex_;  // never held together with control_mutex_
  std::vector<TcpChannel*> channels_;
};

}  // namespace hinterland::far
