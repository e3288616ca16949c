// snappy: compresses files that lie in memory, and decompresses them again (AIFM 8.2.2). Everything is read and
// written in order, once.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <numeric>
#include <stdexcept>

#include "common/app.hpp"
#include "common/random.hpp"
#include "common/team.hpp"
#include "snappy/files.hpp"

namespace {

using compressing::File;

constexpr std::size_t kFiles = 16;

// Of 2.5 parts of --size, text is one, what comes of it about half of one, and what becomes of that another.
std::vector<File> prepare(const apps::Settings& settings, const std::vector<std::string>& paths) {
  std::vector<File> files;
  for (const std::string& path : paths) files.push_back(compressing::load(path));
  if (paths.empty())
    for (std::size_t i = 0; i < kFiles; ++i)
      files.push_back(compressing::generate(settings.size_bytes / kFiles * 2 / 5, settings.seed, i));
  return files;
}

// Each file once, by whichever thread is free; the sum of what step(file) gives.
template <typename Step>
std::uint64_t for_each_file(std::vector<File>& files, unsigned threads, Step&& step) {
  std::atomic<std::size_t> next{0};
  std::vector<std::uint64_t> hashes(files.size());
  apps::on_threads(threads, [&](unsigned) {
    for (std::size_t i; (i = next.fetch_add(1)) < files.size();) hashes[i] = apps::mixed(step(files[i]) + i);
  });
  return std::accumulate(hashes.begin(), hashes.end(), std::uint64_t{0});
}

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

apps::Outcome work(apps::App& app, const apps::Settings& settings, const std::vector<std::string>& paths) {
  std::vector<File> files = prepare(settings, paths);
  double packing = 0, unpacking = 0;
  apps::Outcome outcome;
  app.measure([&] {
    auto begin = std::chrono::steady_clock::now();
    outcome.check = for_each_file(files, settings.threads, compressing::pack);
    packing = seconds_since(begin);
    begin = std::chrono::steady_clock::now();
    outcome.check += for_each_file(files, settings.threads, compressing::unpack);
    unpacking = seconds_since(begin);
  });
  std::size_t text = 0, packed = 0;
  for (File& file : files) {
    text += file.text.size();
    packed += std::accumulate(file.packed_bytes.begin(), file.packed_bytes.end(), std::size_t{0});
    outcome.operations += 2 * file.pieces();
    if (settings.verify && std::memcmp(&file.text[0], &file.unpacked[0], file.text.size()) != 0)
      throw std::runtime_error("--verify: decompressing does not give what was compressed");
  }
  outcome.footprint_bytes = 2 * text + packed;
  outcome.figures = {{"text_bytes", text},
                     {"compressed_bytes", packed},
                     {"compress_seconds", packing},
                     {"decompress_seconds", unpacking}};
  return outcome;
}

}  // namespace

int main(int argc, char** argv) {
  apps::App app("snappy", "Compresses and decompresses files that lie in memory");
  std::vector<std::string> paths;
  app.options().texts("--file", paths,
                      "a file to take instead of generated text, several times; --size says nothing then");
  return app.run(argc, argv, [&](const apps::Settings& settings) { return work(app, settings, paths); });
}
