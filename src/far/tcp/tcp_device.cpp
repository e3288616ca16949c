#include "far/tcp/tcp_device.hpp"

#include <fcntl.h>
#include <sodium.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "far/tcp/outbox.hpp"
#include "far/tcp/tcp_channel.hpp"

namespace hinterland::far {
namespace {

// 16 TiB: the window's limit (base/units.hpp); bounds the checksum table whatever a server claims to have.
constexpr std::uint32_t kSlabsMax = static_cast<std::uint32_t>((std::uint64_t{16} << 40) / kSlabBytes);

std::uint64_t random_process_name() {
  std::uint32_t name;
  randombytes_buf(&name, sizeof name);
  return std::uint64_t{name} << 32;
}

bool lock_within(Mutex& mutex, int* milliseconds) {
  while (!mutex.try_lock()) {
    if (--*milliseconds < 0) return false;
    timespec nap{0, 1'000'000};
    ::nanosleep(&nap, nullptr);
  }
  return true;
}

}  // namespace

Result<std::unique_ptr<Device>> open_tcp_device(const TcpAddress& address, const DeviceSettings& settings) {
  Result<std::unique_ptr<TcpDevice>> device = TcpDevice::open(address, settings);
  if (!device) return std::unexpected(device.error());
  return std::move(*device);
}

Result<std::unique_ptr<TcpDevice>> TcpDevice::open(const TcpAddress& address, const DeviceSettings& settings) {
  if (sodium_init() < 0) return std::unexpected(Error::make(0, "cannot initialise the crypto library"));
  SecretKey key;
  if (!settings.key_file.empty()) {
    Result<SecretKey> read = read_key_file(settings.key_file);
    if (!read) return std::unexpected(read.error());
    key = std::move(*read);
  }
  Result<std::vector<Endpoint>> endpoints = resolve(address.host, address.port, false);
  if (!endpoints) return std::unexpected(endpoints.error());
  std::unique_ptr<TcpDevice> device(new TcpDevice(std::move(key), settings));
  device->info_.url = address.url();
  device->info_.best_batch_pages = 32;
  device->info_.in_flight_max = kPagesInFlightMax;
  if (Status status = device->open_session(*endpoints); !status) return std::unexpected(status.error());
  return device;
}

Status TcpDevice::open_session(const std::vector<Endpoint>& endpoints) {
  randombytes_buf(token_.data(), token_.size());
  control_channel_ = random_process_name();
  channels_.reserve(64);
  std::uint64_t deadline = now_ns() + timeout_ns_;
  for (const Endpoint& endpoint : endpoints) {
    endpoint_ = endpoint;
    if (connect(control_, wire::Type::session_open, control_channel_, deadline) == 0 && drive_to_end(control_) == 0) {
      std::uint32_t slabs = std::min<std::uint32_t>(control_.session().slabs_max, kSlabsMax);
      Result<SharedPages> pages = SharedPages::create(slabs);
      if (!pages) return std::unexpected(pages.error());
      pages_ = std::move(*pages);
      give_backs_.create(pages_);
      info_.capacity_bytes = info_.beyond_memory_bytes = std::uint64_t{slabs} * kSlabBytes;
      operations_ = control_.session().operations & hl::far::detail::operations_known;
      info_.ranges = control_.session().ranges != 0;
      has_operators_ = control_.session().operators != 0;
      composes_ = (control_.session().composes & wire::kComposes) != 0;
      patches_ = (control_.session().composes & wire::kPatches) != 0;
      anchor();
      return {};
    }
    // Another address may help only where nobody was met at this one.
    if (control_.failure().code == EACCES || control_.failure().code == EPROTONOSUPPORT) break;
  }
  return std::unexpected(describe(control_.failure()));
}

int TcpDevice::connect(Link& link, wire::Type session, std::uint64_t channel, std::uint64_t deadline_ns) {
  wire::SessionRequest request{token_, channel};
  int before = link.descriptor();
  int result = link.start(endpoint_, key_, session, request, deadline_ns);
  renumber(before, link);
  return result;
}

int TcpDevice::drive(Link& link) {
  int before = link.descriptor();
  int result = link.drive();
  renumber(before, link);
  return result;
}

int TcpDevice::drive_to_end(Link& link) {
  int before = link.descriptor();
  int result = link.drive_to_end();
  renumber(before, link);
  return result;
}

int TcpDevice::broke(Link& link, int code, const char* what, std::uint64_t deadline_ns) {
  int before = link.descriptor();
  int result = link.broke(code, what, deadline_ns);
  renumber(before, link);
  return result;
}

void TcpDevice::drop(Link& link) {
  int before = link.descriptor();
  link.drop();
  renumber(before, link);
}

void TcpDevice::renumber(int before, const Link& link) {
  if (link.descriptor() == before) return;
  descriptors_.remove(before);
  descriptors_.add(link.descriptor());
}

void TcpDevice::anchor() {
  int copy = descriptors_.copy_beside(control_.descriptor(), kFirstHighDescriptor);
  if (copy < 0) return;
  anchor_.emplace(copy);
  descriptors_.add(anchor_->descriptor());
}

// Told of the end, the server frees the memory at once instead of waiting for us to come back.
TcpDevice::~TcpDevice() { tell(wire::Type::leave, 10); }

void TcpDevice::leave() {
  if (tell(wire::Type::leave, 10)) said_leave_.store(true);
}

// Worth a longer wait: were all connections cut from now on, the server would not wait for us to come back.
void TcpDevice::stay() {
  if (said_leave_.exchange(false)) tell(wire::Type::ping, 10'000);
}

// Without waiting for the reply, which the next exchange passes over. False when the connection could not be had in
// this time: a thread waits for a silent server, or is stopped in the middle of a request, and we are in its handler.
bool TcpDevice::tell(wire::Type type, int milliseconds) {
  if (!lock_within(control_mutex_, &milliseconds)) return false;
  if (!lock_within(give_backs_mutex_, &milliseconds)) {
    control_mutex_.unlock();
    return false;
  }
  give_backs_mutex_.unlock();  // whoever has it from here on is not the thread in whose handler we are
  // What is given back comes before, for those who stay in the session; and half of it is nothing to add a word to.
  bool ready = lost() == 0 && control_.ready() && tell_give_backs_locked();
  if (ready) {
    wire::Header header = wire::make_request(type, 0, 0);
    iovec part{&header, sizeof header};
    std::int64_t sent = send_some(control_.descriptor(), {&part, 1});
    if (sent > 0 && sent < static_cast<std::int64_t>(sizeof header)) drop(control_);  // half a frame helps nobody
  }
  control_mutex_.unlock();
  return ready;
}

DeviceUsage TcpDevice::usage() const {
  std::uint64_t bytes = bytes_of_pages(pages_.used_pages());
  return {bytes, bytes, 0};
}

Error TcpDevice::describe(const wire::HandshakeFailure& failure) const {
  Error error;
  if (failure.server_version != 0)
    error = Error::make(failure.code, "memory server %s %s (%u, this program %u)", info_.url.c_str(), failure.what,
                        failure.server_version, wire::kVersion);
  else
    error = Error::make(failure.code, "memory server %s %s", info_.url.c_str(), failure.what);
  error.remedy("%s", failure.remedy);
  return error;
}

void TcpDevice::lose(int code, const char* what) {
  int working = 0;
  if (!lost_.compare_exchange_strong(working, code, std::memory_order_relaxed)) return;
  log::info("%s; given up: the pages there cannot be had any more", describe({code, what, "", 0}).what());
}

Result<std::uint32_t> TcpDevice::allocate_slab() {
  auto slab = allocate_slab_alone();
  tell_give_backs();  // of others, who did not wait for us
  return slab;
}

Result<std::uint32_t> TcpDevice::allocate_slab_alone() {
  LockGuard lock(control_mutex_);
  auto is_lost = [this] {
    return std::unexpected(Error::make(lost(), "memory server %s is lost", info_.url.c_str()));
  };
  wire::Code code;
  std::expected<wire::Header, int> reply;
  do {
    if (lost() != 0) return is_lost();
    reply = call_locked(wire::Type::slab_allocate);
    if (!reply) return is_lost();
    code = wire::Code{static_cast<std::uint32_t>(reply->status)};
  } while (code == wire::Code::no_space && has_marks());  // it does not know yet what we gave back
  if (code != wire::Code::ok)
    return std::unexpected(
        Error::make(wire::error_of(code), "memory server %s gives no more memory", info_.url.c_str())
            .remedy("give the server more with hinterland serve --memory, or the program more with --local"));
  if (reply->slab >= pages_.slabs_max() || !pages_.hold(reply->slab)) {
    lose(EPROTO, "gives out memory that is in use already");
    return is_lost();
  }
  return reply->slab;
}

Result<std::unique_ptr<Channel>> TcpDevice::open_channel() {
  // Of a lost device, too, whose channels refuse everything: a forked child may never touch a lost page.
  auto channel = TcpChannel::open(*this);
  if (!channel) return std::unexpected(describe(channel.error()));
  LockGuard lock(channels_mutex_);
  channels_.push_back(channel->get());
  return std::move(*channel);
}

void TcpDevice::channel_closed(TcpChannel* channel) {
  LockGuard lock(channels_mutex_);
  std::erase(channels_, channel);
}

Status TcpDevice::after_fork_in_child() {
  control_mutex_.reset_after_fork();
  give_backs_mutex_.reset_after_fork();
  channels_mutex_.reset_after_fork();
  give_backs_.clear();  // the parent tells them
  reply_have_ = 0;
  descriptors_.clear_after_fork();
  forked_ = true;
  // Join first, let go of the parent's connections after: were the parent to end meanwhile, these keep the session.
  for (TcpChannel* channel : channels_) channel->forget_closed_after_fork();
  control_.forget_if_closed();
  anchor_.reset();
  computer_.before_join_in_child();
  int inherited = control_.release();
  control_channel_ = random_process_name();
  int result = 0;
  if (lost() == 0) {
    result = connect(control_, wire::Type::session_join, control_channel_, now_ns() + timeout_ns_);
    if (result == 0) result = drive_to_end(control_);
  }
  if (inherited >= 0) ::close(inherited);
  computer_.after_join_in_child();
  for (TcpChannel* channel : channels_) channel->abandon_after_fork();
  channels_.clear();
  if (result == 0) anchor();
  if (result == 0) return {};
  // Its pages are lost to the child; what is local is not.
  lose(control_.failure());
  return {};
}

}  // namespace hinterland::far
