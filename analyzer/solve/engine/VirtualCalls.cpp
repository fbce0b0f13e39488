//===- VirtualCalls.cpp - which override a call runs -----------------------===//
//
// The class of an object that the analysed code makes is known. Of one from outside it is not: each override
// is run, and the row knows from there on which class it has taken the object to be.
//
//===----------------------------------------------------------------------===//
#include "analyzer/solve/domain/Registers.h"
#include "analyzer/solve/domain/TermOps.h"
#include "analyzer/solve/engine/Machine.h"

#include <algorithm>

namespace devicetidy {
namespace {

// Of the numbers that stand for classes; 0 and 1 are truth values.
constexpr std::int64_t firstClassNumber = 2;

} // namespace

// The override that an object of class `dynamic` runs: the most derived one among its class and their bases.
const Function *Machine::overrideOf(Name dynamic, const std::vector<const Function *> &all) const {
  for (Name type = dynamic; !type.empty();) {
    for (const Function *function : all)
      if (function->className == type)
        return function;
    const Type *record = program.type(type);
    Name next;
    if (record)
      for (Name base : record->bases)
        if (types.isProject(base))
          next = base;
    type = next;
  }
  return nullptr;
}

const Function *Machine::resolveVirtual(const Row &row, const Fact &fact,
                                        std::vector<const Function *> &candidates) const {
  Value receiver = registerOf(row, fact.operands[0].reg);
  Name dynamic;
  bool exact = false;
  if (is(receiver, ValueKind::Address)) {
    Value object = memory.read(row, receiver->address);
    dynamic = object->type;
    exact = is(object, ValueKind::Record) && !object->origin && !dynamic.empty();
  }
  auto overriders = program.overriders.find(fact.target);
  const Function *base = program.function(fact.target);
  std::vector<const Function *> all;
  if (base && base->hasBody)
    all.push_back(base);
  if (overriders != program.overriders.end())
    for (Name id : overriders->second)
      if (const Function *function = program.function(id))
        if (function->hasBody)
          all.push_back(function);
  if (exact) {
    const Function *known = overrideOf(dynamic, all);
    return known ? known : base && base->hasBody ? base : nullptr;
  }
  if (const Term which = implementationOf(row, receiver))
    if (const auto number = constantOf(row.resolve(which)))
      if (const Function *known = overrideOf(classNumbers.at(std::size_t(*number - firstClassNumber)), all))
        return known;
  candidates = std::move(all);
  return nullptr;
}

// The class of the object from outside that `receiver` leads to, as a number; null for any other object.
Term Machine::implementationOf(const Row &row, const Value &receiver) const {
  if (!is(receiver, ValueKind::Address))
    return nullptr;
  const Value object = memory.read(row, receiver->address);
  return is(object, ValueKind::Record) && object->origin ? applyTerm(op::implementation, {object->origin})
                                                         : nullptr;
}

std::int64_t Machine::numberOfClass(Name type) {
  const auto known = std::find(classNumbers.begin(), classNumbers.end(), type);
  const auto number = known - classNumbers.begin();
  if (known == classNumbers.end())
    classNumbers.push_back(type);
  return number + firstClassNumber;
}

bool Machine::isChosenByObject(const Frame &frame, const Row &row) const {
  for (const Frame *each = &frame; each->call; each = each->caller) {
    const auto known = std::find(classNumbers.begin(), classNumbers.end(), each->function.className);
    if (!each->call->isVirtual || known == classNumbers.end())
      continue;
    const std::int64_t number = known - classNumbers.begin() + firstClassNumber;
    if (std::any_of(row.known.begin(), row.known.end(), [&](const Condition &condition) {
          return applies(condition.first, op::implementation) && condition.second == number;
        }))
      return true;
  }
  return false;
}

Outcomes Machine::callOverriders(Frame &frame, const Fact &fact, const Row &row,
                                 const std::vector<const Function *> &candidates,
                                 const std::vector<Value> &args) {
  Outcomes outcomes;
  if (candidates.empty() || !isWithin(candidates.size(), bounds::overridersPerCall, Bound::Overriders))
    return outcomes;
  Value receiver = registerOf(row, fact.operands[0].reg);
  // Of an object that is not known at all the choice is one of this call, and a guess: the program made it.
  const Term ofObject = implementationOf(row, receiver);
  const Term ofCall = applyTerm(op::implementation, {intTerm(fact.where.line), intTerm(fact.where.column)});
  for (const Function *candidate : candidates) {
    Row chosen = row;
    // Where a class is derived from another, the object may be of either.
    if (candidates.size() > 1 && !program.derivedFrom.count(candidate->className))
      chosen.assume(ofObject ? ofObject : ofCall, numberOfClass(candidate->className));
    chosen.guessed |= !ofObject && candidates.size() > 1;
    for (Outcome &outcome : invoke(frame, fact, chosen, *candidate, receiver->address, args)) {
      if (!ofObject)
        outcome.row.forgetConditions([&](Term term) { return term == ofCall; });
      outcomes.push_back(std::move(outcome));
    }
  }
  return outcomes;
}

} // namespace devicetidy
