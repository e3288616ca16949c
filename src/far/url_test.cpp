#include "far/url.hpp"

#include <gtest/gtest.h>

#include <string>

#include "far/file_device.hpp"
#include "far/mem_device.hpp"
#include "far/sim_settings.hpp"
#include "far/tcp/tcp_address.hpp"
#include "far/zmem_device.hpp"

namespace hinterland::far {
namespace {

TEST(FarUrl, Memory) {
  EXPECT_EQ(parse_mem(""), 0u);
  EXPECT_EQ(parse_mem("?size=1G"), kGiB);
  EXPECT_EQ(parse_zmem("")->codec, Codec::lz4);
  EXPECT_EQ(parse_zmem("lz4")->codec, Codec::lz4);
  ZmemSettings settings = parse_zmem("zstd?size=1.5G").value();
  EXPECT_EQ(settings.codec, Codec::zstd);
  EXPECT_EQ(settings.size_bytes, 3 * kGiB / 2);
}

TEST(FarUrl, File) {
  EXPECT_EQ(parse_file("/var/tmp/far")->path, "/var/tmp/far");
  EXPECT_EQ(parse_file("a b?size=64M")->path, "a b");
  EXPECT_EQ(parse_file("a b?size=64M")->size_bytes, 64 * kMiB);
  EXPECT_EQ(parse_file("odd?name?size=64M")->path, "odd?name");
}

TEST(FarUrl, Tcp) {
  TcpAddress address = parse_tcp("//far.example:7700").value();
  EXPECT_EQ(address.host, "far.example");
  EXPECT_EQ(address.port, 7700);
  EXPECT_EQ(address.url(), "tcp://far.example:7700");
  EXPECT_EQ(parse_tcp("//[::1]:1")->host, "::1");
  EXPECT_EQ(parse_tcp("//[::1]:65535")->port, 65535);
  EXPECT_EQ(parse_tcp("//[::1]:65535")->url(), "tcp://[::1]:65535");
}

TEST(FarUrl, Simulator) {
  SimSettings sim = parse_sim("latency=5us,bandwidth=100Gbps,inner=zmem:zstd?size=1G").value();
  EXPECT_EQ(sim.latency_ns, 5000u);
  EXPECT_EQ(sim.bandwidth_bits_per_s, 100'000'000'000u);
  EXPECT_EQ(sim.inner, "zmem:zstd?size=1G");
  sim = parse_sim("latency=0.5ms,fail_reads=0.25,fail_writes=1,corrupt=0,lose_after=100,seed=7").value();
  EXPECT_EQ(sim.latency_ns, 500'000u);
  EXPECT_EQ(sim.fail_reads, 0.25);
  EXPECT_EQ(sim.fail_writes, 1);
  EXPECT_EQ(sim.lose_after, 100u);
  EXPECT_EQ(sim.seed, 7u);
  EXPECT_EQ(sim.inner, "mem:");
  EXPECT_EQ(parse_sim("inner=sim:latency=1us,inner=mem:")->inner, "sim:latency=1us,inner=mem:");
}

TEST(FarUrl, NothingIsOpenedYet) {
  for (const char* text :
       {"mem:", "zmem:zstd", "file:/no/such/folder/far", "tcp://127.0.0.1:1", "sim:inner=file:/no/far"})
    EXPECT_TRUE(parse_url(text)) << text;
  EXPECT_FALSE(parse_url("file:/no/such/folder/far").value()({}));
  EXPECT_TRUE(parse_url("sim:inner=mem:").value()({}));
}

TEST(FarUrl, RefusesWithTheNearestValid) {
  struct Case {
    const char* text;
    const char* what;
    const char* next_step;
  };
  for (Case c : {Case{"", "is empty", "zmem:"},
                 Case{"memm:", "unknown scheme 'memm'", "did you mean 'mem'?"},
                 Case{"tpc://a:1", "unknown scheme 'tpc'", "did you mean 'tcp'?"},
                 Case{"http://a:1", "unknown scheme 'http'", "valid are mem, zmem, file, tcp, sim"},
                 Case{"mem", "lacks its colon", "did you mean 'mem:'?"},
                 Case{"mem:?sise=1G", "no parameter 'sise'", "did you mean 'size'?"},
                 Case{"mem:?size=12X", "mem: size: '12X' is not a size", "64M"},
                 Case{"mem:?size=0", "is 0", "64M"},
                 Case{"mem:?size", "is empty", "64M"},
                 Case{"mem:?size=1M", "below the smallest device", "16M"},
                 Case{"mem:1G", "takes nothing but a size, not '1G'", "mem:?size=1G"},
                 Case{"zmem:zst", "no compression 'zst'", "did you mean 'zstd'?"},
                 Case{"zmem:gzip", "no compression 'gzip'", "valid are lz4, zstd"},
                 Case{"file:", "names no path", "file:/var/tmp/far"},
                 Case{"file:?size=1G", "names no path", "file:/var/tmp/far"},
                 Case{"file:/x?sized=1G", "no parameter 'sized'", "did you mean 'size'?"},
                 Case{"tcp:a:1", "is not followed by //", "tcp://HOST:PORT"},
                 Case{"tcp://", "names no host", "tcp://HOST:PORT"},
                 Case{"tcp://:1", "names no host", "tcp://HOST:PORT"},
                 Case{"tcp://a", "names no port", "tcp://HOST:PORT"},
                 Case{"tcp://a:", "'' is not a port", "tcp://HOST:PORT"},
                 Case{"tcp://a:0", "'0' is not a port", "tcp://HOST:PORT"},
                 Case{"tcp://a:65536", "'65536' is not a port", "tcp://HOST:PORT"},
                 Case{"tcp://a:12x", "'12x' is not a port", "tcp://HOST:PORT"},
                 Case{"tcp://::1:5", "several colons", "tcp://[fe80::1]:7700"},
                 Case{"tcp://[::1", "lacks its ]", "tcp://HOST:PORT"},
                 Case{"tcp://a/b:1", "is not a host", "tcp://HOST:PORT"},
                 Case{"sim:latncy=5us", "no parameter 'latncy'", "did you mean 'latency'?"},
                 Case{"sim:latency=5", "latency '5' is malformed", "5us"},
                 Case{"sim:latency=-5us", "latency '-5us' is malformed", "5us"},
                 Case{"sim:latency=", "latency '' is malformed", "5us"},
                 Case{"sim:bandwidth=100Gb", "bandwidth '100Gb' is malformed", "100Gbps"},
                 Case{"sim:fail_reads=2", "fail_reads '2' is malformed", "0 to 1"},
                 Case{"sim:lose_after=x", "lose_after 'x' is malformed", "whole number"},
                 Case{"sim:inner=memm:", "unknown scheme 'memm'", "did you mean 'mem'?"},
                 Case{"sim:inner=sim:inner=sim:inner=sim:inner=sim:inner=mem:", "nested too deeply", "4 levels"}}) {
    auto url = parse_url(c.text);
    ASSERT_FALSE(url) << c.text;
    EXPECT_NE(std::string(url.error().what()).find(c.what), std::string::npos) << url.error().what();
    EXPECT_NE(std::string(url.error().next_step()).find(c.next_step), std::string::npos) << url.error().next_step();
    EXPECT_EQ(url.error().code(), 0) << c.text;
  }
}

TEST(OpenDevice, PassesTheErrorOfTheUrlOn) {
  auto device = open_device("mme:", {});
  ASSERT_FALSE(device);
  EXPECT_STREQ(device.error().next_step(), "did you mean 'mem'?");
}

TEST(Url, PathsBeginAtAFolder) {
  EXPECT_EQ(url_from("/a", "file:far?size=1G"), "file:/a/far?size=1G");
  EXPECT_EQ(url_from("/a", "file:/b/far"), "file:/b/far");
  EXPECT_EQ(url_from("/a", "sim:latency=1us,inner=sim:inner=file:far"),
            "sim:latency=1us,inner=sim:inner=file:/a/far");
  EXPECT_EQ(url_from("/a", "sim:inner=file:/b/far"), "sim:inner=file:/b/far");
  for (const char* same :
       {"", "file:", "mem:", "zmem:lz4", "sim:", "sim:inner=", "sim:latency=1us", "tcp://file:7700"})
    EXPECT_EQ(url_from("/a", same), same);
}

}  // namespace
}  // namespace hinterland::far
