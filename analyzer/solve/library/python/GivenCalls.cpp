#include "analyzer/solve/library/python/GivenCalls.h"

#include "analyzer/facts/NameParts.h"
#include "analyzer/models/Models.h"
#include "analyzer/solve/domain/DeviceTerms.h"
#include "analyzer/solve/domain/TermOps.h"
#include "analyzer/solve/library/python/OpenValues.h"

namespace devicetidy {
namespace python {
namespace {

// Was it given to the entry, and moved since?
bool wasGiven(const Call &call, const Value &value) {
  const Step *step = decidingStep(value->history);
  return step && step->kind != StepKind::Created && step->givenTo == call.machine.entryCall;
}

// Of the arguments the one that tells where the others are.
Value firstOf(const Given &given) {
  if (!given.positional.empty())
    return given.positional.front().value;
  if (!given.named.empty())
    return given.named.front().second.value;
  return given.namedRest && isPlaced(given.namedRest) ? given.namedRest : unknownValue();
}

bool isModuleOrPart(const Value &value) {
  return isOpen(value) && (value->type == moduleType || value->type == partType);
}

// What is called so in an object is a module: trainer.ema_model(x).
bool namesModule(const std::string &name) {
  return models::hasRole(std::string_view(name).substr(name.rfind('_') + 1), "given_module");
}

// What a call gives each time it is made, and stays so until then.
Term anewHere(const Call &call, Row &row) {
  const Term made = call.machine.freshScalar(call);
  row.forgetConditions([&](Term term) { return contains(term, made); });
  return applyTerm(op::kept, {made});
}

} // namespace

bool takesTensor(const Given &given) {
  const Value first = firstOf(given);
  return is(first, ValueKind::Tensor) || isPlaced(first);
}

Value madeByModule(Call &call, Row &row, const Given &given) {
  const Value first = asTensor(call, firstOf(given));
  const Placement there =
      is(first, ValueKind::Tensor) ? call.machine.memory.placementOf(row, first) : Placement::unknown();
  if (!there.isKnown())
    return unknownValue();
  row.guessed = true;
  const Value made = withHistory(placedValue(call, there, true), call.machine.memory.historyOf(row, first));
  return typed(made, outputType);
}

// What a function that a caller passes makes of tensors from outside is for the caller to say, too; most give
// tensors where they get them.
Value madeByOpen(Call &call, Row &row, const Value &callee, const Given &given) {
  if (isModuleOrPart(callee) && takesTensor(given))
    return madeByModule(call, row, given);
  const Value first = firstOf(given);
  const Placement there = isPlaced(first)                ? first->placement
                          : is(first, ValueKind::Tensor) ? call.machine.memory.placementOf(row, first)
                                                         : Placement::unknown();
  const bool isMoved = isPlaced(first) || there.kind == PlacementKind::Cuda ||
                       (there.kind == PlacementKind::Symbol && there.role == SymbolRole::DeviceChoice);
  if (isOpen(callee) && isMoved) {
    row.guessed = true;
    return placedValue(call, there, true, StepKind::Inherited, wasGiven(call, first));
  }
  return isOpen(callee) && (isOpen(first) || isOutside(there))
             ? openValue(applyTerm(op::element, {callee->origin, anewHere(call, row)}),
                         Name(callee->function.str() + "(..)"))
             : unknownValue();
}

void meetLoss(Call &call, Row &row, const Given &given) {
  const std::vector<Name> &said = call.fact.templateTypes;
  if (said.empty() || said.front() != lossType || given.positional.size() != 2 || !given.named.empty())
    return;
  Call inner{call.machine, call.frame, row, call.fact, call.first};
  std::vector<TensorUse> uses;
  for (const Argument &each : given.positional)
    if (const Value value = asTensor(inner, asOperand(inner, each.value)); is(value, ValueKind::Tensor))
      uses.push_back({value, each.written});
  Machine::Requirement requirement;
  requirement.operation =
      call.fact.hasObject ? lastPart(call.fact.name.view()) : call.fact.operands[0].text.view();
  requirement.kind = ConflictKind::Loss;
  requirement.isSure = false;
  if (uses.size() == 2)
    call.machine.requireSame(inner, uses, requirement);
}

Outcomes callMethodOfOpen(Call &call, Row row, const Value &open, const std::string &name,
                          const Given &given) {
  const bool isRun =
      open->type == moduleType || namesModule(name) || (name == "forward" && isModuleOrPart(open));
  meetLoss(call, row, given);
  Outcomes outcomes = callOpenMethod(call, std::move(row), open, name, given);
  for (Outcome &outcome : outcomes)
    if (isRun && takesTensor(given) && is(outcome.result, ValueKind::Unknown) && !isOpen(outcome.result))
      outcome.result = madeByModule(call, outcome.row, given);
  return outcomes;
}

} // namespace python
} // namespace devicetidy
