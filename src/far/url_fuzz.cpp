// Far URLs, inner ones included.
#include "base/size.hpp"
#include "base/testing/fuzz_input.hpp"
#include "far/url.hpp"

using namespace hinterland;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string text(reinterpret_cast<const char*>(data), size);
  Result<far::Url> url = far::parse_url(text);
  if (!url) {
    HL_CHECK(url.error().what()[0] != '\0');
    return 0;
  }
  HL_CHECK_OP(url->size_bytes, <=, kSizeMax);
  const far::SimSettings& sim = url->sim;
  for (double share : {sim.fail_reads, sim.fail_writes, sim.corrupt}) HL_CHECK(share >= 0 && share <= 1);
  if (url->scheme == far::Scheme::tcp) HL_CHECK(!url->host.empty() && url->port != 0);
  if (url->scheme == far::Scheme::file) HL_CHECK(!url->path.empty());
  if (url->scheme == far::Scheme::sim) HL_CHECK(far::parse_url(sim.inner).has_value());
  return 0;
}
