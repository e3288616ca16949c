// The parts of the command that can be tested without starting one.
#include <elf.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/stats_folder.hpp"
#include "base/units.hpp"
#include "cli/command_line.hpp"
#include "cli/config_file.hpp"
#include "cli/executable.hpp"
#include "cli/listen_address.hpp"
#include "cli/preload_library.hpp"
#include "cli/report.hpp"
#include "cli/running.hpp"
#include "paging/in/fetcher.hpp"
#include "policy/policies.hpp"

namespace hinterland::cli {
namespace {

// The table is in the lowest room and cannot ask those that it speaks of.
TEST(OptionTable, AgreesWithThePoliciesAndThePager) {
  std::vector<std::string_view> names;
  for (const hl_policy_ops* policy : policies()) names.push_back(policy->name);
  EXPECT_EQ(choices_of(option(OptionId::policy)), names);
  EXPECT_EQ(option(OptionId::policy).default_text, names.front());
  EXPECT_EQ(option(OptionId::read_ahead).maximum, Fetcher::kRunMax);
}

class CliTest : public testing::Test {
 protected:
  void SetUp() override {
    char path[] = "/tmp/hinterland-cli-XXXXXX";
    ASSERT_NE(mkdtemp(path), nullptr);
    directory_ = path;
    for (const Option& row : all_options()) unsetenv(variable_name(row).c_str());
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  // The statistics of a process that is gone: a child's, because a process keeps the directory it began with.
  void leave_figures(void (*process)(), bool keep = true) {
    setenv("HINTERLAND_STAT_DIR", directory_.c_str(), 1);
    if (keep) setenv("HINTERLAND_STAT_KEEP", "1", 1);
    child_ = fork();
    if (child_ == 0) {
      process();
      _exit(0);
    }
    int status = 0;
    waitpid(child_, &status, 0);
    unsetenv("HINTERLAND_STAT_DIR");
    unsetenv("HINTERLAND_STAT_KEEP");
    ASSERT_EQ(status, 0);
  }
  std::string file_of_child() const {
    char name[32];
    statistics_file_name(name, sizeof name, child_);
    return directory_ + "/" + name;
  }
  std::string write(const std::string& name, const std::string& text) {
    std::string path = directory_ + "/" + name;
    std::ofstream(path, std::ios::binary) << text;
    chmod(path.c_str(), 0755);
    return path;
  }
  Kind kind_of(const std::string& bytes) { return examine_executable(write("program", bytes)).value().kind; }
  pid_t child_ = -1;  // of leave_figures()
  std::string directory_;
};

// A program of headers only: what the examination reads.
std::string elf_program(const char* loader, unsigned char bits = ELFCLASS64, Elf64_Half machine = EM_X86_64) {
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = bits;
  header.e_type = ET_DYN;
  header.e_machine = machine;
  header.e_phoff = sizeof header;
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_phnum = loader != nullptr ? 1 : 0;
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof header);
  if (loader == nullptr) return bytes;
  Elf64_Phdr segment{};
  segment.p_type = PT_INTERP;
  segment.p_offset = sizeof header + sizeof segment;
  segment.p_filesz = std::strlen(loader) + 1;
  bytes.append(reinterpret_cast<const char*>(&segment), sizeof segment);
  return bytes.append(loader, segment.p_filesz);
}

TEST_F(CliTest, KindsOfExecutables) {
  EXPECT_EQ(kind_of(elf_program("/lib64/ld-linux-x86-64.so.2")), Kind::dynamic_program);
  EXPECT_EQ(kind_of(elf_program(nullptr)), Kind::static_program);
  EXPECT_EQ(kind_of(elf_program("/lib/ld-musl-x86_64.so.1")), Kind::other_abi);
  EXPECT_EQ(kind_of(elf_program(nullptr, ELFCLASS32)), Kind::other_abi);
  EXPECT_EQ(kind_of(elf_program("/lib/ld-linux-aarch64.so.1", ELFCLASS64, EM_AARCH64)), Kind::other_abi);
  EXPECT_EQ(kind_of("words"), Kind::not_a_program);
  EXPECT_EQ(kind_of(""), Kind::not_a_program);
  EXPECT_EQ(examine_executable("/bin/sh").value().kind, Kind::dynamic_program);
}

TEST_F(CliTest, EveryTruncationIsSurvived) {
  std::string whole = elf_program("/lib64/ld-linux-x86-64.so.2");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    Result<Executable> program = examine_executable(write("cut", whole.substr(0, size)));
    if (size > EI_NIDENT && size < sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr)) {
      EXPECT_FALSE(program) << size;
    }
  }
}

