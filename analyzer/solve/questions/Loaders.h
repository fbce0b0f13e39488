//===- Loaders.h - which calls load or build a model ------------*- C++ -*-===//
#pragma once

#include "analyzer/solve/engine/Machine.h"

#include <string>

namespace devicetidy {

/// How sure it is that a call is the one that loads the model. Weak: it returns a model, but may be what
/// surrounds the loader (a trainer that is made from all options). Known: by the name that loaders have
/// (distributed.csv).
enum class LoaderKind : std::uint8_t { None, Weak, Strong, Known };

/// Classifies calls by what they return and how they are called.
class Loaders {
public:
  explicit Loaders(const Machine &machine) : machine(machine) {}
  LoaderKind kindOf(const Call &call);
  /// How a user would name the callee.
  static std::string nameOf(const Call &call);

private:
  bool holdsModules(Name type);
  const Machine &machine;
  std::unordered_map<Name, bool> known;
};

} // namespace devicetidy
