// openload: fills a Redis server, sends it requests at a fixed mean rate whatever it answers, and prints as JSON how
// long it took to answer. bench/run starts it natively, under `hinterland run` and under Linux swap.
#include <sys/prctl.h>

#include <cstdio>

#include "base/json.hpp"
#include "command/options.hpp"
#include "openload/load.hpp"

namespace {

using namespace openload;

void declare(bench::Options& options, Work& work) {
  options.text("--socket", work.socket, "UNIX socket of the server", /*required=*/true);
  options.number("--keys", work.keys, "how many", 1, UINT64_MAX);
  options.size("--value", work.value_bytes, "size of a value", "1K");
  options.number("--rate", work.rate_per_second, "requests a second, on average", 1.0, 1e7);
  options.number("--seconds", work.seconds, "length of what is counted", 0.01, 3600.0);
  options.number("--warm-up", work.warm_up_seconds, "seconds of the same load before it", 0.0, 3600.0);
  options.number("--sets", work.set_share, "share of the requests that write", 0.0, 1.0);
  options.number("--connections", work.connections, "over which the requests go in turn", 1, 1000);
  options.number("--seed", work.seed, "of keys and times", 0, UINT64_MAX);
  options.number("--skew", work.skew, "of Zipf's distribution of keys; 0: each as often as any other", 0.0, 10.0);
  options.flag("--filled", work.filled, "all keys are there already, from a run before");
}

hinterland::Json latencies(const std::vector<std::uint64_t>& sorted) {
  return {{"count", sorted.size()},
          {"p50_ns", percentile(sorted, 0.5)},
          {"p90_ns", percentile(sorted, 0.9)},
          {"p99_ns", percentile(sorted, 0.99)},
          {"p999_ns", percentile(sorted, 0.999)},
          {"max_ns", percentile(sorted, 1)}};
}

void print(const Work& work, const Done& done) {
  double answered = static_cast<double>(done.get_ns.size() + done.set_ns.size());
  hinterland::Json document{
      {"schema_version", 1},
      {"program", "openload"},
      {"keys", work.keys},
      {"value_bytes", work.value_bytes},
      {"rate_asked_per_second", work.rate_per_second},
      {"rate_answered_per_second", answered / done.seconds},
      {"set_share", work.set_share},
      {"connections", work.connections},
      {"seed", work.seed},
      {"skew", work.skew},
      {"seconds", done.seconds},
      {"get", latencies(done.get_ns)},
      {"set", latencies(done.set_ns)},
      {"checksum", done.checksum},
  };
  std::puts(document.dump(1).c_str());
}

}  // namespace

int main(int argc, char** argv) {
  bench::Options options("openload",
                         "Sends Redis requests at a fixed rate, and prints as JSON how long the answers took");
  Work work{.socket = "",
            .keys = 100'000,
            .value_bytes = 1024,
            .rate_per_second = 5000,
            .seconds = 5,
            .warm_up_seconds = 1,
            .set_share = 0.1,
            .connections = 16};
  declare(options, work);
  if (std::optional<int> status = options.parse(argc, argv)) return *status;
  if (work.value_bytes == 0) {
    std::fprintf(stderr, "openload: --value must be above 0\n");
    return 2;
  }
  prctl(PR_SET_TIMERSLACK, 1);  // else the kernel may wake us 50 us after a request is due
  try {
    if (!work.filled) fill(work);
    print(work, run(work));
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "openload: %s\n", failure.what());
    return 1;
  }
  return 0;
}
