#include "cli/sites_of_trace.hpp"

#include <unistd.h>

#include <string_view>

#include "base/plain_file.hpp"
#include "base/site_profile_text.hpp"
#include "cli/absolute_path.hpp"
#include "cli/check/choice_file.hpp"
#include "trace/site_places.hpp"

namespace hinterland::cli {

bool is_trace(const std::string& path) {
  constexpr std::string_view kMagic = "HLTRACE\n";
  Result<int> plain = open_plain_file(path, "the file");  // a pipe would wait
  if (!plain) return false;
  char begin[kMagic.size()] = {};
  const bool read_all = read(*plain, begin, sizeof begin) == static_cast<ssize_t>(sizeof begin);
  close(*plain);
  return read_all && std::string_view(begin, sizeof begin) == kMagic;
}

Result<std::string> profile_of_trace(const std::string& path) {
  Result<trace::TraceFile> file = trace::TraceFile::open(path);
  if (!file) return std::unexpected(file.error());
  trace::Symbols symbols(*file);
  return trace::site_profile_of(*file, symbols);
}

Status settle_sites(CommandLine& line) {
  const std::string trace = absolute_path(line.text(OptionId::sites));
  if (!line.is_given(OptionId::sites) || !is_trace(trace)) return {};
  Result<std::string> profile = profile_of_trace(trace);
  if (!profile) return std::unexpected(profile.error());
  const std::string path = site_profile::path_in_cache(trace);
  if (path.empty()) {
    Error error =
        Error::make(0, "--sites: neither HOME nor XDG_CACHE_HOME is set, and the profile of a trace goes there");
    return std::unexpected(error.remedy("make it yourself: hinterland report %s --hint-profile FILE", trace.c_str()));
  }
  Result<ChoiceFile> file = ChoiceFile::find(path, "", false);
  if (!file) return std::unexpected(file.error());
  if (Status written = file->write(*profile); !written) return written;
  line.settle_for(OptionId::sites, path);
  return {};
}

}  // namespace hinterland::cli
