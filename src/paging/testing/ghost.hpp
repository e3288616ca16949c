// What the program's pages may hold while several movers are at work on them: a few words a page, each with the
// values that it may have now. Exact when nothing races; where the program itself races with a call of its own (a
// write while another thread gives the page back), both outcomes are allowed, and no third.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/testing/scheduler.hpp"

namespace hinterland::testing {

class Ghost {
 public:
  static constexpr std::size_t kWords = 8;  // of a page: word i is written by mover i

  explicit Ghost(std::size_t pages) : pages_(pages) {}

  void set(std::size_t page, std::size_t word, std::uint64_t value) { at(page, word) = {{value}, 0}; }
  // Written now, while the page may be on its way to being cleared or moved.
  void write(std::size_t page, std::size_t word, std::uint64_t value) {
    Word& known = at(page, word);
    known.written = ++clock_;
    known.value = value;
    if (pages_[page].racing == 0)
      known.may_be = {value};
    else
      allow(known, value);
  }
  bool allows(std::size_t page, std::size_t word, std::uint64_t value) const {
    const auto& may_be = pages_[page].words[word].may_be;
    return std::find(may_be.begin(), may_be.end(), value) != may_be.end();
  }
  // Between the two, the page is cleared, or moved to where a racing write may not follow. Returns what to give to
  // the end. Afterwards it holds zeros, or what it held before; but for what was written meanwhile.
  std::uint64_t begin(std::size_t page) {
    ++pages_[page].racing;
    for (Word& word : pages_[page].words) allow(word, 0);
    return ++clock_;
  }
  void end_clearing(std::size_t page, std::uint64_t began) {
    --pages_[page].racing;
    for (Word& word : pages_[page].words) {
      if (word.written > began) continue;
      word.may_be = {0};
      word.value = 0;
    }
    pages_[page].changed = ++clock_;
    allow_pending(page);
  }
  void end_moving(std::size_t page, std::uint64_t began, const Ghost& before) {
    --pages_[page].racing;
    for (std::size_t i = 0; i < kWords; ++i)
      if (at(page, i).written <= began) at(page, i).may_be = before.pages_[page].words[i].may_be;
    pages_[page].changed = ++clock_;
    allow_pending(page);
  }
  // Between the two, the page may come to hold these values instead, all at one moment.
  using Words = std::array<std::uint64_t, kWords>;
  std::uint64_t begin_replacing(std::size_t page, const Words& values) {
    ++pages_[page].racing;
    pages_[page].pending.push_back(values);
    allow_pending(page);
    return ++clock_;
  }
  // As a write of all words, where it came about.
  void end_replacing(std::size_t page, std::uint64_t began, const Words& values, bool replaced) {
    const bool alone = --pages_[page].racing == 0;
    std::erase(pages_[page].pending, values);
    for (std::size_t i = 0; i < kWords; ++i) {
      Word& word = at(page, i);
      if (word.written > began) continue;
      if (!replaced) {
        if (alone) std::erase(word.may_be, values[i]);
        continue;
      }
      word.written = ++clock_;
      word.value = values[i];
      if (alone) word.may_be = {values[i]};
    }
  }
  // Between the two, word 0, which nobody writes by itself, may come to hold this value; the others stay.
  std::uint64_t begin_patching(std::size_t page, std::uint64_t value) {
    ++pages_[page].patching;
    allow(at(page, 0), value);
    return ++clock_;
  }
  void end_patching(std::size_t page, std::uint64_t began, std::uint64_t value, bool patched) {
    Word& word = at(page, 0);
    const bool alone = --pages_[page].patching == 0 && pages_[page].racing == 0 && pages_[page].changed < began &&
                       word.written < began;
    if (patched) {
      word.written = ++clock_;
      word.value = value;
      allow(word, value);
      if (alone) word.may_be = {value};
    } else if (alone) {
      std::erase(word.may_be, value);
    }
  }
  // What was written last to each word since then; 0: nothing.
  using Racing = std::array<std::uint64_t, kWords>;
  Racing written_since(std::size_t page, std::uint64_t began) const {
    Racing racing{};
    for (std::size_t i = 0; i < kWords; ++i)
      if (const Word& word = pages_[page].words[i]; word.written > began) racing[i] = word.value;
    return racing;
  }
  // The word has this value, unless it was written or cleared meanwhile.
  void settle(std::size_t page, std::size_t word, std::uint64_t value) {
    if (at(page, word).value == value) at(page, word).may_be = {value};
    allow_pending(page);
  }
  // After a look at what is there, which was allowed: it stays, unless something races.
  void seen(std::size_t page, std::size_t word, std::uint64_t value) {
    if (pages_[page].racing == 0 && (word != 0 || pages_[page].patching == 0)) at(page, word).may_be = {value};
  }

  std::uint64_t hash() const {
    std::uint64_t hash = 0;
    for (const Page& page : pages_) {
      hash = mix(hash, page.racing | page.patching << 8);
      for (const Word& word : page.words)
        for (std::uint64_t value : word.may_be) hash = mix(hash, value + 1);
    }
    return hash;
  }

 private:
  struct Word {
    std::vector<std::uint64_t> may_be{0};
    std::uint64_t written = 0, value = 0;  // when last, and what
  };
  struct Page {
    std::array<Word, kWords> words;
    unsigned racing = 0, patching = 0;
    std::uint64_t changed = 0;   // when it was last cleared or moved
    std::vector<Words> pending;  // what may take its place at any moment
  };
  void allow_pending(std::size_t page) {
    for (const Words& values : pages_[page].pending)
      for (std::size_t i = 0; i < kWords; ++i) allow(at(page, i), values[i]);
  }
  Word& at(std::size_t page, std::size_t word) { return pages_[page].words[word]; }
  static void allow(Word& word, std::uint64_t value) {
    if (std::find(word.may_be.begin(), word.may_be.end(), value) == word.may_be.end()) word.may_be.push_back(value);
  }

  std::vector<Page> pages_;
  std::uint64_t clock_ = 0;
};

}  // namespace hinterland::testing
