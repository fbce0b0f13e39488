#include "analyzer/solve/library/torch/LegacyTypes.h"

#include "analyzer/solve/domain/DeviceTerms.h"
#include "analyzer/solve/library/torch/Words.h"

namespace devicetidy {
namespace {

constexpr std::string_view cudaName = "cuda";

Value typeOn(const Placement &placement) {
  return placement.isKnown() ? optionsValue(&placement) : unknownValue();
}

// options(index) and options(device): the type's device with an index, which is the current one's when it is
// left out.
Value optionsOf(Call &call, const Value &type) {
  const Value index = call.argCount() ? call.arg(0) : nullValue();
  if (is(index, ValueKind::Null))
    return type;
  if (is(index, ValueKind::Device))
    return optionsValue(&index->placement, index->history);
  const Term term = is(index, ValueKind::Scalar) ? call.row.resolve(index->term) : nullptr;
  if (constantOf(term) == -1)
    return type;
  Placement placement = call.row.resolve(type->placement);
  if (!term || placement.kind == PlacementKind::Symbol)
    return unknownValue();
  if (placement.kind == PlacementKind::Cuda)
    placement.index = term;
  return optionsValue(&placement, type->history);
}

using models::Effect;

bool isType(const Value &type) { return is(type, ValueKind::Options) && type->hasDevice; }

Placement namedPlacement(std::string_view name) {
  return name == cudaName ? Placement::cuda(currentCudaIndex()) : Placement::cpu();
}

std::optional<Outcomes> legacyType(Call &call, const Effect &effect) {
  return call.done(typeOn(namedPlacement(effect.detail())));
}

std::optional<Outcomes> legacyTypeOfBackend(Call &call, const Effect &) {
  return call.done(typeOn(deviceOfBackend(call, call.arg(0))));
}

std::optional<Outcomes> legacyOptions(Call &call, const Effect &) {
  const Value type = call.object();
  return call.done(isType(type) ? optionsOf(call, type) : call.machine.unknownResult(call));
}

std::optional<Outcomes> legacySameType(Call &call, const Effect &) {
  const Value type = call.object();
  return call.done(isType(type) ? type : call.machine.unknownResult(call));
}

} // namespace

// c10/core/Backend.h: CPU and CUDA come first; the others name a layout too, or no device of ours.
Placement deviceOfBackend(const Call &call, const Value &backend) {
  const auto number = call.row.numberOf(backend);
  return number == 0   ? Placement::cpu()
         : number == 1 ? Placement::cuda(currentCudaIndex())
                       : Placement::unknown();
}

Value legacyTypeOf(Placement placement, const History &history) {
  if (!placement.isKnown())
    return unknownValue();
  if (placement.kind == PlacementKind::Cuda) // a type has no index
    placement.index = currentCudaIndex();
  return optionsValue(&placement, history);
}

Words legacyTypeWords() {
  return {{{"legacy_type", legacyType},
           {"legacy_type_of_backend", legacyTypeOfBackend},
           {"legacy_options", legacyOptions},
           {"legacy_same_type", legacySameType}},
          {},
          {}};
}

} // namespace devicetidy
