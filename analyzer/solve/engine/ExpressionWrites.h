//===- ExpressionWrites.h - what a full expression changes -------*- C++ -*-===//
#pragma once

#include "analyzer/solve/domain/Types.h"
#include "analyzer/solve/engine/Usage.h"

#include <map>
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
/// The fields that the references of a function lead to, by the number of the local.
using References = std::map<std::int64_t, Member>;
/// Fields and globals a full expression assigns, itself or an element, or whose modules it moves.
/// `references` are those of the function so far; those that the expression binds are added.
Way scanExpression(const Program &program, const Types &types, const std::vector<const Fact *> &expression,
                   References &references);

} // namespace devicetidy
