#include "snappy/files.hpp"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "common/random.hpp"

namespace compressing {
namespace {

constexpr std::size_t kWords = 1000, kLettersMax = 12;

// Of 2 to 12 letters.
std::vector<std::string> make_words(std::uint64_t seed) {
  apps::Random random(seed, 3);
  std::vector<std::string> words(kWords);
  for (std::string& word : words) {
    word.resize(2 + random.below(kLettersMax - 1));
    for (char& letter : word) letter = static_cast<char>('a' + random.below(26));
    word += ' ';
  }
  return words;
}

std::size_t room_for(std::size_t size_bytes) {  // snappy::MaxCompressedLength() of all pieces
  std::size_t pieces = (size_bytes + kPieceBytes - 1) / kPieceBytes;
  return pieces * (32 + kPieceBytes + kPieceBytes / 6);
}

}  // namespace

File::File(std::size_t size_bytes)
    : text(size_bytes), packed(room_for(size_bytes)), unpacked(size_bytes), packed_bytes(pieces()) {}

std::size_t File::piece_bytes(std::size_t piece) const {
  return piece + 1 < pieces() ? kPieceBytes : text.size() - piece * kPieceBytes;
}

File generate(std::size_t size_bytes, std::uint64_t seed, std::uint64_t number) {
  std::vector<std::string> words = make_words(seed);
  apps::Random random(seed, number + 16);
  File file(size_bytes);
  for (std::size_t at = 0; at < size_bytes;) {
    const std::string& word = words[random.below(random.below(kWords) + 1)];  // the first are frequent
    std::size_t size = std::min(word.size(), size_bytes - at);
    std::memcpy(&file.text[at], word.data(), size);
    at += size;
  }
  return file;
}

File load(const std::string& path) {
  std::error_code error;
  bool regular = std::filesystem::is_regular_file(path, error);
  std::uintmax_t size = regular ? std::filesystem::file_size(path, error) : 0;
  if (size == 0 || error) throw std::invalid_argument(path + " is not there, empty, or no ordinary file");
  File file(size);
  std::ifstream from(path, std::ios::binary);
  if (!from.read(&file.text[0], static_cast<std::streamsize>(size)))
    throw std::invalid_argument("cannot read all of " + path);
  return file;
}

}  // namespace compressing
