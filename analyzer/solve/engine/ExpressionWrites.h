//===- ExpressionWrites.h - what a full expression changes -------*- C++ -*-===//
#pragma once

#include "analyzer/solve/domain/Types.h"
#include "analyzer/solve/engine/Usage.h"

#include <set>
#include <vector>

namespace devicetidy {

/// Fields and globals that lead to a place: `net.encoder->` is reached through both.
struct Way {
  std::set<Member> fields;
  std::set<Name> globals;

  void add(const Way &other) {
    fields.insert(other.fields.begin(), other.fields.end());
    globals.insert(other.globals.begin(), other.globals.end());
  }
};

/// Does it give its object a new value?
bool assigns(const Fact &fact);
/// Module::to, or what a class of the program has in its place.
bool movesModule(const Fact &fact);
/// Fields and globals a full expression assigns, or whose modules it moves.
Way scanExpression(const Program &program, const Types &types, const std::vector<const Fact *> &expression);

} // namespace devicetidy
