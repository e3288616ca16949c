"""Policies out of files: the examples, and what is said of those that cannot be used."""

import json
import os
import shutil
import subprocess
import time
import unittest

from command import HINTERLAND, SOURCE, CommandTest

INCLUDE = os.path.join(SOURCE, "include")
EXAMPLES = os.path.join(SOURCE, "examples", "policies")

# Goes twice over 24 MiB, in steps of a page.
PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
int main(void) {
  size_t size = 24 << 20;
  unsigned char* bytes = malloc(size);
  unsigned long sum = 0;
  if (bytes == NULL) return 3;
  for (size_t i = 0; i < size; i += 512) bytes[i] = (unsigned char)(i >> 12);
  for (int round = 0; round < 2; ++round)
    for (size_t i = 0; i < size; i += 4096) sum += bytes[i];
  printf("%lu\n", sum);
  return 0;
}
"""

# FIFO over an array; SPOIL comes behind each choice. A trial has a window of few pages, a program a large one.
POLICY = r"""
#include <hinterland/policy.h>
#include <stddef.h>
struct state { hl_policy_env env; uint64_t first, last, count; hl_page* queue; uint64_t* places; unsigned calls; };
static void* create(const hl_policy_env* env) {
  struct state* s = env->reserve(sizeof *s);
  if (s == NULL) return NULL;
  s->env = *env;
  s->queue = env->reserve(sizeof(hl_page) << 22);
  s->places = env->reserve(sizeof(uint64_t) * env->window_pages);
  return s->queue != NULL && s->places != NULL ? s : NULL;
}
static void arrived(void* state, hl_page first, uint32_t count, hl_arrival why, uint8_t priority) {
  struct state* s = state;
  (void)why, (void)priority;
  for (hl_page page = first; page < first + count; ++page)
    if (s->places[page] == 0) {
      s->queue[s->last++] = page;
      s->places[page] = s->last;
      ++s->count;
    }
}
static void departed(void* state, hl_page first, uint32_t count) {
  struct state* s = state;
  for (hl_page page = first; page < first + count; ++page)
    if (s->places[page] != 0) {
      s->queue[s->places[page] - 1] = HL_NO_PAGE;
      s->places[page] = 0;
      --s->count;
    }
}
static volatile unsigned long work;
static uint32_t choose_victims(void* state, hl_page* out, uint32_t max) {
  struct state* s = state;
  uint32_t chosen = 0;
  int live = s->env.window_pages > 4096;
  while (chosen < max && s->count != 0) {
    hl_page page = s->queue[s->first++];
    if (page == HL_NO_PAGE) continue;
    s->places[page] = 0;
    --s->count;
    out[chosen++] = page;
  }
  if (++s->calls > 8) { SPOIL }
  (void)live;
  return chosen;
}
static uint64_t size(void* state) { return ((struct state*)state)->count; }
HL_POLICY_PLUGIN = {
    .abi_version = HL_POLICY_ABI_VERSION, .name = "spoilt", .help = "", .create = create, .arrived = arrived,
    .departed = departed, .choose_victims = choose_victims, .size = size};
"""


# FIFO; its text is the tags that it is told of, and which of their regions are gone. The process's policy and those of
# regions share what they know.
TAGS = r"""
#include <hinterland/policy.hpp>
#include <cstdio>
namespace {
struct Region {
  std::uint64_t place;
  char tag[16];
  bool gone;
};
Region regions[8];
unsigned count;
class Tags {
 public:
  bool create(const hl_policy_env& environment) { return links_.create(environment); }
  bool holds(hl_page page) const { return links_.in_list(page); }
  std::uint64_t size() const { return pages_.size(); }
  void arrived(hl_page page, hl_arrival, std::uint8_t) { pages_.push_back(links_, page); }
  void departed(hl_page page) { pages_.remove(links_, page); }
  hl_page choose(std::uint32_t&) { return pages_.pop_front(links_); }
  void mapped(const hl_mapping& mapping) {
    if (mapping.kind != HL_MAPPING_REGION || mapping.tag[0] == 0 || count == 8) return;
    regions[count].place = mapping.place;
    std::snprintf(regions[count].tag, sizeof regions[count].tag, "%s", mapping.tag);
    regions[count++].gone = false;
  }
  void unmapped(std::uint64_t place, std::uint64_t) {
    for (unsigned i = 0; i < count; ++i)
      if (regions[i].place == place) regions[i].gone = true;
  }
  void report(hl_policy_report& out) {
    int length = std::snprintf(out.text, sizeof out.text, "tags");
    for (unsigned i = 0; i < count; ++i)
      length += std::snprintf(out.text + length, sizeof out.text - length, " %s%s", regions[i].gone ? "no-" : "",
                              regions[i].tag);
  }

