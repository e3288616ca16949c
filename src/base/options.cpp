#include "base/options.hpp"

#include <array>
#include <cctype>
#include <charconv>

#include "base/available_memory.hpp"
#include "base/duration.hpp"
#include "base/policy_names.hpp"
#include "base/size.hpp"
#include "base/suggest.hpp"
#include "base/units.hpp"

namespace hinterland {
namespace {

constexpr std::uint64_t kTiB = 1024 * kGiB;
constexpr std::uint64_t kMs = 1'000'000;
constexpr std::uint64_t kS = 1000 * kMs;

using enum OptionType;
using enum Elsewhere;

#define X(table, name) "|" name
constexpr const char* kPolicyNames = &HL_POLICIES(X)[1];
#undef X

}  // namespace

// In the order of OptionId.
constexpr Option kTable[] = {
    {"local", 0, size_or_percent, "SIZE", "75%", "of the memory available now (system or cgroup)", 4 * kMiB, kSizeMax,
     "", kForRun | kForTune | kForReplay | kForAdvise, variable_and_file, true,
     "Local memory the program may keep resident; at least 4M. The rest of its memory is far.", "--local 512M"},
    {"far", 0, text, "URL", "zmem:", "compressed in RAM", 0, 0, "", kForRun, variable_and_file, true,
     "Where far memory is: mem:, zmem:[lz4|zstd], file:PATH[?size=SIZE], tcp://HOST:PORT, or "
     "sim:latency=TIME,bandwidth=RATE,inner=URL.",
     "--far tcp://10.0.0.2:7700"},
    {"policy", 0, choice_or_file, "NAME|FILE", "learner", "", 0, 0, kPolicyNames, kForRun | kForReplay | kForAdvise,
     variable_and_file, true,
     "Which pages leave local memory first, by a policy that comes with Hinterland or by a plug-in: a shared "
     "library, "
     "named with a slash (./mine.so; docs/policies.md). What follows a colon is for the policy itself.",
     "--policy fifo"},
    {"read-ahead", 0, integer, "PAGES", "64", "", 0, 64, "", kForRun | kForReplay | kForAdvise, variable_and_file,
     true, "How many pages of 4 KiB a fault may fetch ahead; 0 for none.", "--read-ahead 16"},
    {"window", 0, size, "SIZE", "4T", "halved until the system grants it", 64 * kMiB, 16 * kTiB, "", kForRun,
     variable_and_file, true, "Address space reserved for mappings whose addresses the program does not choose.",
     "--window 256G"},
    {"addresses", 0, choice, "WHICH", "auto", "", 0, 0, "auto|all|window", kForRun, variable_and_file, true,
     "Which memory may be far: all private anonymous memory, at addresses of the program's choice and below 4 GiB, "
     "too; or what the runtime places in its window. auto: all, and the window where the system or --fault signal "
     "allows no more.",
     "--addresses window"},
    {"takeover", 0, choice, "WHEN", "pressure", "", 0, 0, "pressure|start", kForRun, variable_and_file, true,
     "When paging begins: once the budget is nearly used, or at once.", "--takeover start"},
    {"take", 0, choice, "HOW", "auto", "", 0, 0, "auto|move|protect", kForRun, variable_and_file, true,
     "How a changed page is taken from the program: moved away, or write-protected and copied.", "--take protect"},
    {"key-file", 0, path, "FILE", "", "no key", 0, 0, "", kForRun | kForServe, variable_and_file, true,
     "File with the key shared by server and programs: at least 32 bytes, readable by its owner only.",
     "--key-file ~/.hinterland.key"},
    {"timeout", 0, duration, "TIME", "5s", "", 10 * kMs, 3600 * kS, "", kForRun, variable_and_file, true,
     "A far device that is silent for longer is given up.", "--timeout 2s"},
    {"fault", 0, choice, "HOW", "message", "", 0, 0, "message|signal", kForRun, variable_and_file, true,
     "Who serves a fault: a thread of the runtime, to which the kernel sends a message, or the thread that faults, "
     "in a "
     "signal handler. docs/tuning.md says for which programs signal is safe.",
     "--fault signal"},
    {"reclaim", 0, choice, "HOW", "adaptive", "", 0, 0, "adaptive|hermit", kForRun, variable_and_file, true,
     "Whose feedback says when pages leave ahead of need, and by how many threads: Hinterland's own, or, to compare, "
     "that of Hermit (NSDI 2023) as published.",
     "--reclaim hermit"},
    {"without", 0, choices, "FEATURE,...", "", "nothing is left out", 0, 0,
     "write-protect|move|poison|vectored-discard|feedback|background-reclaim|second-chance|batching|second-reclaimer|"
     "write-back-thread|write-forecast|read-ahead|second-mapper",
     kForRun, variable_and_file, true,
     "Features of the kernel (the first four) and parts of the runtime to do without, for experiments and tests.",
     "--without move,poison"},
    {"catch", 0, flag, "", "", "", 0, 1, "", kForRun, variable_and_file, true,
     "Catch system calls that the program makes by instructions of its own, past libc: -v says where there are some. "
     "Each then costs a signal.",
     "--catch"},
    {"stat-dir", 0, path, "DIRECTORY", "", "XDG_RUNTIME_DIR/hinterland, or /dev/shm/hinterland-UID", 0, 0, "",
     kForRun | kForStat | kForTune | kForCore | kForTop, variable_and_file, true,
     "Where running programs keep their figures, one file each.", "--stat-dir /run/far"},
    {"verbose", 'v', level, "", "0", "", 0, 2, "", kForRun | kForServe, variable_and_file, true,
     "Say what is going on; for run also a summary at the end. Twice: for debugging.", "-v"},
    {"quiet", 'q', flag, "", "", "", 0, 1, "", kForRun | kForServe, variable_and_file, true,
     "No warnings; errors only.", "--quiet"},
    {"config", 0, path, "FILE", "", "none", 0, 0, "", kForRun | kForServe, variable, false,
     "TOML file with options, the names being those of the flags. Variables override it, flags override both.",
     "--config far.toml"},
    {"report", 0, path, "FILE|-", "", "none", 0, 0, "", kForRun, variable_and_file, false,
     "Write the figures of the program and all it started, as JSON, when it ends. - is standard output, after the "
     "program's own.",
     "--report run.json"},
    {"force", 0, flag, "", "", "", 0, 1, "", kForRun | kForCore | kForTrace | kForReport | kForAdvise | kForCompare,
     nowhere, false,
     "Overwrite files that exist: those of --report, --output and --patch, and those that a report or a comparison "
     "writes. For check: also a file that is no profile of hints.",
     "--force"},
    {"best-effort", 0, flag, "", "", "", 0, 1, "", kForRun, variable_and_file, false,
     "Start programs that cannot be given far memory (static, Go, set-user-id) all the same, without it.",
     "--best-effort"},
    {"core", 0, path, "FILE", "", "none", 0, 0, "", kForRun, variable_and_file, true,
     "When a signal ends a program, write its core file, far pages included. %p in FILE is the PID, %e the name.",
     "--core core.%p"},
    {"output", 'o', path, "FILE", "", "core.%p, or PROGRAM.trace; for check PROGRAM.sites beside the program", 0, 0,
     "", kForCore | kForTrace | kForCheck, nowhere, false,
     "The file to write. For core, %p in it is the PID, %e the name of the program.", "--output /var/tmp/core.%e"},
    {"listen", 0, text, "HOST:PORT", "127.0.0.1:7700", "", 0, 0, "", kForServe, variable_and_file, false,
     "Address to listen on; port 0 takes a free one. Any but a loopback address needs --key-file.",
     "--listen 10.0.0.2:7700"},
    {"memory", 0, size_or_percent, "SIZE", "75%", "of the memory available now (system or cgroup)", 16 * kMiB,
     kSizeMax, "", kForServe, variable_and_file, false, "Memory offered to all clients together; at least 16M.",
     "--memory 16G"},
    {"client-memory", 0, size, "SIZE", "", "all that --memory offers", 16 * kMiB, kSizeMax, "", kForServe,
     variable_and_file, false,
     "The most that one client, with its forked children, may take of it: no client can exhaust the others' share.",
     "--client-memory 4G"},
    {"address-memory", 0, size, "SIZE", "", "all that --memory offers", 16 * kMiB, kSizeMax, "", kForServe,
     variable_and_file, false, "The most that all clients of one address together may take of it.",
     "--address-memory 16G"},
    {"clients", 0, integer, "COUNT", "4096", "", 1, 1000000, "", kForServe, variable_and_file, false,
     "Clients at once; one with its forked children counts once.", "--clients 200"},
    {"address-clients", 0, integer, "COUNT", "1024", "", 1, 1000000, "", kForServe, variable_and_file, false,
     "Clients of one address at once.", "--address-clients 50"},
    {"connections", 0, integer, "COUNT", "16384", "", 1, 1000000, "", kForServe, variable_and_file, false,
     "Connections of all clients at once. A process has one, and one more for each of its threads that pages.",
     "--connections 4000"},
    {"client-connections", 0, integer, "COUNT", "8192", "", 1, 1000000, "", kForServe, variable_and_file, false,
     "Connections of one client, with its forked children. Who finds no place asks again until its --timeout.",
     "--client-connections 1000"},
    {"address-connections", 0, integer, "COUNT", "12288", "", 1, 1000000, "", kForServe, variable_and_file, false,
     "Connections of all clients of one address.", "--address-connections 2000"},
    {"handshakes", 0, integer, "COUNT", "256", "", 1, 100000, "", kForServe, variable_and_file, false,
     "Connections of one address at once that have not proved the key; eight times as many of all addresses.",
     "--handshakes 64"},
    {"handshake-rate", 0, integer, "COUNT", "4096", "", 1, 1000000, "", kForServe, variable_and_file, false,
     "Connections of one address a second that do not prove the key. More are closed at once.",
     "--handshake-rate 100"},
    {"make-key", 0, path, "FILE", "", "", 0, 0, "", kForServe, nowhere, false,
     "Write a new random key to FILE, readable by its owner only, and end. A file that exists is not overwritten.",
     "--make-key far.key"},
    {"insecure", 0, flag, "", "", "", 0, 1, "", kForServe, variable_and_file, false,
     "Listen on an address that others can reach without a key: whoever can connect gets memory, and whoever is on "
     "the way can read it.",
     "--insecure"},
    {"threads", 0, integer, "COUNT", "0", "one a processor, at most 4", 0, 256, "", kForServe, variable_and_file,
     false, "Threads that serve clients.", "--threads 4"},
    {"no-offload", 0, flag, "", "", "", 0, 1, "", kForServe, variable_and_file, false,
     "Compute nothing for clients: their programs fetch the pages and compute themselves.", "--no-offload"},
    {"operators", 0, path, "DIRECTORY", "", "none", 0, 0, "", kForServe, variable_and_file, false,
     "Offer the operators in this folder: shared libraries (.so) that compute on clients' pages, which nobody but "
     "their "
     "owner may write. docs/offload.md says how one is built.",
     "--operators /usr/local/lib/hinterland/operators"},
    {"json", 0, flag, "", "", "", 0, 1, "",
     kForDoctor | kForStat | kForReport | kForReplay | kForAdvise | kForCompare | kForTop | kForCheck, nowhere, false,
     "Print JSON, with units in the names and a schema_version.", "--json"},
    {"watch", 'w', duration, "TIME", "", "1s when given without a time", 100 * kMs, 24 * 3600 * kS, "",
     kForStat | kForTop, nowhere, false, "Print again every so often, with rates, until interrupted.", "--watch 2s"},
    {"kinds", 0, flag, "", "", "", 0, 1, "", kForStat, nowhere, false,
     "Of one program: print what lies in this machine's memory, by kind, and why it stays there. The kernel walks "
     "the "
     "program's page tables for it: its page faults wait meanwhile, some milliseconds for each GiB.",
     "--kinds"},
    {"rate", 0, integer, "COUNT", "1000", "", 0, 100000, "", kForTrace, nowhere, false,
     "About so many stacks a second at most; 0 for one with every fault. Faults themselves are all recorded.",
     "--rate 0"},
    {"top", 0, integer, "COUNT", "20", "", 1, 1000000, "", kForReport | kForAdvise, nowhere, false,
     "How many places to list.", "--top 50"},
    {"by", 0, choice, "WHAT", "line", "", 0, 0, "line|function|thread|allocation", kForReport, nowhere, false,
     "What to add faults up by: where the program faults, or where it allocated the memory that faults.",
     "--by function"},
    {"folded", 0, path, "FILE|-", "", "none", 0, 0, "", kForReport, nowhere, false,
     "Write folded stacks, for flame graph tools.", "--folded faults.folded"},
    {"speedscope", 0, path, "FILE|-", "", "none", 0, 0, "", kForReport, nowhere, false,
     "Write a profile for speedscope.", "--speedscope faults.speedscope.json"},
    {"pprof", 0, path, "FILE|-", "", "none", 0, 0, "", kForReport, nowhere, false, "Write a profile for pprof.",
     "--pprof faults.pb"},
    {"html", 0, path, "FILE|-", "", "none", 0, 0, "", kForReport | kForCompare, nowhere, false,
     "Write a page with pictures, for a browser; it needs nothing else.", "--html faults.html"},
    {"diff", 0, path, "FILE", "", "none", 0, 0, "", kForReport, nowhere, false, "An earlier trace to compare with.",
     "--diff before.trace"},
    {"sweep", 0, flag, "", "", "", 0, 1, "", kForReplay, nowhere, false,
     "Replay with every policy, and with budgets from --local on, doubled until nothing more is saved.", "--sweep"},
    {"source", 0, path, "DIRECTORY", "", "where debug information says", 0, 0, "", kForAdvise, nowhere, false,
     "Where the program's sources are now.", "--source ~/src/server"},
    {"debug-files", 0, path, "DIRECTORY", "", "/usr/lib/debug", 0, 0, "", kForReport | kForAdvise, nowhere, false,
     "Where the programs that ran are now, or their debug files: for a trace of another machine.",
     "--debug-files ~/symbols"},
    {"patch", 0, path, "FILE|-", "", "none", 0, 0, "", kForAdvise, nowhere, false,
     "Write the hints as a unified diff, after trying that the program compiles with it.", "--patch hints.patch"},
    {"budget", 0, flag, "", "", "", 0, 1, "", kForAdvise, nowhere, false,
     "Say instead which --local is enough, without the hints and with them.", "--budget"},
    {"slow-down", 0, text, "FACTOR", "1.1", "", 0, 0, "", kForAdvise, nowhere, false,
     "Of --budget: the waiting that is tolerated; 1.1 where it may be a tenth of what the program computes.",
     "--slow-down 1.25"},
    {"native", 0, duration, "TIME", "", "what the traced run took besides waiting", kMs, 1000 * 3600 * kS, "",
     kForAdvise, nowhere, false,
     "Of --budget: how long the program takes without far memory. A trace tells that only where the program waited "
     "for "
     "less than half of its time.",
     "--native 12.5s"},
    {"sizes", 0, text, "PERCENT,...", "", "none; for compare 50,25", 0, 0, "", kForTrace | kForCompare, nowhere,
     false,
     "For compare: these shares of the program's own peak local. For trace: run the program once as it is, for its "
     "peak memory, and then trace it with these shares of that local, each "
     "into "
     "a file of its own (app.10.trace). Its standard output is that of the first run.",
     "--sizes 10,25,50"},
    {"hints", 0, choice, "HOW", "follow", "", 0, 0, "follow|note", kForTrace, nowhere, false,
     "What becomes of the program's hints while it is traced: followed, or only noted, so that all that they name "
     "comes as faults.",
     "--hints note"},
    {"attach", 0, text, "PID", "", "a program that it starts", 0, 0, "", kForTrace, nowhere, false,
     "Record a program that runs under Hinterland already, and is yours, until Ctrl-C, --seconds or its end. It goes "
     "on "
     "as before.",
     "--attach 4711"},
    {"seconds", 0, integer, "COUNT", "", "until Ctrl-C or the program's end", 1, 1000000, "", kForTrace, nowhere,
     false, "For --attach: how long to record.", "--seconds 30"},
    {"devices", 0, text, "URL ...", "", "that of --far", 0, 0, "", kForCompare, nowhere, false,
     "Several far devices to compare, with spaces between them.", "--devices 'zmem: tcp://10.0.0.2:7700'"},
    {"repeat", 0, integer, "COUNT", "3", "", 1, 1000, "", kForCompare, nowhere, false,
     "Runs of each kind, in turn. One more, natively, goes before them and is not counted.", "--repeat 5"},
    {"swap", 0, choice, "WHEN", "auto", "", 0, 0, "auto|never|always", kForCompare, nowhere, false,
     "Compare with Linux swap on zram as well, set up for each of its runs and taken down again: where root may do "
     "so "
     "and no other swap is on, never, or with an error where it is not possible.",
     "--swap never"},
    {"markdown", 0, path, "FILE|-", "", "none", 0, 0, "", kForCompare, nowhere, false,
     "Write the table and what it means as Markdown.", "--markdown compare.md"},
    {"format", 0, choice, "HOW", "text", "", 0, 0, "text|json|openmetrics", kForStat, nowhere, false,
     "How to print the figures: for people, as --json does, or as OpenMetrics, for Prometheus.",
     "--format openmetrics"},
    {"local-total", 0, size_or_percent, "SIZE", "", "each process has --local", 64 * kMiB, kSizeMax, "", kForRun,
     variable_and_file, false,
     "Local memory that the program and all that it starts share; at least 64M. It moves to who gains most; each "
     "keeps "
     "a small part.",
     "--local-total 2G"},
    {"sites", 0, path, "FILE", "", "PROGRAM.sites beside the program, where there is one", 0, 0, "", kForRun,
     variable_and_file, true,
     "Which of the hints that the compiler put into a program are on: those that a profile found worth it, or that "
     "'hinterland check' kept. A trace does as well: on are those at whose lines pages were missing. Without a "
     "profile "
     "all are.",
     "--sites app.sites"},
    {"record-sites", 0, path, "FILE", "", "none", 0, 0, "", kForRun, variable_and_file, true,
     "Count how often the hints that the compiler put into a program are passed and find a page missing, and write "
     "the profile when the program ends. It is much slower meanwhile. %p in FILE is the PID.",
     "--record-sites app.sites"},
    {"objects", 0, flag, "", "", "", 0, 1, "", kForCc, nowhere, false,
     "Experimental: guards before loads and stores as well, so that blocks of up to 2 KiB that the program allocates "
     "are "
     "far one by one, not by the page (docs/compiler.md).",
     "--objects"},
    {"pairs", 0, integer, "COUNT", "16", "", 8, 1000, "", kForCheck, nowhere, false,
     "Pairs of runs, in each of which every group of hints is on once and off once. More tell smaller costs from "
     "noise.",
     "--pairs 32"},
    {"clock", 0, choice, "WHICH", "wall", "", 0, 0, "wall|processor", kForCheck, nowhere, false,
     "What is measured: the time from the program's start to its end; or, on a busy machine, processor time, which "
     "leaves out what it waits for the far device.",
     "--clock processor"},
    {"hint-profile", 0, path, "FILE|-", "", "none", 0, 0, "", kForReport, nowhere, false,
     "Write a profile of the hints that the compiler put into the program, for --sites: on are those at whose lines "
     "pages were missing.",
     "--hint-profile app.sites"},
    {"static-hints", 0, flag, "", "", "", 0, 1, "", kForCc, nowhere, false,
     "Hints that are compiled in, for programs that may not change their text (seccomp, no memory that is writable "
     "and "
     "executable). They are always on, and each costs a comparison without Hinterland.",
     "--static-hints"},
};
static_assert(std::size(kTable) == static_cast<std::size_t>(OptionId::count));

std::span<const Option> all_options() { return kTable; }
const Option& option(OptionId id) { return kTable[static_cast<std::size_t>(id)]; }

std::string variable_name(const Option& option) {
  std::string name = "HINTERLAND_";
  for (const char* at = option.name; *at != '\0'; ++at)
    name += *at == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(*at)));
  return name;
}

