// Writes sites into a module: nops, what they call once they are patched, and the table in which the runtime finds
// them.
//
// A site, here for reading 8(%rax,%rcx,8):
//
//     nop                        five bytes, where a runtime puts a call of what follows
//
//     .text.hinterland:          beside the function's code
//       lea 8(%rax,%rcx,8), %r11
//       jmp *__hinterland_hints+24(%rip)       the runtime's check; it returns behind the nop
//
//     hinterland_sites:          12 bytes a site
//       .long nop - ., call's target - ., kind
//
// The runtime's check keeps all registers but r11 and the flags. With a length, that is in r10, and kept as well.
// A static site needs no patching, for programs whose text may not be written; it costs a comparison where there is
// no runtime, and is on where there is one:
//
//     cmpq $0, __hinterland_hints+24(%rip)
//     je past
//     lea 8(%rax,%rcx,8), %r11
//     call *__hinterland_hints+24(%rip)
//     past:                                  in the table as if a nop of five bytes ended here
//
// Of each library and program there is one `__hinterland_hints` (struct hl_hinted_module of runtime/sites.hpp), which
// meets the runtime as module_description.hpp says.
#pragma once

#include <llvm/IR/Module.h>
#include "compiler/site.hpp"

namespace hinterland::compiler {

class Emitter {
 public:
  Emitter(llvm::Module& module, SiteCode code) : module_(module), code_(code) {}

  // Its function has no red zone then, nor has one that it is inlined into: the call writes below the stack pointer.
  void emit(const Site& site);

 private:
  llvm::GlobalVariable& description();
  llvm::GlobalVariable& make_description();

  llvm::Module& module_;
  SiteCode code_;
  llvm::GlobalVariable* description_ = nullptr;
};

}  // namespace hinterland::compiler
