//===- TensorMethods.cpp - methods of tensors that are no operators ---===//
//
// What they tell about a tensor, and what makes a variable another tensor.
//
//===----------------------------------------------------------------------===//
#include "analyzer/solve/domain/DeviceTerms.h"
#include "analyzer/solve/library/std/Callables.h"
#include "analyzer/solve/library/std/Containers.h"
#include "analyzer/solve/library/torch/LegacyTypes.h"
#include "analyzer/solve/library/torch/Words.h"

namespace devicetidy {
namespace {

using models::Effect;

// Of what is no tensor for certain nothing is known.
bool isTensor(const Value &value) { return is(value, ValueKind::Tensor); }

Placement placementOf(const Call &call, const Value &tensor) {
  return isTensor(tensor) ? call.machine.memory.placementOf(call.row, tensor) : Placement::unknown();
}

Value tensorLike(const Call &call, const Value &tensor) {
  return isTensor(tensor) ? call.machine.memory.snapshot(call.row, tensor) : unknownValue();
}

Outcomes number(const Call &call, std::int64_t number) {
  return call.done(number >= 0 ? scalarValue(intTerm(number)) : unknownValue());
}

Outcomes gradientOf(Call &call) { return call.done(tensorLike(call, call.arg(0))); }

Outcomes rankOf(Call &call) { return number(call, isTensor(call.arg(0)) ? call.arg(0)->rank : -1); }

Outcomes countOf(Call &call) { return number(call, isTensor(call.arg(0)) ? call.arg(0)->count : -1); }

Outcomes optionsOf(Call &call) {
  const Value tensor = call.arg(0);
  const Placement placement = placementOf(call, tensor);
  return call.done(isTensor(tensor)
                       ? optionsValue(&placement, call.machine.memory.historyOf(call.row, tensor))
                       : unknownValue());
}

Outcomes legacyType(Call &call) {
  const Value tensor = call.arg(0);
  return call.done(legacyTypeOf(placementOf(call, tensor), call.machine.memory.historyOf(call.row, tensor)));
}

// A tensor that comes from outside may be undefined.
Outcomes isDefined(Call &call) {
  const Value tensor = call.arg(0);
  if (is(tensor, ValueKind::Unknown))
    return call.done(scalarValue(guess(call.machine.freshScalar(call))));
  return call.done(holdsSomething(call.row, tensor));
}

// The hook is handed the gradient, which is where the tensor is.
std::optional<Outcomes> registerHook(Call &call, const Effect &) {
  if (!isTensor(call.object()) || call.argCount() == 0 || !is(call.arg(0), ValueKind::Function))
    return std::nullopt;
  callValue(call, call.row, call.arg(0), {{tensorLike(call, call.object()), {}}});
  return call.done(call.machine.unknownResult(call));
}

// On a variable it rebinds; on the temporary of `t[i] = x` it copies into `t`, which stays where it is.
std::optional<Outcomes> assignTensor(Call &call, const Effect &) {
  const Value value = call.argCount() ? call.arg(0) : unknownValue();
  const Address target = call.objectAddress();
  if (target.valid() && (isTensor(value) || is(value, ValueKind::Null) || is(value, ValueKind::Unknown)))
    call.machine.memory.write(call.row, target, value);
  return call.done(call.fact.resultIsAddress ? addressValue(target) : value);
}

} // namespace

Words tensorMethodWords() {
  return {{{"register_hook", registerHook}, {"assign_tensor", assignTensor}},
          {{"gradient_of", gradientOf},
           {"rank_of", rankOf},
           {"count_of", countOf},
           {"options_of", optionsOf},
           {"legacy_type_of", legacyType},
           {"is_defined", isDefined}},
          {}};
}

} // namespace devicetidy
