// Where `hinterland check` leaves which hints are on, so that later runs read it.
#pragma once

#include <string>

#include "base/error.hpp"

namespace hinterland::cli {

class ChoiceFile {
 public:
  // `output`: what --output says. Where it is "", beside the program, or, where that folder may not be written, in
  // the user's cache. A profile that is there is written over, another file only with `force`. Nothing is written
  // yet. Errors: there is no place, or it is taken. `program` "": only libraries have hints, and `output` is needed.
  static Result<ChoiceFile> find(const std::string& output, const std::string& program, bool force);

  // As a whole or not at all: programs may be reading it.
  Status write(const std::string& text) const;
  const std::string& path() const { return path_; }
  // Without --sites.
  bool is_read_by_run() const { return read_by_run_; }

 private:
  ChoiceFile(std::string path, bool read_by_run) : path_(std::move(path)), read_by_run_(read_by_run) {}
  std::string path_;
  bool read_by_run_;
};

}  // namespace hinterland::cli
