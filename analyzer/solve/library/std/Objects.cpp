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

// Writes to a place. A pointer, or an object that stands for a reference, is followed: `f(Tensor *out)`.
Outcomes write(Call &call) {
  const Value held = call.arg(0);
  const Address where = is(held, ValueKind::Address) ? held->address : call.addressOf(0);
  if (where.valid())
    call.machine.memory.write(call.row, where, call.arg(1));
  return call.done(unknownValue());
}

} // namespace

Words objectWords() { return {{{"assign", assign}}, {{"write", write}}, {}}; }

} // namespace devicetidy
