//===- ProcessStates.h - what modules do to their process -------*- C++ -*-===//
//
// The code of a module can change more than the module: the default device, the environment, whether
// gradients are noted. That is there for whoever imports the module. What merely stands beside it in the
// project, as a library beside the scripts and tests that use it, runs without.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/solve/engine/Machine.h"

#include <set>

namespace devicetidy {

class ProcessStates {
public:
  explicit ProcessStates(Machine &machine) : machine(machine) {}

  /// Notes how the code of module `file` has left the process, which `row` says, and makes that in `row` what
  /// it was in `before`. A file that is no module acts on the whole program.
  void keep(Name file, const Row &before, Row &row);
  /// Makes the process in `row` what the modules that `file` imports have made of it. What is not as in
  /// `start` is left: it has changed since.
  void enter(Row &row, const Row &start, Name file);

private:
  struct Change {
    Name file;
    std::map<RootId, Value> values;
    Term currentDevice = nullptr; ///< when it has changed
  };

  bool isOfProcess(RootId root) const;
  const std::set<Name> &importedBy(Name file);

  Machine &machine;
  std::vector<Change> changes; ///< in the order in which the modules were run
  std::map<Name, std::set<Name>> imported;
};

} // namespace devicetidy