TEST_F(CliTest, AbsurdOffsetsAreSurvived) {
  std::string bytes = elf_program("/lib64/ld-linux-x86-64.so.2");
  for (std::size_t at = EI_NIDENT; at < sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr); ++at) {
    std::string changed = bytes;
    changed[at] = static_cast<char>(0xff);
    static_cast<void>(examine_executable(write("changed", changed)));
  }
}

TEST_F(CliTest, ScriptsAreFollowedToTheirInterpreter) {
  EXPECT_TRUE(check_program(write("good", "#! /bin/sh -e\n")));
  EXPECT_TRUE(check_program(write("outer", "#!" + directory_ + "/good\n")));
  EXPECT_EQ(check_program(write("lost", "#!/no/such\n")).error().code(), ENOENT);
  EXPECT_EQ(check_program(write("empty", "#!\n")).error().code(), ENOENT);
  EXPECT_EQ(check_program(write("self", "#!" + directory_ + "/self\n")).error().code(), ELOOP);
}

TEST_F(CliTest, ProgramsAreFoundAlongThePath) {
  std::string old = std::getenv("PATH");
  write("tool", "#!/bin/sh\n");
  setenv("PATH", ("/nowhere:" + directory_).c_str(), 1);
  EXPECT_EQ(find_program("tool").value(), directory_ + "/tool");
  EXPECT_EQ(find_program("other").error().code(), ENOENT);
  chmod((directory_ + "/tool").c_str(), 0644);
  EXPECT_EQ(find_program("tool").error().code(), EACCES);
  setenv("PATH", old.c_str(), 1);
  EXPECT_EQ(find_program("").error().code(), ENOENT);
}

TEST_F(CliTest, FlagsBeforeVariablesBeforeFileBeforeDefault) {
  const Command& run = *find_command("run");
  std::string file =
      write("far.toml", "local = \"64M\"\nread-ahead = 5\nwithout = [\"move\", \"poison\"]\nverbose = true\n");
  CommandLine line = CommandLine::parse(run, {"--config", file, "--", "p"}).value();
  EXPECT_EQ(line.number(OptionId::local), 64 * kMiB);
  EXPECT_EQ(line.number(OptionId::read_ahead), 5u);
  EXPECT_EQ(line.number(OptionId::without), 6u);
  EXPECT_EQ(line.number(OptionId::verbose), 1u);
  EXPECT_EQ(line.text(OptionId::policy), "learner");
  EXPECT_FALSE(line.is_given(OptionId::policy));
  setenv("HINTERLAND_LOCAL", "65M", 1);
  EXPECT_EQ(CommandLine::parse(run, {"--config", file, "p"}).value().number(OptionId::local), 65 * kMiB);
  EXPECT_EQ(CommandLine::parse(run, {"--config", file, "--local=66M", "p"}).value().number(OptionId::local),
            66 * kMiB);
}

TEST_F(CliTest, TheProgramsArgumentsAreNotOurs) {
  const Command& run = *find_command("run");
  CommandLine line = CommandLine::parse(run, {"--local", "64M", "-v", "p", "--local", "-q"}).value();
  EXPECT_EQ(line.rest(), (Arguments{"p", "--local", "-q"}));
  EXPECT_EQ(CommandLine::parse(run, {"--", "--", "x"}).value().rest(), (Arguments{"--", "x"}));
  EXPECT_EQ(CommandLine::parse(run, {"-vv", "p"}).value().number(OptionId::verbose), 2u);
  EXPECT_EQ(CommandLine::parse(run, {"-vvvv", "p"}).value().number(OptionId::verbose), 2u);
}

TEST_F(CliTest, QuietAndVerboseInDifferentPlaces) {
  setenv("HINTERLAND_VERBOSE", "2", 1);
  CommandLine line = CommandLine::parse(*find_command("run"), {"-q", "p"}).value();
  EXPECT_EQ(line.number(OptionId::quiet), 1u);
  EXPECT_EQ(line.number(OptionId::verbose), 0u);
}

