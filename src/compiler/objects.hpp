// One check for an object: accesses near each other share the site that comes first.
#pragma once

#include <vector>

#include <llvm/ADT/DenseMap.h>
#include <llvm/Analysis/PostDominators.h>
#include <llvm/IR/Dominators.h>
#include "compiler/site.hpp"

namespace hinterland::compiler {

class Objects {
 public:
  // New sites are appended to `sites`.
  Objects(const llvm::DominatorTree& dominators, const llvm::PostDominatorTree& post_dominators,
          std::vector<Site>& sites)
      : dominators_(dominators), post_dominators_(post_dominators), sites_(sites) {}

  // False when a site that is there already stands for it: it comes before on every way, and looks at an address
  // within 256 bytes. (It may then look for writing, where it did for reading.) Sites with a length are not for this.
  bool add(Site site);

 private:
  struct Place {
    llvm::Value* base;
    std::int64_t offset;
  };
  Place place_of(llvm::Value* address) const;
  bool stands_for(Site& old, std::int64_t apart, const Site& site) const;

  const llvm::DominatorTree& dominators_;
  const llvm::PostDominatorTree& post_dominators_;
  std::vector<Site>& sites_;
  struct Known {
    std::size_t index;
    std::int64_t offset;
  };
  llvm::DenseMap<llvm::Value*, std::vector<Known>> by_base_;
};

}  // namespace hinterland::compiler
