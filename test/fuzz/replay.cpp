// Runs a fuzz target on kept inputs, without libFuzzer: every file in the folders and files that are named.
//
//     build/fuzz/wire_fuzz test/fuzz/seeds/wire
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

void replay(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::vector<char> bytes{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  // Of its exact size on the heap, so that a sanitizer sees the first byte read beyond it.
  std::vector<std::uint8_t> input(bytes.begin(), bytes.end());
  input.shrink_to_fit();
  std::printf("%s, %zu bytes\n", file.c_str(), input.size());
  std::fflush(stdout);  // the last name printed is the input that failed
  LLVMFuzzerTestOneInput(input.data(), input.size());
}

}  // namespace

int main(int count, char** names) {
  std::vector<std::filesystem::path> files;
  for (int i = 1; i < count; ++i) {
    if (!std::filesystem::is_directory(names[i])) {
      files.emplace_back(names[i]);
      continue;
    }
    for (const auto& entry : std::filesystem::directory_iterator(names[i]))
      if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  for (const auto& file : files) replay(file);
  std::printf("%zu inputs\n", files.size());
  if (files.empty()) std::fprintf(stderr, "no inputs: name a file, or a folder with some\n");
  return files.empty() ? 1 : 0;
}
