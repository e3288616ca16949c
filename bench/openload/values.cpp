#include "openload/values.hpp"

#include <cstring>

namespace openload {
namespace {

void append_bulk(std::string_view word, std::string& out) {
  out += '$';
  out += std::to_string(word.size());
  out += "\r\n";
  out += word;
  out += "\r\n";
}

std::string name_of(std::uint64_t key) { return "key:" + std::to_string(key); }

}  // namespace

void make_value(std::uint64_t key, std::size_t bytes, std::string& target) {
  target.assign(bytes, 'x');
  Random random(key + 1);
  for (std::size_t at = 0; at + sizeof(std::uint64_t) <= bytes / 2; at += sizeof(std::uint64_t)) {
    std::uint64_t word = random.next();
    std::memcpy(target.data() + at, &word, sizeof word);
  }
}

void append_get(std::uint64_t key, std::string& out) {
  out += "*2\r\n$3\r\nGET\r\n";
  append_bulk(name_of(key), out);
}

void append_set(std::uint64_t key, std::string_view value, std::string& out) {
  out += "*3\r\n$3\r\nSET\r\n";
  append_bulk(name_of(key), out);
  append_bulk(value, out);
}

}  // namespace openload
