//===- Footprints.h - the globals that a call can come upon -----*- C++ -*-===//
#pragma once

#include "analyzer/solve/domain/Types.h"

#include <memory>
#include <unordered_map>
#include <unordered_set>

namespace devicetidy {

/// Which variables with static storage a function, or what it calls, names. A library may call back the
/// methods of classes that are derived from its own, and of those it is given, so a function that calls a
/// library may come upon what these name.
class Footprints {
public:
  Footprints(const Program &program, const Types &types);

  /// Does no function name the global `id`? Then it is the analysis that keeps it.
  bool isOurs(Name id) const { return named.count(id) == 0; }
  /// May a call of `function`, which is given no callable, come upon the global `id`, which some function
  /// names?
  bool mayMeet(const Function &function, Name id) const;
  /// Can it come upon any global?
  bool mayMeetAll(const Function &function) const;

private:
  struct Names {
    std::unordered_set<Name> globals;
    bool all = false; ///< it calls what is not known
  };

  std::unordered_set<Name> named;
  std::unordered_map<Name, Names> of;
};

} // namespace devicetidy
