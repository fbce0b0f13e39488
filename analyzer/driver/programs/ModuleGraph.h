//===- ModuleGraph.h - which modules import each other ----------*- C++ -*-===//
//
// Modules are joined by what they import. A module may be imported, too, when it has a main of its own, which
// then does not run.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/driver/programs/Programs.h"
#include "analyzer/driver/programs/UnitGraph.h"

#include <vector>

namespace devicetidy::driver {

class ModuleGraph {
public:
  explicit ModuleGraph(const std::vector<Unit> &units);

  /// The programs of the modules among the units, see groupPrograms.
  std::vector<Group> groups() const;

private:
  using Edges = std::vector<std::vector<UnitIndex>>;

  /// What `edges` lead to from `starts`, and what belongs to every program.
  UnitGroup reach(const std::vector<UnitIndex> &starts, std::initializer_list<const Edges *> edges) const;

  const std::vector<Unit> &units;
  Edges imports, importers;
  std::vector<UnitIndex> modules, mains, everywhere;
};

} // namespace devicetidy::driver
