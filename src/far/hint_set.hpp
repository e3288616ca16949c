// A set of small numbers in shared memory from which any process takes one at a time: a bitmap with a summary above
// it.
//
// A hint only: whoever takes a number checks it against the state that counts. A process killed between two steps can
// lose a number from the set, never put one in twice. Sequentially consistent throughout: put() writes the bit and
// then the summary, take() clears the summary and then looks at the bits again, which needs a total order.
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>
#include <optional>

namespace hinterland::far {

class HintSet {
 public:
  using Word = std::atomic<std::uint64_t>;
  HintSet() = default;
  // `memory`: words_needed(numbers) zeroed words.
  HintSet(Word* memory, std::uint32_t numbers)
      : bits_(memory), summary_(memory + words_of(numbers)), summary_words_(words_of(words_of(numbers))) {}
  static std::uint32_t words_needed(std::uint32_t numbers) { return words_of(numbers) + words_of(words_of(numbers)); }

  void put(std::uint32_t number) {
    if ((bits_[number / 64].load() & bit(number)) != 0) return;
    bits_[number / 64].fetch_or(bit(number));
    summary_[number / 4096].fetch_or(bit(number / 64));
  }

  // One of the lowest numbers; nothing when the set is empty.
  std::optional<std::uint32_t> take() {
    for (std::uint32_t top = 0; top < summary_words_; ++top)
      while (std::uint64_t words = summary_[top].load())
        if (auto number = take_from(top * 64 + static_cast<std::uint32_t>(std::countr_zero(words)))) return number;
    return std::nullopt;
  }

 private:
  static std::uint32_t words_of(std::uint32_t numbers) { return (numbers + 63) / 64; }
  static std::uint64_t bit(std::uint32_t number) { return std::uint64_t{1} << (number % 64); }

  // Takes a number out of one word, or takes the empty word out of the summary.
  std::optional<std::uint32_t> take_from(std::uint32_t word) {
    while (std::uint64_t seen = bits_[word].load()) {
      std::uint32_t number = word * 64 + static_cast<std::uint32_t>(std::countr_zero(seen));
      if ((bits_[word].fetch_and(~bit(number)) & bit(number)) != 0) return number;
    }
    summary_[word / 64].fetch_and(~bit(word));
    if (bits_[word].load() != 0) summary_[word / 64].fetch_or(bit(word));
    return std::nullopt;
  }

  Word* bits_ = nullptr;
  Word* summary_ = nullptr;
  std::uint32_t summary_words_ = 0;
};

}  // namespace hinterland::far