std::vector<std::string_view> choices_of(const Option& option) {
  std::vector<std::string_view> names;
  std::string_view rest = option.choices;
  while (!rest.empty()) {
    std::size_t bar = std::min(rest.find('|'), rest.size());
    names.push_back(rest.substr(0, bar));
    rest.remove_prefix(std::min(bar + 1, rest.size()));
  }
  return names;
}

namespace {

// Arguments for "%.*s".
#define HL_TEXT(view) static_cast<int>(std::min<std::size_t>((view).size(), 100)), (view).data()

std::string number_text(const Option& option, std::uint64_t value) {
  if (option.type == duration) return duration_text(value);
  if (option.type == size || option.type == size_or_percent) return exact_size_text(value);
  return std::to_string(value);
}

Result<std::uint64_t> in_range(const Option& option, Result<std::uint64_t> value, std::string_view text,
                               std::string_view source) {
  if (!value || (*value >= option.minimum && *value <= option.maximum)) return value;
  bool small = *value < option.minimum;
  Error error = Error::make(0, "%.*s: %.*s is too %s", HL_TEXT(source), HL_TEXT(text), small ? "small" : "large");
  error.remedy("%s is %s; for example %s", small ? "the minimum" : "the maximum",
               number_text(option, small ? option.minimum : option.maximum).c_str(), option.example);
  return std::unexpected(error);
}

Result<std::uint64_t> parse_integer(const Option& option, std::string_view text, std::string_view source) {
  std::uint64_t value = 0;
  auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem == std::errc() && end == text.data() + text.size()) return value;
  Error error = Error::make(0, "%.*s: '%.*s' is not a whole number", HL_TEXT(source), HL_TEXT(text));
  error.remedy("give %llu to %llu, for example %s", static_cast<unsigned long long>(option.minimum),
               static_cast<unsigned long long>(option.maximum), option.example);
  return std::unexpected(error);
}

