// Far URLs: the text after `--far`, taken apart and checked before anything is opened.
//
//   mem:[?size=SIZE]                         RAM of this process
//   zmem:[lz4|zstd][?size=SIZE]              compressed RAM, lz4 when nothing is said
//   file:PATH[?size=SIZE]                    a regular file or block device; the last '?' ends the path
//   tcp://HOST:PORT                          a memory server; HOST may be [v6-address]
//   sim:latency=5us,bandwidth=100Gbps,inner=URL    any other device, slowed down or broken; inner comes last
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace hinterland::far {

enum class Scheme : std::uint8_t { mem, zmem, file, tcp, sim };
enum class Codec : std::uint8_t { lz4, zstd };

struct SimSettings {
  std::uint64_t latency_ns = 0;
  std::uint64_t bandwidth_bits_per_s = 0;  // 0: not limited
  double fail_reads = 0;                   // share of reads that complete with EIO, 0 to 1
  double fail_writes = 0;                  // share of writes that complete with EIO
  double corrupt = 0;                      // share of reads that complete with EBADMSG and damaged bytes
  std::uint64_t lose_after = 0;            // requests until the device is lost (ECONNRESET); 0: never
  std::uint64_t seed = 1;                  // the same seed and requests give the same faults
  std::string inner = "mem:";
};

struct Url {
  Scheme scheme = Scheme::zmem;
  std::uint64_t size_bytes = 0;  // mem, zmem, file; 0: not given
  Codec codec = Codec::lz4;      // zmem
  std::string path;              // file
  std::string host;              // tcp, without brackets
  std::uint16_t port = 0;        // tcp
  SimSettings sim;               // sim
};

// Errors have code 0 (the text is wrong, not the system) and name the part that is wrong and the nearest valid one.
// An inner URL is checked too.
Result<Url> parse_url(std::string_view text);

// The same device for a process in another folder: the path of file:, also of one inside sim:, begins at `folder`.
std::string url_from(const std::string& folder, std::string_view text);

}  // namespace hinterland::far
