// What the compiler tells a person: for each access, with its line, whether it was hinted and why.
//   -Rpass=hinterland           those that were
//   -Rpass-missed=hinterland    those that were not
#pragma once

#include "compiler/plan.hpp"

namespace hinterland::compiler {

void remark(llvm::Function& function, const std::vector<Access>& accesses, const std::vector<Verdict>& verdicts);

}  // namespace hinterland::compiler