Result<std::uint64_t> parse_percent(std::string_view text, std::string_view source) {
  unsigned percent = 0;
  auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), percent);
  if (problem != std::errc() || end != text.data() + text.size() - 1 || percent < 1 || percent > 100) {
    Error error =
        Error::make(0, "%.*s: '%.*s' is not a share of the available memory", HL_TEXT(source), HL_TEXT(text));
    return std::unexpected(error.remedy("give 1%% to 100%%, or a size such as 512M"));
  }
  return page_floor(available_memory().bytes() / 100 * percent);
}

Result<std::uint64_t> parse_flag(std::string_view text, std::string_view source) {
  for (std::string_view yes : {"1", "true", "yes", "on"})
    if (text == yes) return 1;
  for (std::string_view no : {"0", "false", "no", "off"})
    if (text == no) return 0;
  Error error = Error::make(0, "%.*s: '%.*s' is neither yes nor no", HL_TEXT(source), HL_TEXT(text));
  return std::unexpected(error.remedy("give 1 or 0"));
}

Result<std::uint64_t> parse_choice(const Option& option, std::string_view text, std::string_view source) {
  std::vector<std::string_view> names = choices_of(option);
  for (std::size_t i = 0; i < names.size(); ++i)
    if (text == names[i]) return i;
  Error error = Error::make(0, "%.*s: there is no '%.*s'", HL_TEXT(source), HL_TEXT(text));
  return std::unexpected(error.remedy("%s", suggestion(text, names).c_str()));
}

