#include "policy/plugin.hpp"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <list>
#include <memory>
#include <vector>

#include "base/suggest.hpp"
#include "policy/policies.hpp"

namespace hinterland {
namespace {

struct Parts {
  std::string name;  // or file
  std::string settings;
  bool is_file;
};

Parts parts_of(std::string_view text) {
  std::size_t slash = text.rfind('/');
  std::size_t colon = std::min(text.find(':', slash == text.npos ? 0 : slash), text.size());
  return {std::string(text.substr(0, colon)), std::string(text.substr(std::min(colon + 1, text.size()))),
          slash != text.npos};
}

// A plug-in may have been built before calls were added at the end, or declare no more than it has: what its own
// lacks is a null pointer in this copy, which stays for ever. `symbol`: of a library that stays, too.
const hl_policy_ops* whole_ops(const void* symbol) {
  static auto& all = *new std::list<hl_policy_ops>;
  Dl_info unused;
  void* found = nullptr;
  bool known = dladdr1(symbol, &unused, &found, RTLD_DL_SYMENT) != 0 && found != nullptr;
  std::size_t size = known ? static_cast<const ElfW(Sym)*>(found)->st_size : 0;
  std::memcpy(&all.emplace_back(), symbol, size != 0 ? std::min(size, sizeof(hl_policy_ops)) : sizeof(hl_policy_ops));
  return &all.back();
}

Result<NamedPolicy> load(const Parts& parts) {
  void* library = dlopen(parts.name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    return std::unexpected(Error::make(0, "policy %s cannot be loaded: %s", parts.name.c_str(), dlerror())
                               .remedy("build it as docs/policies.md says: cc -shared -fPIC"));
  const void* symbol = dlsym(library, "hl_policy_plugin");
  if (symbol == nullptr)
    return std::unexpected(Error::make(0, "policy %s defines no hl_policy_plugin", parts.name.c_str())
                               .remedy("define it with HL_POLICY_PLUGIN, as docs/policies.md says"));
  const hl_policy_ops* ops = whole_ops(symbol);
  if (ops->abi_version != HL_POLICY_ABI_VERSION)
    return std::unexpected(Error::make(0, "policy %s was built for policy interface %u, this is %u",
                                       parts.name.c_str(), ops->abi_version, HL_POLICY_ABI_VERSION)
                               .remedy("build it again with this version's hinterland/policy.h"));
  if (ops->name == nullptr || ops->create == nullptr || ops->arrived == nullptr || ops->departed == nullptr ||
      ops->choose_victims == nullptr || ops->size == nullptr)
    return std::unexpected(
        Error::make(0, "policy %s lacks a name or a call that every policy has", parts.name.c_str())
            .remedy("only what follows size in hl_policy_ops may be NULL"));
  return NamedPolicy{ops, parts.settings, true};
}

}  // namespace

Result<NamedPolicy> policy_named(std::string_view text) {
  Parts parts = parts_of(text);
  if (parts.is_file) return load(parts);
  if (const hl_policy_ops* known = find_policy(parts.name.c_str()); known != nullptr)
    return NamedPolicy{known, parts.settings, false};
  std::vector<std::string_view> names;
  for (const hl_policy_ops* policy : policies()) names.emplace_back(policy->name);
  return std::unexpected(Error::make(0, "there is no policy %s", parts.name.c_str())
                             .remedy("%s", suggestion(parts.name, names).c_str()));
}

std::string policy_with_whole_path(std::string_view text) {
  Parts parts = parts_of(text);
  if (!parts.is_file) return std::string(text);
  std::unique_ptr<char, decltype(&std::free)> whole(realpath(parts.name.c_str(), nullptr), &std::free);
  std::string file = whole != nullptr ? whole.get() : parts.name;
  return parts.settings.empty() ? file : file + ":" + parts.settings;
}

}  // namespace hinterland
