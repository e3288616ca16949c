#include "runtime/regions.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <string>

#include "base/inside.hpp"
#include "base/mutex.hpp"
#include "base/own_stack.hpp"
#include "hinterland/region.h"
#include "kernel/probe.hpp"
#include "policy/policies.hpp"

namespace hinterland::hint {
namespace {

constexpr std::size_t kUnit = 64 * kKiB;

Mutex g_error_mutex;            // never waited for
std::array<char, 512> g_error;  // guarded by g_error_mutex; read by who just failed

// The runtime's field of a region: what destroy_region() needs to know. 0: ordinary memory.
constexpr std::uint64_t kFar = 1, kPoolShift = 8, kShareShift = 16;  // the share in pages above
std::uint64_t inside_of(int pool, std::uint64_t share_bytes) {
  return kFar | static_cast<std::uint64_t>(pool) << kPoolShift | (share_bytes >> kPageShift) << kShareShift;
}

int fail(int error, const char* what, const char* remedy) {
  // Held: another thread fails at the same moment, and its failure is the last. Or, in a forked child, did so in the
  // parent.
  if (!g_error_mutex.try_lock()) return error;
  std::snprintf(g_error.data(), g_error.size(), "%s%s%s", what, remedy[0] != '\0' ? "; " : "", remedy);
  g_error_mutex.unlock();
  return error;
}
// Settings and URLs that are wrong have no errno, and a refusal has none either.
int fail(const Error& error) {
  int code = error.code() != 0 ? error.code() : faults_permitted() ? EINVAL : EPERM;
  return fail(code, error.what(), error.next_step());
}

int create_ordinary(hl_region* region, std::size_t size) {
  void* mapped = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) return fail(errno, "no memory for a region", "ask for less");
  *region = {mapped, size, 0};
  return 0;
}

int explain(int error) {
  switch (error) {
    case EDQUOT:
      return fail(error, "the shares of all regions together would be more than half of the budget",
                  "give a larger HINTERLAND_LOCAL (run --local), or smaller shares");
    case ENOSPC:
      return fail(error, "too many regions with a share, a read-ahead, a policy or a device of their own",
                  "destroy one, or create it without options");
    case ENOMEM:
      return fail(error, "no addresses or memory for a region", "ask for less, or give a larger HINTERLAND_WINDOW");
    default:
      return fail(error, "a region cannot be created", "");
  }
}

// The number of the device that a region names, or what has failed.
int open_device(Pager& pager, const char* url, std::uint32_t* number) {
  // In local memory, as all that is allocated here: it is needed while nobody can bring a page.
  struct Asked {
    std::string url;
    Result<std::uint32_t> number;
  };
  auto asked = std::make_unique<Asked>(Asked{url, {}});
  on_own_stack([pager = &pager, asked = asked.get()] { asked->number = pager->open_device(asked->url); });
  if (!asked->number) return fail(asked->number.error());
  *number = *asked->number;
  return 0;
}

int create_far(Pager& pager, hl_region* region, std::size_t size, const hl_region_options& options) {
  RegionOptions wanted{.share_bytes = options.share, .read_ahead_pages = options.rdahead};
  if (options.tag != nullptr) wanted.tag = options.tag;
  if (options.policy != nullptr && (wanted.policy = find_policy(options.policy)) == nullptr)
    return fail(EINVAL, "a region names a policy that does not exist", "`hinterland run --help` lists them");
  bool common = options.share == HL_SHARE_COMMON;
  wanted.common_share = common;
  if (common) wanted.share_bytes = 0;
  if (options.device != nullptr)
    if (int error = open_device(pager, options.device, &wanted.device); error != 0) return error;
  const bool plain = common && options.policy == nullptr && options.rdahead < 0 && wanted.device == 0;
  struct Placed {
    std::intptr_t address;
    int pool;
  };
  Placed placed = on_own_stack([pager = &pager, plain, size, wanted] {
    Placed made{};
    made.address =
        plain ? pager->map(size, kUnit, PROT_READ | PROT_WRITE, MAP_NORESERVE, 0, {HL_MAPPING_REGION, wanted.tag})
              : pager->create_region(size, wanted, &made.pool);
    return made;
  });
  if (placed.address < 0) return explain(static_cast<int>(-placed.address));
  *region = {reinterpret_cast<void*>(placed.address), size, inside_of(placed.pool, wanted.share_bytes)};
  return 0;
}

}  // namespace

int create_region_without_device(hl_region* region, std::size_t size, const hl_region_options* options) {
  return create_region(region, size, options, offsetof(hl_region_options, device));
}

int create_region(hl_region* region, std::size_t size, const hl_region_options* options, std::size_t options_size) {
  if (t_inside_runtime != 0) return EBUSY;
  InsideRuntime inside;
  *region = {nullptr, 0, 0};
  hl_region_options wanted{};
  std::memcpy(&wanted, options, std::min(options_size, sizeof wanted));
  const auto* bytes = reinterpret_cast<const unsigned char*>(options);
  if (options_size > sizeof wanted && std::any_of(bytes + sizeof wanted, bytes + options_size, std::identity{}))
    return fail(ENOTSUP, "an option of a region that this version of the runtime does not know", "use a newer one");
  if (size == 0 || size > ~std::size_t{0} - kUnit || wanted.rdahead < -1)
    return fail(EINVAL, "a region of no bytes, of too many, or with a read-ahead below -1", "");
  size = (size + kUnit - 1) / kUnit * kUnit;
  Result<Pager*> pager = pager_for_regions();
  if (!pager) return fail(pager.error());
  if (*pager != nullptr && (*pager)->is_copy())
    return fail(ENOTSUP, "a forked child of a program that links the runtime has no far memory",
                "exec a program, or run the parent under `hinterland run`");
  return *pager == nullptr ? create_ordinary(region, size) : create_far(**pager, region, size, wanted);
}

int destroy_region(hl_region* region) {
  if (t_inside_runtime != 0) return EBUSY;
  InsideRuntime inside;
  if ((region->inside & kFar) == 0) return munmap(region->data, region->size) == 0 ? 0 : errno;
  auto address = reinterpret_cast<std::uintptr_t>(region->data);
  int pool = static_cast<int>(region->inside >> kPoolShift & 0xff);
  RegionOptions had{.share_bytes = region->inside >> kShareShift << kPageShift};
  Pager& pager = *Pager::current();
  if (pager.is_copy()) return 0;  // the parent's
  return -on_own_stack([pager = &pager, address, size = region->size, had, pool] {
    return pool == 0 ? pager->unmap(address, size) : pager->destroy_region(address, size, had, pool);
  });
}

const char* region_error() { return g_error.data(); }

}  // namespace hinterland::hint
