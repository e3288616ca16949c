// What tests of far devices share: page contents of every kind, and a driver that runs requests to their end.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "far/device.hpp"

namespace hinterland::far::testing {

// From HINTERLAND_TEST_SEED, else random. Put it into a SCOPED_TRACE so that a failure prints it.
inline std::uint64_t test_seed() {
  const char* given = std::getenv("HINTERLAND_TEST_SEED");
  return given != nullptr ? std::strtoull(given, nullptr, 0) : std::random_device{}();
}

struct alignas(kPageSize) PageBuffer {
  std::array<unsigned char, kPageSize> bytes{};
  friend bool operator==(const PageBuffer&, const PageBuffer&) = default;
};

// A page that depends on `id` alone. By id % 4: random bytes (do not compress), text-like (do), one byte
// throughout, and zeros but for a stamp at the end.
inline PageBuffer page_content(std::uint64_t id) {
  PageBuffer page;
  std::mt19937_64 random(id * 0x9e3779b97f4a7c15 + 1);
  switch (id % 4) {
    case 0:
      for (std::size_t at = 0; at < kPageSize; at += 8) {
        std::uint64_t word = random();
        std::memcpy(&page.bytes[at], &word, 8);
      }
      break;
    case 1: {
      static constexpr std::array<const char*, 4> kWords = {"far ", "memory ", "page ", "hinterland "};
      for (std::size_t at = 0; at < kPageSize;) {
        const char* word = kWords[random() % kWords.size()];
        std::size_t length = std::min(std::strlen(word), kPageSize - at);
        std::memcpy(&page.bytes[at], word, length);
        at += length;
      }
      break;
    }
    case 2:
      page.bytes.fill(static_cast<unsigned char>(id / 4));
      break;
    default:
      std::memcpy(&page.bytes[kPageSize - 8], &id, 8);
  }
  return page;
}

// Runs requests on a Channel, or Channels, to their end and returns each one's error, in order; -1 where no
// completion came within ten seconds. Tags of the requests are overwritten. Checks that each completes exactly once.
inline std::vector<int> run_to_end(auto& channel, std::vector<Request> requests) {
  std::vector<int> errors(requests.size(), -1);
  for (std::size_t i = 0; i < requests.size(); ++i) requests[i].tag = i;
  std::uint64_t limit = now_ns() + 200'000'000'000;  // a busy machine takes its time
  std::size_t submitted = 0, completed = 0;
  while (completed < requests.size() && now_ns() < limit) {
    if (submitted < requests.size()) {
      int took = channel.submit(std::span(requests).subspan(submitted));
      if (took < 0) {  // lost: what it did not take never completes
        for (; submitted < requests.size(); ++submitted, ++completed) errors[submitted] = -took;
      } else {
        submitted += static_cast<std::size_t>(took);
      }
    }
    std::array<Completion, 32> done;
    int count = channel.poll(done);
    for (int i = 0; i < count; ++i) {
      Completion completion = done[static_cast<std::size_t>(i)];
      if (completion.tag >= requests.size() || errors[completion.tag] != -1) {
        ADD_FAILURE() << "completion with tag " << completion.tag << " unknown or twice";
        continue;
      }
      errors[completion.tag] = completion.error;
      ++completed;
    }
    if (count == 0 && completed < requests.size()) channel.wait(1'000'000);
  }
  return errors;
}

inline int run_one(auto& channel, Operation operation, FarPage page, void* buffer) {
  return run_to_end(channel, {{operation, page, buffer, 0}})[0];
}

// Writes page_content(first_id + i) to each page; how many failed.
inline int write_pages(auto& channel, std::span<const FarPage> pages, std::uint64_t first_id) {
  std::vector<PageBuffer> buffers(pages.size());
  std::vector<Request> requests;
  for (std::size_t i = 0; i < pages.size(); ++i) {
    buffers[i] = page_content(first_id + i);
    requests.push_back({Operation::write, pages[i], &buffers[i], 0});
  }
  int failed = 0;
  for (int error : run_to_end(channel, std::move(requests))) failed += error != 0;
  return failed;
}

// Reads each page; how many failed or differ from page_content(first_id + i).
inline int count_wrong(auto& channel, std::span<const FarPage> pages, std::uint64_t first_id) {
  std::vector<PageBuffer> buffers(pages.size());
  std::vector<Request> requests;
  for (std::size_t i = 0; i < pages.size(); ++i) {
    buffers[i].bytes.fill(0xee);
    requests.push_back({Operation::read, pages[i], &buffers[i], 0});
  }
  int wrong = 0;
  auto errors = run_to_end(channel, std::move(requests));
  for (std::size_t i = 0; i < pages.size(); ++i) wrong += errors[i] != 0 || buffers[i] != page_content(first_id + i);
  return wrong;
}

inline std::vector<FarPage> pages_of_slab(std::uint32_t slab, std::uint32_t first, std::uint32_t count) {
  std::vector<FarPage> pages;
  for (std::uint32_t i = 0; i < count; ++i) pages.push_back({std::uint64_t{slab} * kSlabPages + first + i});
  return pages;
}

}  // namespace hinterland::far::testing
