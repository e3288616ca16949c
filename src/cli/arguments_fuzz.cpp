// Command lines: words separated by zero bytes, for each command; and the addresses and process numbers in them.
#include "base/log.hpp"
#include "base/testing/fuzz_input.hpp"
#include "cli/command_line.hpp"
#include "cli/listen_address.hpp"
#include "cli/pid.hpp"

using namespace hinterland;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  testing::FuzzInput input(data, size);
  static constexpr const char* kNames[] = {"run", "serve", "doctor", "stat", "tune"};
  const cli::Command* command = cli::find_command(kNames[input.take<std::uint8_t>() % 5]);
  HL_CHECK(command != nullptr);
  cli::Arguments words;
  while (!input.empty()) words.push_back(input.take_text());
  // Not the configuration file: it would be any file of this machine, and has a target of its own.
  for (const std::string& word : words)
    if (word.starts_with("--conf")) return 0;
  auto line = cli::CommandLine::parse(*command, words);
  log::set_level(log::Level::quiet);
  for (const std::string& word : words) {
    auto pid = cli::parse_pid(word);
    if (pid) HL_CHECK_OP(*pid, >, 0);
    auto address = cli::parse_listen_address(word, "--listen");
    if (address) HL_CHECK(!address->host.empty());
  }
  if (line) HL_CHECK_OP(line->rest().size(), <=, words.size());
  return 0;
}
