#include "compiler/remarks.hpp"

#include <llvm/Analysis/OptimizationRemarkEmitter.h>

namespace hinterland::compiler {

using namespace llvm;

namespace {

constexpr const char* kPass = "hinterland";

template <typename Remark>
Remark about(const Access& access, Verdict verdict) {
  Remark remark(kPass, is_hinted(verdict) ? "Hinted" : "NotHinted", access.at);
  const char* kind = access.length != nullptr ? (access.writes ? "write of a range" : "read of a range")
                                              : (access.writes ? "write" : "read");
  remark << kind << " of memory that may be far: " << text_of(verdict);
  return remark;
}

}  // namespace

void remark(Function& function, const std::vector<Access>& accesses, const std::vector<Verdict>& verdicts) {
  OptimizationRemarkEmitter emitter(&function);
  for (std::size_t i = 0; i < accesses.size(); ++i) {
    const Access& access = accesses[i];
    const Verdict verdict = verdicts[i];
    if (is_hinted(verdict))
      emitter.emit([&] { return about<OptimizationRemark>(access, verdict); });
    else
      emitter.emit([&] { return about<OptimizationRemarkMissed>(access, verdict); });
  }
}

}  // namespace hinterland::compiler