 private:
  hl::policy::PageLinks links_;
  hl::policy::PageList pages_;
};
}  // namespace
HL_POLICY_PLUGIN = hl::policy::ops_of<Tags>("tags", "");
"""

# Two regions with tags, one of them with a share of its own, and one without; goes on when it is told to.
REGIONS = r"""
#include <hinterland/region.h>
#include <stdio.h>
static int create(struct hl_region* region, size_t share, const char* tag) {
  const struct hl_region_options options = {share, HL_RDAHEAD_DEFAULT, NULL, NULL, tag};
  return hl_region_create(region, 1 << 20, &options);
}
int main(void) {
  struct hl_region index, scratch, other;
  if (create(&index, 1 << 20, "index") != 0 || create(&scratch, HL_SHARE_COMMON, "scratch") != 0 ||
      create(&other, HL_SHARE_COMMON, NULL) != 0)
    return 1;
  ((char*)index.data)[0] = ((char*)scratch.data)[0] = 1;
  if (getchar() < 0) return 2;
  if (hl_region_destroy(&index) != 0) return 3;
  return getchar() < 0;
}
"""


class PolicyTest(CommandTest):
    def compile(self, source, output, *flags, compiler="cc"):
        done = subprocess.run([compiler, "-O1", "-I", INCLUDE, source, "-o", self.path(output), *flags],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)

    def policy(self, spoil, name="spoilt.so"):
        source = self.write(name + ".c", POLICY.replace("SPOIL", spoil))
        self.compile(source, name, "-fPIC", "-shared")
        return "./" + name

    def program(self):
        self.need_library()
        self.compile(self.write("twice.c", PROGRAM), "twice")
        return "./twice"

    def run_far(self, policy, *options):
        return self.call("run", "--local", "8M", "--far", "mem:", "--takeover", "start", "--policy", policy,
                         "--report", "run.json", "--force", *options, "--", self.program())

    def counters(self):
        with open(self.path("run.json"), encoding="utf-8") as file:
            return json.load(file)["processes"][0]["counters"]

    def expect_result(self, done):
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(int(done.stdout), 2 * sum(page % 256 for page in range(24 * 256)))


class Examples(PolicyTest):
    def test_the_one_of_the_documentation(self):
        with open(os.path.join(SOURCE, "docs", "policies.md"), encoding="utf-8") as file:
            source = file.read().split("```cpp\n")[1].split("```")[0]
        self.compile(self.write("newest.cpp", source), "newest.so", "-std=c++20", "-fPIC", "-shared", compiler="c++")
        self.expect_result(self.run_far("./newest.so"))

    def test_two_queue_in_c(self):
        self.compile(os.path.join(EXAMPLES, "two_queue.c"), "two_queue.so", "-fPIC", "-shared", "-Wall", "-Wextra",
                     "-Wpedantic", "-Werror")
        for policy in ("./two_queue.so", "./two_queue.so:50"):
            done = self.run_far(policy)
            self.expect_result(done)
            self.assertEqual(done.stderr, "")
            self.assertGreater(self.counters()["pages_in"], 1000)

    def test_read_ahead_in_cxx(self):
        self.compile(os.path.join(EXAMPLES, "leap.cpp"), "leap.so", "-std=c++20", "-fPIC", "-shared", "-Wall", "-Wextra",
                     "-Werror", compiler="c++")
        self.expect_result(self.run_far("./leap.so"))
        counters = self.counters()
        self.assertGreater(counters["pages_read_ahead"], counters["faults_read"])
        self.expect_result(self.run_far("./leap.so", "--read-ahead", "0"))
        self.assertEqual(self.counters()["pages_read_ahead"], 0)

    def test_big_mappings_in_cxx(self):
        """Told of mappings and of time; what it does not admit leaves first; its figures are shown."""
        self.compile(os.path.join(EXAMPLES, "big_mappings.cpp"), "big.so", "-std=c++20", "-fPIC", "-shared", "-Wall",
                     "-Wextra", "-Werror", compiler="c++")
        self.need_library()
        source = self.write("stays.c", PROGRAM.replace("  return 0;", "  fflush(stdout);\n  return getchar() == 0;"))
        self.compile(source, "stays")
        child = subprocess.Popen([HINTERLAND, "run", "--local", "8M", "--far", "mem:", "--takeover", "start", "--policy",
                                  "./big.so", "--", "./stays"], env=self.environment, cwd=self.directory, text=True,
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        with child:
            sum_line = child.stdout.readline()
            figures = {}
            # Told once a second at least: once it may have been while the program was still at its first pages.
            while figures.get("not_admitted", 0) <= 1000 and child.poll() is None:
                programs = json.loads(self.call("stat", "--json").stdout)["programs"]
                figures = next((each["policy_figures"] for each in programs if each["program"].endswith("stays")), {})
                time.sleep(0.02)
            self.assertIn("mappings are larger than local memory", programs[0]["policy_text"])
            text = self.call("stat", str(programs[0]["pid"])).stdout
            self.assertRegex(text, r"not_admitted +\d+ +big-mappings's own")
            self.assertIn("big-mappings: ", text)
            rest, errors = child.communicate("\n", timeout=100)
        self.assertEqual((child.returncode, rest, errors), (0, "", ""))
        self.assertEqual(int(sum_line), 2 * sum(page % 256 for page in range(24 * 256)))
        self.assertGreater(figures["not_admitted"], 1000)

    def test_tags_of_regions(self):
        """A region's tag reaches the policy, and that the region is gone."""
        self.need_library()
        self.compile(self.write("tags.cpp", TAGS), "tags.so", "-std=c++20", "-fPIC", "-shared", compiler="c++")
        self.compile(self.write("regions.c", REGIONS), "regions")
        child = subprocess.Popen([HINTERLAND, "run", "--local", "8M", "--far", "mem:", "--takeover", "start", "--policy",
                                  "./tags.so", "--", "./regions"], env=self.environment, cwd=self.directory, text=True,
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        with child:
            for wanted in ("tags index scratch", "tags no-index scratch"):
                said = ""
                while said != wanted and child.poll() is None:  # told once a second at least
                    programs = json.loads(self.call("stat", "--json").stdout)["programs"]
                    said = next((each["policy_text"] for each in programs if each["program"].endswith("regions")), "")
                    time.sleep(0.02)
                child.stdin.write("\n")
                child.stdin.flush()
            rest, errors = child.communicate(timeout=100)
        self.assertEqual((child.returncode, rest, errors), (0, "", ""))
        self.assertEqual(said, "tags no-index scratch")

    def test_csr_in_cxx(self):
        """Memory is gone through twice: a part of it stays."""
        self.compile(os.path.join(EXAMPLES, "csr.cpp"), "csr.so", "-std=c++20", "-fPIC", "-shared", "-Wall", "-Wextra",
                     "-Werror", compiler="c++")
        self.expect_result(self.run_far("./csr.so"))
        ours = self.counters()["pages_in"]
        self.expect_result(self.run_far("fifo"))
        self.assertLess(ours, self.counters()["pages_in"] * 0.9)

    def test_newest_in_rust(self):
        if shutil.which("rustc") is None:
            self.skipTest("there is no rustc")
        done = subprocess.run(["rustc", "-O", "--edition", "2021", "--crate-type", "cdylib", "-C", "panic=abort",
                               os.path.join(EXAMPLES, "newest.rs"), "-o", self.path("newest.so")], text=True,
                              capture_output=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.expect_result(self.run_far("./newest.so"))
        newest = self.counters()["pages_in"]
        self.expect_result(self.run_far("fifo"))
        self.assertLess(newest, self.counters()["pages_in"])  # of a loop

    def test_replayed(self):
        """What a policy would have done, beside the others."""
        self.compile(os.path.join(EXAMPLES, "leap.cpp"), "leap.so", "-std=c++20", "-fPIC", "-shared", compiler="c++")
        done = self.call("trace", "--local", "8M", "--far", "mem:", "--takeover", "start", "--read-ahead", "0",
                         "--output", "t.trace", "--", self.program())
        self.expect_result(done)
        fetches = {}
        for policy in ("./leap.so", "fifo"):
            done = self.call("replay", "t.trace", "--policy", policy, "--read-ahead", "32", "--json")
            self.assertEqual(done.returncode, 0, done.stderr)
            fetches[policy] = json.loads(done.stdout)["runs"][0]["faults_fetch"]
        without = json.loads(self.call("replay", "t.trace", "--policy", "fifo", "--json").stdout)
        self.assertLess(fetches["./leap.so"], without["runs"][0]["faults_fetch"] / 4)
        done = self.call("replay", "t.trace", "--policy", "./leap.so", "--sweep", "--json")
        runs = json.loads(done.stdout)["runs"]
        swept = {run["policy"] for run in runs}
        self.assertLessEqual({"leap", "learner", "sieve", "s3-fifo", "2q", "arc", "lirs", "w-tinylfu", "mglru"}, swept)
        for run in runs:
            self.assertGreaterEqual(run["pages_in"], run["pages_in_least"], run)
        # Of a loop over 24 MiB with 8 MiB, all but what may stay has to come again.
        self.assertGreater(runs[0]["pages_in_least"], 3000)

    def test_in_another_folder(self):
        """A program may start others, and from elsewhere: the file is found all the same."""
        policy = self.policy("")
        program = os.path.abspath(os.path.join(self.directory, self.program()))
        done = self.call("run", "--local", "8M", "--far", "mem:", "--policy", policy, "--", "sh", "-c",
                         f"cd / && {program}")
        self.expect_result(done)
        self.assertEqual(done.stderr, "")


class GoingWrong(PolicyTest):
    def refused(self, policy, *words):
        self.assert_refused(2, *words, arguments=("run", "--policy", policy, "--", "true"))

    def test_no_file(self):
        self.refused("./none.so", "policy ./none.so cannot be loaded")

    def test_no_library(self):
        self.write("text.so", "no library")
        self.refused("./text.so", "policy ./text.so cannot be loaded")

    def test_no_policy(self):
        self.compile(self.write("empty.c", "int nothing;"), "empty.so", "-fPIC", "-shared")
        self.refused("./empty.so", "defines no hl_policy_plugin", "HL_POLICY_PLUGIN")

    def test_a_shorter_interface(self):
        """Of another language, or before calls were added at its end: what it lacks is not called."""
        source = POLICY.split("HL_POLICY_PLUGIN")[0].replace("SPOIL", "") + r'''
struct shorter { uint32_t version; const char *name, *help; void* calls[5]; };
__attribute__((visibility("default"))) const struct shorter hl_policy_plugin = {
    HL_POLICY_ABI_VERSION, "short", "", {create, arrived, departed, choose_victims, size}};
__attribute__((visibility("default"))) const void* behind[32] = {(void*)1, (void*)1, (void*)1, (void*)1, (void*)1};
'''
        self.compile(self.write("short.c", source), "short.so", "-fPIC", "-shared")
        self.expect_result(self.run_far("./short.so"))

    def test_another_interface(self):
        source = POLICY.replace("= HL_POLICY_ABI_VERSION", "= 2").replace("SPOIL", "")
        self.compile(self.write("old.c", source), "old.so", "-fPIC", "-shared")
        self.refused("./old.so", "was built for policy interface 2", "build it again")

    def test_a_call_is_missing(self):
        source = POLICY.replace(".size = size", ".size = NULL").replace("SPOIL", "")
        self.compile(self.write("part.c", source), "part.so", "-fPIC", "-shared")
        self.refused("./part.so", "lacks a name or a call")

    def test_one_that_crashes(self):
        self.refused(self.policy("*(volatile int*)NULL = 1;"), "policy spoilt crashes: Segmentation fault")

    def test_one_that_ends_the_process(self):
        self.refused(self.policy("__builtin_trap();"), "policy spoilt crashes")

    def test_one_that_does_not_return(self):
        self.refused(self.policy("for (;;) ++work;"), "policy spoilt does not return within 10 s")

    def test_one_that_returns_nonsense(self):
        self.refused(self.policy("if (chosen != 0) out[0] = 4000000000u;"), "policy spoilt returns a page as a victim")
        self.refused(self.policy("chosen = 0;"), "policy spoilt returns no victim though it holds pages")

    def replaced(self, spoil, words):
        """Found out while the program runs: it goes on, and one message names the policy."""
        done = self.run_far(self.policy(spoil))
        self.expect_result(done)
        self.assertIn("policy spoilt " + words, done.stderr)
        self.assertIn("learner takes its place", done.stderr)
        self.assertEqual(done.stderr.count("takes its place"), 1, done.stderr)

    def test_wrong_in_the_program(self):
        self.replaced("if (live && chosen > 1) out[1] = out[0];", "returned a page as a victim that")
        self.replaced("if (live) chosen = 0;", "returned no victim though it holds pages")

    def test_slow_in_the_program(self):
        self.replaced("if (live) for (work = 0; work < 1000000000;) ++work;", "took more than 200 ms of CPU time")


if __name__ == "__main__":
    unittest.main()
