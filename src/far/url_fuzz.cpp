// Far URLs, inner ones included.
#include "base/size.hpp"
#include "base/testing/fuzz_input.hpp"
#include "far/file_device.hpp"
#include "far/sim_settings.hpp"
#include "far/tcp/tcp_address.hpp"
#include "far/url.hpp"
#include "far/zmem_device.hpp"

using namespace hinterland;

namespace {

void check_values(std::string_view text) {
  std::size_t colon = text.find(':');
  std::string_view scheme = text.substr(0, colon), rest = text.substr(colon + 1);
  if (scheme == "zmem") HL_CHECK_OP(far::parse_zmem(rest)->size_bytes, <=, kSizeMax);
  if (scheme == "file") HL_CHECK(!far::parse_file(rest)->path.empty());
  if (scheme == "tcp") {
    far::TcpAddress address = *far::parse_tcp(rest);
    HL_CHECK(!address.host.empty() && address.port != 0);
  }
  if (scheme != "sim") return;
  far::SimSettings sim = *far::parse_sim(rest);
  for (double share : {sim.fail_reads, sim.fail_writes, sim.corrupt}) HL_CHECK(share >= 0 && share <= 1);
  HL_CHECK(far::parse_url(sim.inner).has_value());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string text(reinterpret_cast<const char*>(data), size);
  auto url = far::parse_url(text);
  if (url)
    check_values(text);
  else
    HL_CHECK(url.error().what()[0] != '\0');
  return 0;
}
