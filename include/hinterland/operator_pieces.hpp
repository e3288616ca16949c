// How operator.hpp has pieces computed: at devices, and what they leave here. Programs include operator.hpp.
//
// A piece that lies on two pages is computed here, but its pages need not come for it: what is far of it is asked for
// word by word, as hl::far::gather does, where it is small.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>

#include "hinterland/hint.h"
#include "hinterland/offload_pages.hpp"
#include "hinterland/operator.h"

namespace hl::far::detail {

inline constexpr std::size_t operator_page_bytes = 4096;

// Pieces that a device did not compute, by the operator as the program has it. `at`: where its bytes are.
inline void apply_here(const hl_operator& which, const void* argument, const hl_piece& piece, const void* at,
                       unsigned char* result) {
  alignas(16) unsigned char made[HL_OPERATOR_RESULT_MAX];
  std::memset(made, 0, which.result_bytes);
  which.compute(argument, piece.word, at, piece.bytes, made);
  std::memcpy(result, made, which.result_bytes);
}

// May be out of date: then words are asked for that are here, or a page comes.
inline bool may_be_far(const void* address) {
  const struct hl_runtime* runtime = hl__runtime();
  const std::uintptr_t offset = reinterpret_cast<std::uintptr_t>(address) - runtime->base;
  return offset < runtime->size &&
         (__atomic_load_n(&runtime->map[offset / operator_page_bytes], __ATOMIC_RELAXED) & HL_THERE) == 0;
}

// On two pages, of which one is far, and small enough that words are less than pages.
inline bool lies_across(const hl_piece& piece) {
  constexpr std::size_t most = 512;
  const auto address = reinterpret_cast<std::uintptr_t>(piece.address);
  return piece.bytes <= most && address % operator_page_bytes + piece.bytes > operator_page_bytes &&
         (may_be_far(piece.address) ||
          may_be_far(static_cast<const unsigned char*>(piece.address) + piece.bytes - 1));
}

// Reads pieces word by word, a word of the memory where the device did not give it.
template <typename Word>
class across {
 public:
  across(const hl_operator& which, const void* argument) : which_(which), argument_(argument) {}

  static bool fits(const hl_piece& piece) {
    return reinterpret_cast<std::uintptr_t>(piece.address) % sizeof(Word) == 0 && piece.bytes % sizeof(Word) == 0;
  }
  void add(const hl_piece& piece, unsigned char* result) {
    const std::size_t count = piece.bytes / sizeof(Word);
    if (words_ + count > HL_COMPUTE_MAX) finish();
    for (std::size_t i = 0; i < count; ++i)
      indices_[words_++] = reinterpret_cast<std::uintptr_t>(piece.address) / sizeof(Word) + i;
    pieces_[count_++] = {&piece, result};
  }
  void finish() {
    std::memset(done_.data(), 0, words_);
    const hl_computation what{pick, element_of<Word>(), 0, 0, 0};
    if (words_ != 0) hl__runtime()->compute(&what, nullptr, words_, indices_.data(), values_.data(), done_.data());
    std::size_t word = 0;
    for (std::size_t i = 0; i < count_; ++i) word = compute(*pieces_[i].piece, pieces_[i].result, word);
    words_ = count_ = 0;
  }

 private:
  // `word`: the number of its first; returns that of the next piece's.
  std::size_t compute(const hl_piece& piece, unsigned char* result, std::size_t word) const {
    alignas(16) unsigned char bytes[16 + 512];
    // Aligned as it is in the array.
    unsigned char* at = bytes + reinterpret_cast<std::uintptr_t>(piece.address) % 16;
    for (std::size_t done = 0; done < piece.bytes; done += sizeof(Word), ++word) {
      const Word given = static_cast<Word>(values_[word]);
      const void* from = &given;
      if (done_[word] == 0) from = static_cast<const unsigned char*>(piece.address) + done;
      std::memcpy(at + done, from, sizeof(Word));
    }
    apply_here(which_, argument_, piece, at, result);
    return word;
  }

  const hl_operator& which_;
  const void* argument_;
  std::array<std::size_t, HL_COMPUTE_MAX> indices_;
  std::array<std::uint64_t, HL_COMPUTE_MAX> values_;
  std::array<unsigned char, HL_COMPUTE_MAX> done_;
  struct {
    const hl_piece* piece;
    unsigned char* result;
  } pieces_[HL_COMPUTE_MAX];
  std::size_t words_ = 0, count_ = 0;
};

// Marks in `done` what it has computed.
template <typename Word>
void apply_across(const hl_operator& which, const void* argument, std::span<const hl_piece> pieces,
                  unsigned char* results, unsigned char* done) {
  std::unique_ptr<across<Word>> some;  // too large for a stack
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (done[i] != 0 || !lies_across(pieces[i]) || !across<Word>::fits(pieces[i])) continue;
    if (some == nullptr) some = std::make_unique<across<Word>>(which, argument);
    some->add(pieces[i], results + i * which.result_bytes);
    done[i] = 1;
  }
  if (some != nullptr) some->finish();
}

// At most HL_COMPUTE_MAX.
inline void apply_some(const hl_operator& which, const void* argument, std::span<const hl_piece> pieces,
                       unsigned char* results) {
  std::array<unsigned char, HL_COMPUTE_MAX> done;
  std::memset(done.data(), 0, pieces.size());
  const struct hl_runtime* runtime = hl__runtime();
  if (runtime->abi_version >= 5 && runtime->size != 0 && runtime->apply != nullptr) {
    runtime->apply(&which, argument, pieces.data(), pieces.size(), results, done.data());
    // Where nobody has computed the others, their pages come in any case.
    if (std::memchr(done.data(), 1, pieces.size()) != nullptr) {
      apply_across<std::uint64_t>(which, argument, pieces, results, done.data());
      apply_across<std::uint32_t>(which, argument, pieces, results, done.data());
    }
  }
  for (std::size_t i = 0; i < pieces.size(); ++i)
    if (done[i] == 0) apply_here(which, argument, pieces[i], pieces[i].address, results + i * which.result_bytes);
}

}  // namespace hl::far::detail
