#include "kv/session.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <charconv>
#include <vector>

namespace kv {
namespace {

constexpr std::size_t kLineBytesMax = std::size_t{64} << 10;  // a `get` of some 250 keys
constexpr std::size_t kOutputBytes = std::size_t{64} << 10;   // sent when it is so long
constexpr std::string_view kBadLine = "CLIENT_ERROR bad command line format\r\n";
constexpr std::string_view kVersion = "VERSION 1.6.0-hinterland\r\n";

// All of the text, as a number.
template <typename Number>
bool parse(std::string_view text, Number& number) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

bool is_key(std::string_view text) {
  if (text.empty() || text.size() > kKeyBytesMax) return false;
  for (char c : text)
    if (static_cast<unsigned char>(c) <= ' ' || c == 127) return false;
  return true;
}

std::vector<std::string_view> split(std::string_view line) {
  std::vector<std::string_view> words;
  for (std::size_t at = 0; (at = line.find_first_not_of(' ', at)) != std::string_view::npos;) {
    std::size_t end = line.find(' ', at);
    if (end == std::string_view::npos) end = line.size();
    words.push_back(line.substr(at, end - at));
    at = end;
  }
  return words;
}

// Of memcached's statistics, what is not there here.
bool is_part(std::string_view name) {
  return name == "items" || name == "slabs" || name == "sizes" || name == "settings" || name == "conns";
}

std::string_view text_of(Stored stored) {
  switch (stored) {
    case Stored::stored:
      return "STORED\r\n";
    case Stored::not_stored:
      return "NOT_STORED\r\n";
    case Stored::exists:
      return "EXISTS\r\n";
    case Stored::not_found:
      return "NOT_FOUND\r\n";
    case Stored::too_large:
      return "SERVER_ERROR object too large for cache\r\n";
    case Stored::no_memory:
      break;
  }
  return "SERVER_ERROR out of memory storing object\r\n";
}

// "noreply" as the last of at least `least` words, which it is then not part of.
bool take_noreply(std::span<const std::string_view>& words, std::size_t least) {
  if (words.size() < least || words.back() != "noreply") return false;
  words = words.first(words.size() - 1);
  return true;
}

}  // namespace

bool Session::consume(std::string_view bytes) {
  input_.append(bytes);
  bool more = true;
  while (more && !gone_) more = step();
  input_.erase(0, at_);
  at_ = 0;
  return send() && !gone_;
}

// Does one thing; false when it needs more bytes first.
bool Session::step() {
  if (to_skip_ != 0) {
    std::size_t skipped = std::min(to_skip_, input_.size() - at_);
    at_ += skipped;
    to_skip_ -= skipped;
    return to_skip_ == 0;
  }
  if (skipping_line_) {
    std::size_t end = input_.find('\n', at_);
    skipping_line_ = end == std::string::npos;
    at_ = skipping_line_ ? input_.size() : end + 1;
    return !skipping_line_;
  }
  if (output_.size() >= kOutputBytes && !send()) return false;
  return storage_ ? take_data() : take_line();
}

bool Session::take_line() {
  std::size_t end = input_.find('\n', at_);
  if (std::min(end, input_.size()) - at_ > kLineBytesMax) {
    say("CLIENT_ERROR line too long\r\n");
    gone_ = true;
  }
  if (end == std::string::npos || gone_) return false;
  std::string_view line(input_.data() + at_, end - at_);
  at_ = end + 1;
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (!command(line)) gone_ = true;
  return !gone_;
}

bool Session::take_data() {
  std::size_t wanted = storage_->bytes + 2;
  if (input_.size() - at_ < wanted) return false;
  std::string_view data(input_.data() + at_, wanted);
  Storage storage = *std::move(storage_);
  storage_.reset();
  if (data.substr(storage.bytes) != "\r\n") {
    // Where the client thinks that the value ends is anybody's guess: at the end of this line, as memcached has it.
    at_ += storage.bytes;
    skipping_line_ = true;
    say("CLIENT_ERROR bad data chunk\r\n");
    return true;
  }
  at_ += wanted;
  say(text_of(service_.store.store(storage.mode, storage.key, storage.flags, storage.expires,
                                   data.substr(0, storage.bytes), storage.id)),
      storage.quiet);
  return true;
}

// False: quit.
bool Session::command(std::string_view line) {
  std::vector<std::string_view> all = split(line);
  std::string_view name = all.empty() ? std::string_view() : all[0];
  Words words = all.empty() ? Words() : Words(all).subspan(1);
  if (name == "get") {
    get(words, false);
  } else if (name == "gets") {
    get(words, true);
  } else if (name == "set") {
    begin_storage(Mode::set, words);
  } else if (name == "add") {
    begin_storage(Mode::add, words);
  } else if (name == "replace") {
    begin_storage(Mode::replace, words);
  } else if (name == "append") {
    begin_storage(Mode::append, words);
  } else if (name == "prepend") {
    begin_storage(Mode::prepend, words);
  } else if (name == "cas") {
    begin_storage(Mode::cas, words);
  } else if (name == "delete") {
    remove(words);
  } else if (name == "touch") {
    touch(words);
  } else if (name == "incr" || name == "decr") {
    arithmetic(words, name == "decr");
  } else if (name == "flush_all") {
    flush(words);
  } else if (name == "stats") {
    stats(words);
  } else if (name == "version") {
    say(kVersion);
  } else if (name == "verbosity") {
    verbosity(words);
  } else if (name == "quit") {
    return false;
  } else {
    say("ERROR\r\n");
  }
  return true;
}

void Session::get(Words keys, bool with_id) {
  if (keys.empty()) return say("ERROR\r\n");
  for (std::string_view key : keys)
    if (!is_key(key)) return say(kBadLine);
  for (std::string_view key : keys) {
    if (output_.size() >= kOutputBytes && !send()) return;
    service_.store.get(key, [&](const Item& item) {
      output_.append("VALUE ").append(key).append(" ").append(std::to_string(item.flags)).append(" ");
      output_.append(std::to_string(item.value_bytes));
      if (with_id) output_.append(" ").append(std::to_string(item.id));
      output_.append("\r\n").append(item.value()).append("\r\n");
    });
  }
  say("END\r\n");
}

// <key> <flags> <expires> <bytes> [<id>] [noreply]
void Session::begin_storage(Mode mode, Words words) {
  std::size_t wanted = mode == Mode::cas ? 5 : 4;
  bool quiet = take_noreply(words, wanted + 1);
  Storage storage{mode, {}, 0, 0, 0, 0, quiet};
  std::int64_t bytes = 0;
  if (words.size() != wanted) return say("ERROR\r\n");
  if (!parse(words[3], bytes)) return say(kBadLine);
  if (bytes < 0 || bytes > INT32_MAX) return say("CLIENT_ERROR bad data chunk\r\n");
  storage.bytes = static_cast<std::size_t>(bytes);
  bool right = is_key(words[0]) && parse(words[1], storage.flags) && parse(words[2], storage.expires) &&
               (mode != Mode::cas || parse(words[4], storage.id));
  if (!right || storage.bytes > kValueBytesMax) {
    to_skip_ = storage.bytes + 2;  // or it would be taken for commands
    return say(right ? text_of(Stored::too_large) : kBadLine);
  }
  storage.key = words[0];
  storage_ = std::move(storage);
}

// <key> [0] [noreply]
void Session::remove(Words words) {
  bool quiet = take_noreply(words, 2);
  if (words.empty() || words.size() > 2) return say("ERROR\r\n");
  if (!is_key(words[0]) || (words.size() == 2 && words[1] != "0")) return say(kBadLine, quiet);
  say(service_.store.remove(words[0]) ? "DELETED\r\n" : "NOT_FOUND\r\n", quiet);
}

// <key> <expires> [noreply]
void Session::touch(Words words) {
  bool quiet = take_noreply(words, 3);
  std::int64_t expires = 0;
  if (words.size() != 2) return say("ERROR\r\n");
  if (!is_key(words[0]) || !parse(words[1], expires)) return say("CLIENT_ERROR invalid exptime argument\r\n");
  say(service_.store.touch(words[0], expires) ? "TOUCHED\r\n" : "NOT_FOUND\r\n", quiet);
}

// <key> <amount> [noreply]
void Session::arithmetic(Words words, bool down) {
  bool quiet = take_noreply(words, 3);
  std::uint64_t amount = 0;
  if (words.size() != 2) return say("ERROR\r\n");
  if (!is_key(words[0])) return say(kBadLine);
  if (!parse(words[1], amount)) return say("CLIENT_ERROR invalid numeric delta argument\r\n");
  auto [result, value] = service_.store.add(words[0], amount, down);
  switch (result) {
    case Arithmetic::Result::done:
      return say(std::to_string(value) + "\r\n", quiet);
    case Arithmetic::Result::not_found:
      return say("NOT_FOUND\r\n", quiet);
    case Arithmetic::Result::not_a_number:
      return say("CLIENT_ERROR cannot increment or decrement non-numeric value\r\n", quiet);
    case Arithmetic::Result::no_memory:
      return say(text_of(Stored::no_memory), quiet);
  }
}

// [<delay>] [noreply]
void Session::flush(Words words) {
  bool quiet = take_noreply(words, 1);
  std::int64_t delay = 0;
  if (words.size() > 1) return say("ERROR\r\n");
  if (words.size() == 1 && !parse(words[0], delay)) return say(kBadLine);
  service_.store.flush(delay);
  say("OK\r\n", quiet);
}

// <level> [noreply]: taken, and of no effect.
void Session::verbosity(Words words) {
  bool quiet = take_noreply(words, 1);
  std::uint32_t level = 0;
  if (words.size() > 1 || (words.empty() && !quiet)) return say("ERROR\r\n");
  bool right = words.empty() || parse(words[0], level);
  say(right ? "OK\r\n" : kBadLine, quiet);
}

void Session::stats(Words words) {
  auto line = [&](std::string_view name, auto value) {
    output_.append("STAT ").append(name).append(" ").append(std::to_string(value)).append("\r\n");
  };
  if (!words.empty()) return say(is_part(words[0]) ? "END\r\n" : "ERROR\r\n");
  Counts counts = service_.store.counts();
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  std::int64_t now = service_.store.now();
  line("pid", getpid());
  line("uptime", now - service_.started);
  line("time", now);
  output_.append("STAT version ").append(kVersion.substr(8));
  line("pointer_size", 8 * sizeof(void*));
  line("rusage_user",
       static_cast<double>(usage.ru_utime.tv_sec) + 1e-6 * static_cast<double>(usage.ru_utime.tv_usec));
  line("rusage_system",
       static_cast<double>(usage.ru_stime.tv_sec) + 1e-6 * static_cast<double>(usage.ru_stime.tv_usec));
  line("curr_connections", service_.connections.load());
  line("total_connections", service_.connections_ever.load());
  line("cmd_get", counts.gets);
  line("cmd_set", counts.sets);
  line("cmd_touch", counts.touches);
  line("get_hits", counts.hits);
  line("get_misses", counts.gets - counts.hits);
  line("delete_hits", counts.delete_hits);
  line("delete_misses", counts.deletes - counts.delete_hits);
  line("touch_hits", counts.touch_hits);
  line("touch_misses", counts.touches - counts.touch_hits);
  line("limit_maxbytes", service_.store.limit_bytes());
  line("threads", service_.threads);
  line("bytes", counts.bytes);
  line("curr_items", counts.items);
  line("total_items", counts.stored);
  line("expired", counts.expired);
  line("evictions", counts.evictions);
  say("END\r\n");
}

void Session::say(std::string_view text, bool quiet) {
  if (!quiet) output_.append(text);
}

bool Session::send() {
  if (output_.empty()) return true;
  bool sent = send_(output_);
  output_.clear();
  gone_ = gone_ || !sent;
  return sent;
}

}  // namespace kv
