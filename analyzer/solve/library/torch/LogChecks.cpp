#include "analyzer/solve/library/torch/LogChecks.h"

#include "analyzer/solve/domain/Registers.h"
#include "analyzer/solve/engine/Operators.h"

namespace devicetidy {

std::optional<Outcomes> modelLogChecks(const Call &call) {
  const models::Api api = models::api(call.fact.name.view());
  if (api.role == "log_value" && call.argCount() == 1)
    return call.done(registerOf(call.row, call.fact.operands[0].reg));
  if (api.role != "log_comparison" || call.argCount() < 2)
    return std::nullopt;
  // The result is the text of the message: null when there is nothing to say.
  const Types &types = call.machine.types;
  const bool areIntegers =
      types.isInteger(call.fact.operands[0].type) && types.isInteger(call.fact.operands[1].type);
  const Value holds = operatorValue(call.row, Name(api.detail), {call.arg(0), call.arg(1)}, areIntegers);
  return call.done(is(holds, ValueKind::Scalar) ? scalarValue(notTerm(holds->term))
                                                : call.machine.unknownResult(call));
}

bool isFatalMessage(const Call &call, const std::vector<Value> &args) {
  const models::Api api = models::api(call.fact.type.view());
  if (api.role != "fatal_log" || args.empty())
    return false;
  const auto severity = call.row.numberOf(args.back());
  return severity && std::to_string(*severity) == api.detail;
}

} // namespace devicetidy
