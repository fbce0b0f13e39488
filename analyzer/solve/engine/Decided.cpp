#include "analyzer/solve/engine/Decided.h"

#include "analyzer/facts/NameParts.h"
#include "analyzer/solve/domain/DeviceTerms.h"
#include "analyzer/solve/domain/TermOps.h"

#include <algorithm>

namespace devicetidy {
namespace {

constexpr std::string_view standard = "std";

// May what is decided outside the program have a part in `value`, an object of `type`?
bool restsOnOutside(const Types &types, const Row &row, const Value &value, Name type) {
  const auto isPart = [&](const Value &part) { return restsOnOutside(types, row, part, {}); };
  switch (value->kind) {
  case ValueKind::Unknown:
    return firstScope(type.view()) != standard || models::hasRole(types.templateOf(type).view(), "outside");
  case ValueKind::Scalar:
    return restsOnOutside(row.resolve(value->term));
  case ValueKind::List:
    return std::any_of(value->elements.begin(), value->elements.end(), isPart) ||
           std::any_of(value->summary.begin(), value->summary.end(), isPart);
  case ValueKind::Record:
    return value->origin || std::any_of(value->fields.begin(), value->fields.end(),
                                        [&](const auto &field) { return isPart(field.second); });
  case ValueKind::Tensor:
  case ValueKind::Device:
    return value->placement.kind == PlacementKind::Symbol;
  default:
    return false;
  }
}

} // namespace

bool isDecided(const Machine &machine, const Call &call) {
  const std::string_view name = call.fact.name.view();
  const bool asksOutside =
      models::hasRole(name, "outside") || (!call.fact.hasObject && models::hasRole(scopeOf(name), "outside"));
  const bool computes = firstScope(name) == standard ? !asksOutside : models::hasRole(name, "computes");
  if (!computes || call.fact.operands.empty())
    return false;
  for (std::size_t i = 0; i < call.fact.operands.size(); ++i) {
    const Address where = call.addressOf(i); // an std::istringstream that is read as a base of its
    const bool isObject = where.valid() && !where.path;
    const Name type = isObject ? machine.memory.info(where.root).type : call.fact.operands[i].type;
    if (restsOnOutside(machine.types, call.row, call.operand(i), type))
      return false;
  }
  return true;
}

Value notFollowed(const Types &types, const Function &callee, std::uint64_t key) {
  const Term call = bounded({textTerm(callee.id), intTerm(std::int64_t(key >> 1))});
  if (callee.resultType.empty()) // anything, in Python
    return withIdentity(call);
  const bool isNumber = types.classOf(callee.resultType) == TypeClass::Scalar && !callee.resultIsReference;
  return isNumber ? scalarValue(guess(call)) : unknownValue();
}

} // namespace devicetidy
