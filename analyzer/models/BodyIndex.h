//===- BodyIndex.h - model bodies by what they model ------------*- C++ -*-===//
//
// Functions of analyzer/models/bodies, or of a user's file, under the names of the library functions that
// they stand for.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/facts/Program.h"

#include <set>

namespace devicetidy::models {

struct BodyIndex {
  explicit BodyIndex(std::vector<Unit> units);
  BodyIndex(const BodyIndex &) = delete; // byName points into program
  BodyIndex &operator=(const BodyIndex &) = delete;

  const Program program;
  /// Those of a class stand under the names of the classes that derive from it, too, where these have none of
  /// their own.
  std::unordered_map<Name, std::vector<const Function *>> byName;
  std::set<Name> classes; ///< that have bodies

private:
  void addMethods(Name owner, const Type &type);
};

} // namespace devicetidy::models
