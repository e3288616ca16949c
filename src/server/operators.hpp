// Operators that the owner of the server installed (include/hinterland/operator.h): shared libraries in a folder,
// which nobody else may write, looked at and loaded before the server serves anybody.
#pragma once

#include <string>
#include <vector>

#include "base/error.hpp"
#include "far/operator_name.hpp"

namespace hinterland {

struct LoadedOperator {
  const hl_operator* what = nullptr;  // of a library that is never unloaded
  std::string path;
};

// All files of the folder that end in .so, by name. Each has to be a regular file of root's or of this user's that
// nobody else may write, in folders of which the same is true, and to define an operator of this interface's version,
// whose name no other has. An error names the file and says what to do. Loading runs the libraries' constructors.
Result<std::vector<LoadedOperator>> load_operators(const std::string& folder);

}  // namespace hinterland