TEST_F(CliTest, WatchTakesATimeOrNone) {
  const Command& stat = *find_command("stat");
  EXPECT_EQ(CommandLine::parse(stat, {"--watch"}).value().number(OptionId::watch), 1'000'000'000u);
  EXPECT_EQ(CommandLine::parse(stat, {"--watch", "2s"}).value().number(OptionId::watch), 2'000'000'000u);
  CommandLine line = CommandLine::parse(stat, {"--watch", "4711"}).value();  // a PID
  EXPECT_EQ(line.rest(), Arguments{"4711"});
  EXPECT_EQ(line.number(OptionId::watch), 1'000'000'000u);
}

TEST(PreloadList, KeepsWhatIsThere) {
  EXPECT_EQ(preload_list("/l/ours.so", nullptr), "/l/ours.so");
  EXPECT_EQ(preload_list("/l/ours.so", "a.so b.so:c.so"), "/l/ours.so:a.so:b.so:c.so");
  EXPECT_EQ(preload_list("/l/ours.so", "a.so:/l/ours.so::"), "/l/ours.so:a.so");
  EXPECT_EQ(preload_list("/l/ours.so:/l/more.so", "/l/more.so:a.so:/l/ours.so"), "/l/ours.so:/l/more.so:a.so");
}

TEST(ListenAddress, Forms) {
  EXPECT_EQ(parse_listen_address("[::1]:7700", "x").value().host, "::1");
  EXPECT_EQ(parse_listen_address("host:0", "x").value().port, 0);
  for (const char* wrong : {"", ":", "a", "a:", "a:x", "a:65536", "a:-1", "::1:80", "a:1 "})
    EXPECT_FALSE(parse_listen_address(wrong, "x")) << wrong;
}

TEST_F(CliTest, ReportFileIsKeptOnlyWhenWritten) {
  std::string path = directory_ + "/r.json";
  {
    EXPECT_TRUE(ReportFile::open(path, false));
  }
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_TRUE(ReportFile::open(path, false).value().write(Json{{"a", 1}}));
  EXPECT_FALSE(ReportFile::open(path, false));
  EXPECT_TRUE(ReportFile::open(path, true).value().write(Json{{"b", "\xff"}}));  // bytes that are not UTF-8
  EXPECT_GT(std::filesystem::file_size(path), 0u);
  EXPECT_FALSE(ReportFile::open(directory_ + "/no/r.json", false));
  EXPECT_FALSE(ReportFile::open("/dev/full", false).value().write(Json{{"a", 1}}));
}

TEST_F(CliTest, ReportSumsProcesses) {
  leave_figures([] {
    for (std::uint64_t i = 1; i <= 2; ++i) {  // as after an exec
      if (open_stat_page("some") != 0) _exit(1);
      stat_page()->counters.set(Counter::pages_in, 10 * i);
      stat_page()->fault_latency.clear();
      stat_page()->fault_latency.add(1000);
      set_gauge(Gauge::peak_anonymous_bytes, (12 - 2 * i) * kMiB);
    }
    close_stat_page();
  });
  Outcome outcome;
  outcome.wait_status = 11;  // SIGSEGV
  Json report = report_json({"prog", 8 * kMiB, "mem:", "fifo"}, outcome, pages_in(directory_));
  EXPECT_EQ(report["process_count"], 2);
  EXPECT_EQ(report["totals"]["counters"]["pages_in"], 30);
  EXPECT_EQ(report["totals"]["fault_latency"]["count"], 2);
  EXPECT_EQ(report["death_signal"], "SIGSEGV");
  EXPECT_TRUE(report["exit_status"].is_null());
  EXPECT_EQ(report["peak_anonymous_bytes"], 10 * kMiB) << "the largest of the processes, not their sum";
}

TEST_F(CliTest, SummaryTellsThePeakThatTheBudgetIsAbout) {
  RunFacts facts{"prog", 8 * kMiB, "mem:", "fifo"};
  Outcome outcome;
  outcome.usage.ru_maxrss = 100 * 1024;  // KiB; holds the store of mem:, too
  leave_figures([] {
    if (open_stat_page("small") != 0) _exit(1);
    set_gauge(Gauge::peak_anonymous_bytes, 5 * kMiB);
  });
  EXPECT_NE(summary_text(facts, outcome, pages_in(directory_)).find("peak resident 100 MiB, all"), std::string::npos);
  leave_figures([] {
    if (open_stat_page("large") != 0) _exit(1);
    set_gauge(Gauge::peak_anonymous_bytes, 7 * kMiB);
    set_gauge(Gauge::managed, 1);
  });
  EXPECT_NE(summary_text(facts, outcome, pages_in(directory_)).find("peak local 7.00 MiB, bud"), std::string::npos);
}

// Root may look at the pages of others, who can write anything into them: texts without an end, and any number.
TEST_F(CliTest, APageFullOfAnythingIsShownAndNothingBeyondIt) {
  std::string bytes(sizeof(StatPage), 'x');
  std::uint64_t magic = StatPage::kMagic;
  std::uint32_t version = kStatPageVersion;
  std::memcpy(bytes.data(), &magic, sizeof magic);
  std::memcpy(bytes.data() + offsetof(StatPage, version), &version, sizeof version);
  bytes[offsetof(StatPage, policy) + 3] = '\x1b';  // the beginning of an order to a terminal
  std::string file = directory_ + "/4711";
  std::ofstream(file, std::ios::binary) << bytes;
  Result<StatView> view = StatView::open(FiguresFolder::open(directory_).value(), "4711", false);
  ASSERT_TRUE(view) << view.error().what();
  std::filesystem::resize_file(file, 0);  // its owner can do that, too
  Json json = program_json(**view);
  EXPECT_EQ(json["program"], std::string(sizeof(StatPage::program), 'x'));
  EXPECT_EQ(json["far_url"], std::string(sizeof(StatPage::far_url), 'x'));
  EXPECT_EQ(json["policy_text"], std::string(sizeof(PolicyReport::text), 'x'));
  EXPECT_EQ(policy_figures(**view).size(), PolicyReport::kFiguresMax);
  EXPECT_EQ(policy_figures(**view)[0].first, std::string(sizeof(PolicyReport::Figure::name), 'x'));
  EXPECT_EQ(json["policy"], "xxx?" + std::string(sizeof(StatPage::policy) - 4, 'x'));
}

TEST_F(CliTest, PagesOfDeadProcessesAreRemoved) {
  leave_figures([] { _exit(open_stat_page("gone") == 0 ? 0 : 1); }, false);  // without close: as after SIGKILL
  std::string file = file_of_child();
  ASSERT_TRUE(std::filesystem::exists(file));
  EXPECT_TRUE(find_running({directory_}).value().empty());
  EXPECT_FALSE(std::filesystem::exists(file));
}

TEST_F(CliTest, RingsOfAKilledRecorderAreRemovedAndNothingThatTheyLinkTo) {
  namespace fs = std::filesystem;
  std::string ours = "run-" + std::to_string(getpid()) + "-";
  std::string dead = ours + "1", living = ours + std::to_string(process_start_ticks(getpid()));
  for (const std::string& path : {dead + "/rings", living + "/rings", std::string("other/rings")})
    fs::create_directories(directory_ + "/" + path);
  for (const std::string& path : {dead + "/rings/4711.0", living + "/rings/4711.0", std::string("other/rings/1.0")})
    write(path, "ring");
  fs::create_directory_symlink(directory_ + "/other", directory_ + "/" + ours + "2");
  fs::create_directory(directory_ + "/" + ours + "3");
  fs::create_directory_symlink(directory_ + "/other/rings", directory_ + "/" + ours + "3/rings");
  EXPECT_TRUE(find_running({directory_}).value().empty());
  EXPECT_FALSE(fs::exists(directory_ + "/" + dead));
  EXPECT_TRUE(fs::exists(directory_ + "/" + living + "/rings/4711.0")) << "its recorder still reads it";
  EXPECT_TRUE(fs::exists(directory_ + "/other/rings/1.0")) << "a link was followed";
}

// PIDs and times of start say nothing between a container and its host, which may share the directory.
TEST_F(CliTest, WhatBelongsToOtherNamespacesIsLeftAlone) {
  namespace fs = std::filesystem;
  std::string ours = std::to_string(own_namespaces()), theirs = std::to_string(own_namespaces() + 1);
  std::string dead = "run-" + std::to_string(getpid()) + "-1-";
  for (const std::string& owner : {ours, theirs}) {
    fs::create_directories(directory_ + "/" + dead + owner + "/rings");
    write(dead + owner + "/rings/4711.0", "ring");
  }
  leave_figures(
      [] {
        bool open = open_stat_page("elsewhere") == 0;
        ++stat_page()->namespaces;
        _exit(open ? 0 : 1);
      },
      false);
  EXPECT_TRUE(find_running({directory_}).value().empty());
  EXPECT_FALSE(fs::exists(directory_ + "/" + dead + ours));
  EXPECT_TRUE(fs::exists(directory_ + "/" + dead + theirs + "/rings/4711.0"));
  EXPECT_TRUE(fs::exists(file_of_child()));
}

}  // namespace
}  // namespace hinterland::cli
