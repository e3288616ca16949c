// The reader of a statistics page. Root may look at the pages of others, so the contents are not to be trusted:
// texts without an end, and every number.
#include <fcntl.h>

#include <filesystem>
#include <optional>

#include "base/testing/fuzz_input.hpp"
#include "cli/figures.hpp"
#include "cli/running.hpp"

using namespace hinterland;

namespace {

struct File {
  std::string folder, path;
  std::optional<cli::FiguresFolder> opened;
  File() {
    char name[] = "/dev/shm/hinterland-fuzz-XXXXXX";
    HL_CHECK(::mkdtemp(name) != nullptr);
    folder = name;
    path = folder + "/4711";
    opened.emplace(cli::FiguresFolder::open(folder).value());
  }
  ~File() { std::filesystem::remove_all(folder); }
  void hold(const std::string& bytes) const {
    int out = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    HL_CHECK(out >= 0 && ::write(out, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
    ::close(out);
  }
};

// A page that is right but for what the input changes: runs of a byte anywhere, then bytes from the front.
std::string page_from(testing::FuzzInput& input) {
  std::string bytes(sizeof(StatPage), '\0');
  std::uint64_t magic = StatPage::kMagic;
  std::uint32_t version = kStatPageVersion;
  auto runs = input.take<std::uint8_t>() % 16;
  for (int i = 0; i < runs; ++i) {
    std::size_t first = input.take<std::uint16_t>() % bytes.size();
    std::size_t length = std::min<std::size_t>(input.take<std::uint16_t>(), bytes.size() - first);
    std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(first), length, input.take<char>());
  }
  bool keep = input.take<std::uint8_t>() % 8 != 0;
  std::string front = input.take_rest();
  std::copy_n(front.begin(), std::min(front.size(), bytes.size() - 16), bytes.begin() + 12);
  if (!keep) return front;
  std::memcpy(bytes.data(), &magic, sizeof magic);
  std::memcpy(bytes.data() + offsetof(StatPage, version), &version, sizeof version);
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const File file;
  testing::FuzzInput input(data, size);
  file.hold(page_from(input));
  auto view = cli::StatView::open(*file.opened, "4711", false);
  if (!view) return 0;
  static_cast<void>(view->is_alive());
  Json json = cli::program_json(**view);
  HL_CHECK_OP(json["program"].text().size(), <=, sizeof(StatPage::program));
  HL_CHECK_OP(json["far_url"].text().size(), <=, sizeof(StatPage::far_url));
  HL_CHECK_OP(json["policy"].text().size(), <=, sizeof(StatPage::policy));
  static_cast<void>(json.dump(2));
  return 0;
}
