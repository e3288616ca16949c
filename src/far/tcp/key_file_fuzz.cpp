// Reading a key file: any bytes give that key, or an error that says nothing of them.
#include <set>

#include "base/testing/fuzz_input.hpp"
#include "far/tcp/fuzz_random.hpp"
#include "far/tcp/key_file.hpp"

using namespace hinterland;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (!far::testing::restart_random()) return -1;
  static testing::MemoryFile file;
  std::string text(reinterpret_cast<const char*>(data), size);
  file.hold(text);
  Result<far::SecretKey> key = far::read_key_file(file.path());
  std::size_t end = text.find_last_not_of("\r\n");
  std::string_view wanted = std::string_view(text).substr(0, end == std::string::npos ? 0 : end + 1);
  if (!key) {
    HL_CHECK(wanted.size() < far::kKeyBytesMin || text.size() > far::kKeyBytesMax ||
             std::set<char>(wanted.begin(), wanted.end()).size() < far::kKeyDifferentMin);
    if (text.size() > far::kKeyBytesMax + 2) return 0;  // "too long", whatever is in it
    // Of the contents the message may know only the length: other bytes give the same one.
    file.hold(std::string(wanted.size(), 'x') + std::string(text.size() - wanted.size(), '\n'));
    Result<far::SecretKey> other = far::read_key_file(file.path());
    HL_CHECK(!other && std::string_view(other.error().what()) == key.error().what());
    HL_CHECK(std::string_view(other.error().next_step()) == key.error().next_step());
    return 0;
  }
  auto bytes = key->bytes();
  HL_CHECK_OP(bytes.size(), >=, far::kKeyBytesMin);
  HL_CHECK_OP(bytes.size(), <=, far::kKeyBytesMax);
  HL_CHECK(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()) == wanted);
  return 0;
}
