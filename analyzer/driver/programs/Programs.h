//===- Programs.h - which translation units make up a program ---*- C++ -*-===//
//
// A compile database lists the sources of many programs: executables with a main of their own, tests,
// examples that each define their own `train()`. Linking all of them together would let one program's
// functions replace those of another.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/driver/input/LinkMap.h"
#include "analyzer/facts/Program.h"

#include <optional>
#include <set>
#include <string>
#include <vector>

namespace devicetidy::driver {

/// The units of one program.
struct Group {
  std::vector<std::size_t> units; ///< indices, sorted
  /// Of these, modules that are there for the others: another program enters their functions.
  std::set<std::size_t> others = {};
  std::optional<std::size_t> main = std::nullopt; ///< of modules: whose main is started
};

struct Programs {
  std::vector<Group> groups;
  std::size_t fromLinks = 0; ///< of the groups, those that the build's link information decided
  std::size_t keptApart =
      0; ///< how often a unit is left out of an executable that has its names from another
  std::size_t linkedUnits = 0; ///< units that it names
};

/// What distinguishes units with the same main file and objects: their facts as bytes, without the list of
/// files they read, of which facts files name only a part.
std::string unitBytes(const Unit &unit);

/// Sorts units by file, object and facts, so that the order of the input does not matter. The order decides
/// which definition is used and what is reported first.
void orderUnits(std::vector<Unit> &units);

/// Groups units into programs. Units that can all live in one program do. Where they cannot (two mains, two
/// different definitions of one name), the images of `links` decide for the units that they name: an
/// executable is the objects given to its linker and what these lead to in its libraries. Each other main
/// makes a program with the units of its target and all its calls lead to, and what nothing reaches makes
/// programs along its calls. Every unit is in at least one program. Where one image has two definitions of
/// one name, each stays in a program with its own unit.
///
/// Of modules, each main makes a program with all it imports. Those of packages, and those that no main
/// imports, make others with all that they import, and which of them import them: these have callers outside.
Programs groupPrograms(const std::vector<Unit> &units, const LinkMap &links = {});

/// Makes `part`, a copy of the unit `index`, what it is in `group`: without mains that are not started there,
/// and with functions that are entered elsewhere marked so.
void adapt(Unit &part, std::size_t index, const Group &group);

} // namespace devicetidy::driver
