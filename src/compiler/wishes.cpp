#include "compiler/wishes.hpp"

#include <llvm/IR/Constants.h>
#include <llvm/IR/DiagnosticInfo.h>
#include <llvm/IR/DiagnosticPrinter.h>

namespace hinterland::compiler {

using namespace llvm;

namespace {

class UnknownWish final : public DiagnosticInfo {
 public:
  UnknownWish(StringRef text, StringRef function)
      : DiagnosticInfo(getNextAvailablePluginDiagnosticKind(), DS_Warning), text_(text), function_(function) {}
  void print(DiagnosticPrinter& printer) const override {
    printer << "hinterland: function '" << function_ << "' is annotated '" << text_
            << "', which means nothing; there are hinterland:never and hinterland:always";
  }

 private:
  StringRef text_, function_;
};

Wish wish_of(StringRef text, const Function& function, bool quietly) {
  if (text == "hinterland:never") return Wish::never;
  if (text == "hinterland:always") return Wish::always;
  if (!quietly && text.starts_with("hinterland:"))
    function.getContext().diagnose(UnknownWish(text, function.getName()));
  return Wish::none;
}

}  // namespace

DenseMap<const Function*, Wish> wishes_of(const Module& module, bool quietly) {
  DenseMap<const Function*, Wish> wishes;
  const GlobalVariable* annotations = module.getNamedGlobal("llvm.global.annotations");
  if (annotations == nullptr || !annotations->hasInitializer()) return wishes;
  const auto* list = dyn_cast<ConstantArray>(annotations->getInitializer());
  for (unsigned i = 0; list != nullptr && i < list->getNumOperands(); ++i) {
    // { what, text, file, line, arguments }
    const auto* entry = dyn_cast<ConstantStruct>(list->getOperand(i));
    if (entry == nullptr || entry->getNumOperands() < 2) continue;
    const auto* function = dyn_cast<Function>(entry->getOperand(0)->stripPointerCasts());
    const auto* variable = dyn_cast<GlobalVariable>(entry->getOperand(1)->stripPointerCasts());
    if (function == nullptr || variable == nullptr || !variable->hasInitializer()) continue;
    const auto* text = dyn_cast<ConstantDataSequential>(variable->getInitializer());
    if (text == nullptr || !text->isCString()) continue;
    const Wish wish = wish_of(text->getAsCString(), *function, quietly);
    if (wish != Wish::none) wishes[function] = wish;
  }
  return wishes;
}

}  // namespace hinterland::compiler
