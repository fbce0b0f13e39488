//===- LogChecks.cpp - CHECK_EQ and its like, and messages that end the program ---===//
#include "analyzer/solve/domain/Registers.h"
#include "analyzer/solve/engine/Operators.h"
#include "analyzer/solve/library/torch/Words.h"

namespace devicetidy {
namespace {

using models::Effect;

// The result is the text of the message: null when there is nothing to say.
std::optional<Outcomes> compareForLog(Call &call, const Effect &effect) {
  if (call.argCount() < 2)
    return std::nullopt;
  const Types &types = call.machine.types;
  const bool areIntegers =
      types.isInteger(call.fact.operands[0].type) && types.isInteger(call.fact.operands[1].type);
  const Value holds = operatorValue(call.row, Name(effect.detail()), {call.arg(0), call.arg(1)}, areIntegers);
  return call.done(is(holds, ValueKind::Scalar) ? scalarValue(notTerm(holds->term))
                                                : call.machine.unknownResult(call));
}

// A message of the given severity: its destructor ends the program.
std::optional<Outcomes> makeMessage(const Making &making, const Effect &effect) {
  const auto severity =
      making.args.empty() ? std::nullopt : making.call.row.numberOf(making.args.back().value);
  if (severity && !effect.args.empty() && *severity == effect.args[0].number)
    return Outcomes();
  return std::nullopt;
}

} // namespace

Words logCheckWords() { return {{{"compare_for_log", compareForLog}}, {}, {{"log_message", makeMessage}}}; }

} // namespace devicetidy
