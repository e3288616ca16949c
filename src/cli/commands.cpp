#include "cli/commands.hpp"

#include "base/log.hpp"
#include "base/options.hpp"

namespace hinterland::cli {
namespace {

constexpr Command kCommands[] = {
    {"run", kForRun, "-- PROGRAM [ARGUMENT...]", "run a program with a bounded part of its memory local",
     "Runs any dynamically linked program, unchanged, with its heap and its private anonymous mappings on far "
     "memory: at most --local of it stays resident, the rest lives behind --far and comes back when it is touched. "
     "Programs that it starts inherit this, each with a budget of its own.\n\n"
     "Everything is checked before the program starts. Its standard output is left alone, and its exit status, or "
     "its death by a signal, becomes that of the command. With --report, -v or --local-total the command stays as "
     "the parent of "
     "the program and passes signals on; otherwise it becomes the program.\n\n"
     "With --local-total the program and all that it starts share one budget. The command stays as their parent, "
     "looks "
     "at them 50 times a second and gives memory to those who miss most; each begins with a sixteenth and keeps a "
     "small "
     "part. Should the command be killed, each keeps what it has.\n\n"
     "Programs that cannot be helped are refused unless --best-effort is given: statically linked ones, Go programs, "
     "and those that change user (set-user-id, file capabilities), because the loader ignores LD_PRELOAD for them. "
     "Libraries already in LD_PRELOAD are kept.",
     "hinterland run --local 1G -- sort -S 4G words.txt\n"
     "hinterland run --local 512M --far tcp://10.0.0.2:7700 --key-file far.key -v -- redis-server\n"
     "hinterland run --local-total 2G -- make -j8\n"
     "hinterland run --local 25% --far 'file:/var/tmp/far?size=64G' --report run.json -- python3 job.py",
     run_main},
    {"compare", kForCompare | kForRun, "-- PROGRAM [ARGUMENT...]",
     "measure what far memory costs a program, and what it saves",
     "Runs the program natively, with shares of its own peak memory local on each of --devices, and under Linux swap "
     "with the same limits, several times in turn. Prints the time of each (the median, the least and the most), the "
     "most memory that was resident on this machine, what is stored there included, and what that means in words.\n\n"
     "The program must end by itself, and print the same each time: what it prints is compared with its native run, "
     "and a difference is an error. Its standard input is read once and given to each run. Its error messages are "
     "shown in the first run alone.\n\n"
     "Takes the options of `hinterland run` as well. With --local that budget alone is compared.",
     "hinterland compare -- sort --parallel=1 -S 1G words.txt\n"
     "hinterland compare --devices 'zmem: tcp://10.0.0.2:7700' --html job.html -- python3 job.py\n"
     "hinterland compare --local 512M --repeat 5 --json -- ./app input",
     compare_main},
    {"serve", kForServe, "", "offer this machine's memory to programs on others",
     "The memory server. It prints where it listens and what it offers, serves until SIGTERM or SIGINT, and then "
     "ends cleanly. Memory is zeroed before another client gets it, and freed when its client is gone.",
     "hinterland serve --memory 8G\n"
     "hinterland serve --listen 10.0.0.2:7700 --memory 64G --key-file far.key",
     serve_main},
    {"doctor", kForDoctor, "", "say what this kernel, these privileges and these limits allow",
     "Tries out each kernel feature that Hinterland uses, and looks at the limits that matter. For each one that is "
     "missing it says what that costs and which command mends it. The exit status is 0 when `hinterland run` will "
     "work, and 1 when it will not.",
     "hinterland doctor\nhinterland doctor --json", doctor_main},
    {"stat", kForStat, "[PID]", "show live figures of running programs",
     "Without PID one line for each program that runs under Hinterland and belongs to you; with PID all figures of "
     "one. The figures are read from memory shared with the program, which is not slowed.",
     "hinterland stat\nhinterland stat --watch 2s 4711\nhinterland stat --kinds 4711\nhinterland stat 4711 --json\n"
     "hinterland stat --format openmetrics > /var/lib/node_exporter/hinterland.prom",
     stat_main},
    {"top", kForTop, "", "show all programs and memory servers of this machine, the busiest first",
     "Each program on far memory, those with most faults since the last look first, and each `hinterland serve`: "
     "what "
     "they may have, what is resident and what is far, with sums. On a terminal it is shown anew each second, or as "
     "often as --watch says; elsewhere once. You see your own programs, and root those of all users.",
     "hinterland top\nhinterland top --watch 5s\nhinterland top --json", top_main},
    {"tune", kForTune, "PID", "change the local memory of a running program",
     "Asks the program for another budget and waits until it has taken it over, at most 2 seconds. A smaller budget "
     "is reached in the background.",
     "hinterland tune 4711 --local 2G", tune_main},
    {"core", kForCore, "PID", "write a core file of a running program, far pages included",
     "Stops the program, writes all of its memory and its registers into a core file that gdb reads, and lets it go "
     "on. "
     "Far pages come in through the budget as if the program touched them; what cannot be had (a lost page, memory "
     "that the program excluded with MADV_DONTDUMP) is absent from the file, never zeros. Asks for the permission "
     "that a debugger needs.\n\n"
     "A core of a program that dies is written by `hinterland run --core`.",
     "hinterland core 4711\nhinterland core 4711 -o /var/tmp/core && gdb ./server /var/tmp/core", core_main},
    {"trace", kForTrace | kForRun, "-- PROGRAM [ARGUMENT...] | --attach PID",
     "run a program and record where it faults",
     "As `hinterland run`, and takes its options. Each fault on far memory is recorded with its time, thread, page "
     "and "
     "kind; and stacks of a sample of them, about --rate a second at most, each with the number of faults that "
     "it stands for. `hinterland report` makes sense of the file.\n\n"
     "Processes that the program starts get a file of their own, FILE.PID, as soon as they fault. The file can be "
     "read up to the last quarter of a second whatever ends the program or the recorder.\n\n"
     "Stacks are sampled by the kernel and complete, also for programs without frame pointers. Where it does not "
     "permit that, a message names the setting, and only the innermost address of one fault in 16 is recorded.\n\n"
     "With --attach a program that runs under Hinterland already is recorded from now on; it goes on as before, "
     "whatever becomes of the recording.",
     "hinterland trace --local 64M -o sort.trace -- sort words.txt\n"
     "hinterland trace --sizes 10,25,50 -- ./app input && hinterland report app.10.trace app.25.trace app.50.trace\n"
     "hinterland trace --local 25% --far tcp://10.0.0.2:7700 --rate 0 -- ./server\n"
     "hinterland trace --attach 4711 --seconds 30 -o server.trace",
     trace_main},
    {"report", kForReport, "FILE...", "say which places of a program fault",
     "Ranks the places of a traced program by their share of faults, or with --by allocation those that allocated "
     "the memory which faults, and says how many of them cover 50, 80, 95 and "
     "99 %. A fault in a library (memcpy) counts for the line of the program that called it. Names and lines come "
     "from the files that ran, at their places, or from their debug files below /usr/lib/debug. A table of "
     "the hints that fetched follows, with the share of misses that hints cover.\n\n"
     "Several traces of one program, as `trace --sizes` writes them, are put side by side: which places fault in "
     "all.",
     "hinterland report sort.trace\n"
     "hinterland report sort.trace --by function --top 5 --json\n"
     "hinterland report sort.trace --folded sort.folded --speedscope sort.json",
     report_main},
    {"replay", kForReplay, "FILE", "predict a traced program's faults under other settings",
     "Replays the faults of a trace against the policies and the read-ahead themselves, over a model of the pager, "
     "without the program. What is not given is as it was recorded. The trace has only what faulted then: record it "
     "with the smallest --local of interest, --read-ahead 0 and --takeover start. The stall is that of all threads "
     "together, at what faults cost when it was recorded. No choice of victims fetches fewer pages than are under "
     "'at "
     "least': it knows when each page is wanted next (Belady).",
     "hinterland trace --local 64M --read-ahead 0 --takeover start -- ./server\n"
     "hinterland replay server.trace --local 256M --policy fifo --read-ahead 16\n"
     "hinterland replay server.trace --sweep",
     replay_main},
    {"advise", kForAdvise, "FILE", "say which hints would spare a program its faults",
     "For each of the places where a traced program faults: the hint to write there, the access pattern that speaks "
     "for it, and what replaying the trace with it predicts. With --patch all of them as a unified diff, which was "
     "tried with a compiler: what does not compile is left out, and named.\n\n"
     "Needs the program's sources, and the program built with -g. Where a line has several expressions that may have "
     "faulted, and debug information does not tell which, all of them are hinted, and that is said. A hint is never "
     "an access and changes no result.\n\n"
     "Of a program that has hints, it names those that look wrong: that hardly ever fetch, come too late, name too "
     "little or what is not used, read ahead what nobody needs, or send away what comes back. All of it shows in a "
     "trace "
     "recorded with --hints note, which follows none.\n\n"
     "With --budget the least --local with which the program is slower than natively by no more than --slow-down. "
     "That takes its native time (--native), which a trace tells only where the program waited for less than half of "
     "its time.\n\n"
     "Record for it without read-ahead, which hides accesses: hinterland trace --read-ahead 0 --takeover start.",
     "hinterland trace --read-ahead 0 --takeover start --local 64M -o server.trace -- ./server\n"
     "hinterland advise server.trace --top 5\n"
     "hinterland advise server.trace --budget --native 12.5s --slow-down 1.2\n"
     "hinterland advise server.trace --source ~/src/server --patch hints.patch && patch -p1 -d ~/src/server < "
     "hints.patch",
     advise_main},
    {"cc", kForCc, "-- COMPILER [ARGUMENT...]", "compile a program with hints that the compiler inserts",
     "Runs the compiler, clang or clang++ of version 19, with a plug-in that puts a hint before accesses to memory "
     "that a "
     "fault could not foresee: those through pointers and by computed indices. Put it before the compiler of any "
     "build: "
     "CC=\"hinterland cc -- clang-19\".\n\n"
     "A hint is a nop of five bytes until the program runs under `hinterland run`. Without it the program runs at "
     "its "
     "own speed, and needs no library of ours. Results are the same in any case.\n\n"
     "With -Rpass=hinterland the compiler says which accesses it hinted, with -Rpass-missed=hinterland which not, "
     "and "
     "why. Nothing is hinted at -O0. With another compiler, or without the plug-in, it says so and builds the plain "
     "program. `run --record-sites` and `run --sites` choose the hints that are worth it.\n\n"
     "With --static-hints they are compiled in, for programs whose text may not change. They are always on, and cost "
     "a "
     "comparison where there is no Hinterland.\n\n"
     "With --objects the program's small blocks are far objects. It runs as before where there is no Hinterland, but "
     "its "
     "loads and stores cost some instructions more. Code that was not compiled so may use them; that costs a page "
     "fault.",
     "hinterland cc -- clang++-19 -O2 -g app.cpp -o app\n"
     "cmake -B build -DCMAKE_CXX_COMPILER=clang++-19 -DCMAKE_CXX_COMPILER_LAUNCHER='hinterland;cc;--'\n"
     "hinterland run --local 1G --record-sites app.sites -- ./app input\n"
     "hinterland run --local 1G -- ./app input\n"
     "hinterland cc --static-hints -- clang++-19 -O2 server.cpp -o server\n"
     "hinterland cc --objects -- clang-19 -O2 table.c -o table",
     cc_main},
    {"check", kForCheck | kForRun, "[PROFILE] -- PROGRAM [ARGUMENT...]",
     "measure which of the compiler's hints are worth it, and switch off the others",
     "For a program that was compiled by `hinterland cc`. Runs it far, again and again, with other groups of its "
     "hints "
     "on each time: in each pair of runs every group is on once and off once. A group with which the program is "
     "slower "
     "by more than three standard deviations is off from then on. Prints what each group does to the time, with the "
     "place of each hint, and what the choice does as a whole.\n\n"
     "Looks at the hints that a profile (`run --record-sites`) leaves on; without one it counts by itself, in one "
     "run "
     "that is several times slower. The program must end by itself, and run for some tenths of a second at least; it "
     "runs some fifty times. Its standard input is read once and given to each run. What it prints is not shown, its "
     "error messages only in the first run.\n\n"
     "The choice is written to PROGRAM.sites beside the program, where `hinterland run` reads it; where that folder "
     "may not be written, into the user's cache ($XDG_CACHE_HOME/hinterland, or ~/.cache/hinterland), where it reads "
     "it as well. It holds for this build of the program.\n\n"
     "Takes the options of `hinterland run` as well: measure with the --local and the --far that will be used.",
     "hinterland check --local 1G -- ./app input\n"
     "hinterland check app.sites --local 1G -- ./app input\n"
     "hinterland check --local 256M --far tcp://10.0.0.2:7700 --pairs 32 --json -- ./app input",
     check_main},
    {"help", 0, "[COMMAND]", "show help for a command",
     "Without COMMAND the list of commands. `hinterland help --markdown` prints the reference page and `hinterland "
     "help --man COMMAND` a manual page.",
     "hinterland help run", help_main},
    {"version", 0, "", "show the version", "Prints the version of Hinterland.", "hinterland version", version_main},
};

}  // namespace

std::span<const Command> all_commands() { return kCommands; }

const Command* find_command(const std::string& name) {
  for (const Command& command : kCommands)
    if (name == command.name) return &command;
  return nullptr;
}

Error unexpected_argument(const char* command, const std::string& argument) {
  Error error = Error::make(0, "%s: unexpected argument '%s'", command, argument.c_str());
  return error.remedy("see 'hinterland %s --help'", command);
}

int fail(int status, const Error& error) {
  log::error("%s", error.what());
  if (error.next_step()[0] != '\0') log::error("  %s", error.next_step());
  return status;
}

}  // namespace hinterland::cli