Result<std::uint64_t> parse_choice_or_file(const Option& option, std::string_view text, std::string_view source) {
  if (text.contains('/')) return choices_of(option).size();
  return parse_choice(option, text.substr(0, text.find(':')), source);
}

Result<std::uint64_t> parse_choices(const Option& option, std::string_view text, std::string_view source) {
  std::uint64_t set = 0;
  for (bool more = true; more;) {
    std::size_t comma = std::min(text.find(','), text.size());
    Result<std::uint64_t> index = parse_choice(option, text.substr(0, comma), source);
    if (!index) return index;
    set |= std::uint64_t{1} << *index;
    more = comma < text.size();  // "move," names an empty one, too
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return set;
}

// Without a name there is no file: taking '' for "not given" would hide a shell variable that is empty by mistake.
Result<std::uint64_t> parse_text(const Option& option, std::string_view text, std::string_view source) {
  if (!text.empty()) return 0;
  Error error = Error::make(0, "%.*s: the value is empty", HL_TEXT(source));
  return std::unexpected(
      error.remedy("leave it out, or give a %s, for example %s", option.placeholder, option.example));
}

}  // namespace

Result<std::uint64_t> parse_value(const Option& option, std::string_view text, std::string_view source) {
  switch (option.type) {
    case size_or_percent:
      if (text.ends_with('%')) return in_range(option, parse_percent(text, source), text, source);
      [[fallthrough]];
    case size:
      return in_range(option, parse_size(text, source), text, source);
    case duration:
      return in_range(option, parse_duration_ns(text, source), text, source);
    case integer:
    case level:
      return in_range(option, parse_integer(option, text, source), text, source);
    case choice:
      return parse_choice(option, text, source);
    case choice_or_file:
      return parse_choice_or_file(option, text, source);
    case choices:
      return parse_choices(option, text, source);
    case flag:
      return parse_flag(text, source);
    case OptionType::text:
    case path:
      return parse_text(option, text, source);
  }
  return 0;
}

}  // namespace hinterland
