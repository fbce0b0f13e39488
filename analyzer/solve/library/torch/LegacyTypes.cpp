#include "analyzer/solve/library/torch/LegacyTypes.h"

#include "analyzer/solve/domain/NameParts.h"
#include "analyzer/solve/library/torch/Devices.h"

namespace devicetidy {
namespace {

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

Outcomes modelMethod(Call &call, std::string_view method) {
  const Value type = call.object();
  if (method == "toBackend")
    return call.done(typeOn(deviceOfBackend(call, call.arg(0))));
  if (method == "cpu")
    return call.done(typeOn(Placement::cpu()));
  if (method == "cuda")
    return call.done(typeOn(Placement::cuda(currentCudaIndex())));
  if (!is(type, ValueKind::Options) || !type->hasDevice)
    return call.done(call.machine.unknownResult(call));
  if (method == "toScalarType")
    return call.done(type);
  if (method == "options" || startsWith(method, "operator "))
    return call.done(optionsOf(call, type));
  if (method == "is_cuda")
    return call.done(scalarValue(isCudaTerm(call.row.resolve(type->placement))));
  if (method == "device_type")
    return call.done(deviceValue(type->placement, type->history));
  return call.done(call.machine.unknownResult(call));
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

std::optional<Outcomes> modelLegacyTypes(Call &call) {
  const std::string_view name = call.fact.name.view();
  if (startsWith(name, "at::DeprecatedTypeProperties::") && call.fact.hasObject)
    return modelMethod(call, lastPart(name));
  const models::Api api = models::api(name);
  if (api.role != "legacy_type")
    return std::nullopt;
  return call.done(typeOn(api.detail == "backend" ? deviceOfBackend(call, call.operand(0))
                          : api.detail == "cuda"  ? Placement::cuda(currentCudaIndex())
                                                  : Placement::cpu()));
}

} // namespace devicetidy
