#include "base/size.hpp"

#include <gtest/gtest.h>

#include <string>

namespace hinterland {
namespace {

TEST(ParseSize, TakesWhatPeopleWrite) {
  struct Case {
    const char* text;
    std::uint64_t bytes;
  };
  for (Case c : {Case{"1", 1}, Case{"4096", 4096}, Case{"64M", 64u << 20}, Case{"64m", 64u << 20},
                 Case{"1.5G", 3ull << 29}, Case{"4KiB", 4096}, Case{"4kb", 4096}, Case{"4 KiB", 4096},
                 Case{"2T", 2ull << 40}, Case{"0.5K", 512}, Case{".5K", 512}, Case{"128T", 1ull << 47},
                 Case{"100B", 100}, Case{"100b", 100}, Case{"+7", 7}, Case{"1.0", 1}, Case{"0.1K", 102},
                 Case{"1.000000000000000000000000001K", 1024}, Case{"000064M", 64u << 20}}) {
    auto size = parse_size(c.text);
    ASSERT_TRUE(size) << c.text << ": " << size.error().what();
    EXPECT_EQ(*size, c.bytes) << c.text;
  }
}

TEST(ParseSize, RefusesWithAReasonAndARemedy) {
  struct Case {
    const char* text;
    const char* reason;
  };
  for (Case c : {Case{"", "is empty"},
                 Case{"0", "is 0"},
                 Case{"0G", "is 0"},
                 Case{"0.0001K", "is 0"},
                 Case{"-1", "is negative"},
                 Case{"-5G", "is negative"},
                 Case{"x", "is not a size"},
                 Case{"12X", "is not a size"},
                 Case{"12Mi", "is not a size"},
                 Case{"12MBB", "is not a size"},
                 Case{"1..5G", "is not a size"},
                 Case{"1.", "is not a size"},
                 Case{".", "is not a size"},
                 Case{"G", "is not a size"},
                 Case{"0x10", "is not a size"},
                 Case{"1e9", "is not a size"},
                 Case{" 1", "is not a size"},
                 Case{"nan", "is not a size"},
                 Case{"1.5", "fraction of a byte"},
                 Case{"1.5B", "fraction of a byte"},
                 Case{"129T", "beyond the address space"},
                 Case{"140737488355329", "beyond the address space"},
                 Case{"18446744073709551617", "beyond the address space"},
                 Case{"99999999999999999999999999999999999999999999999999999", "beyond the address space"}}) {
    auto size = parse_size(c.text, "--local");
    ASSERT_FALSE(size) << c.text << " gave " << *size;
    std::string what = size.error().what();
    EXPECT_EQ(what.find("--local: '"), 0u) << what;
    EXPECT_NE(what.find(c.reason), std::string::npos) << c.text << ": " << what;
    EXPECT_NE(std::string(size.error().next_step()).find("64M"), std::string::npos);
    EXPECT_EQ(size.error().code(), 0);
  }
}

TEST(ParseSize, CutsAbsurdlyLongTextInTheError) {
  auto size = parse_size(std::string(100'000, 'y'));
  ASSERT_FALSE(size);
  EXPECT_LT(std::string(size.error().what()).size(), 200u);
}

TEST(SizeText, ExactTextParsesBack) {
  for (std::uint64_t bytes : {1ull, 1023ull, 1024ull, 4097ull, 3ull << 29, 1ull << 47, (1ull << 47) - 1}) {
    auto back = parse_size(exact_size_text(bytes));
    ASSERT_TRUE(back);
    EXPECT_EQ(*back, bytes) << exact_size_text(bytes);
  }
  EXPECT_EQ(exact_size_text(64u << 20), "64M");
  EXPECT_EQ(exact_size_text(3ull << 29), "1536M");
  EXPECT_EQ(exact_size_text(0), "0");
}

TEST(SizeText, RoundedTextKeepsThreeDigits) {
  EXPECT_EQ(rounded_size_text(0), "0 bytes");
  EXPECT_EQ(rounded_size_text(1023), "1023 bytes");
  EXPECT_EQ(rounded_size_text(1024), "1.00 KiB");
  EXPECT_EQ(rounded_size_text(3ull << 29), "1.50 GiB");
  EXPECT_EQ(rounded_size_text(12'900'000), "12.3 MiB");
  EXPECT_EQ(rounded_size_text((1ull << 30) - 1), "1.00 GiB");
}

}  // namespace
}  // namespace hinterland
