//===- Objects.cpp - what all objects can do ---===//
#include "analyzer/solve/library/std/Words.h"

namespace devicetidy {
namespace {

using models::Effect;

// The defaulted assignment: the object becomes what it is given.
std::optional<Outcomes> assign(Call &call, const Effect &) {
  const Value value = call.arg(0);
  call.machine.memory.write(call.row, call.objectAddress(), value);
  return call.done(call.fact.resultIsAddress ? addressValue(call.objectAddress()) : value);
}

} // namespace

Words objectWords() { return {{{"assign", assign}}, {}, {}}; }

} // namespace devicetidy
