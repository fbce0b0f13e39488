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

#include <string>
#include <vector>

namespace devicetidy::driver {

struct Programs {
  std::vector<std::vector<std::size_t>> groups; ///< indices of units, each list sorted
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
Programs groupPrograms(const std::vector<Unit> &units, const LinkMap &links = {});

} // namespace devicetidy::driver
