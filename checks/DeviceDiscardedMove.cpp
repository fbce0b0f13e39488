#include "checks/DeviceDiscardedMove.h"

namespace devicetidy {

/// A statement that keeps the result. What the call was made on may be no variable: `logits.detach().cpu();`.
static std::string keepResult(const DiscardedMove &move) {
  const bool isTemporary = !move.tensor.empty() && move.tensor.back() == ')';
  return (isTemporary ? "auto moved" : move.tensor) + " = " + move.tensor + "." + move.method + "{arguments}";
}

void DeviceDiscardedMove::run(const Solution &solution, const CheckContext &context,
                              std::vector<Finding> &findings) const {
  for (const DiscardedMove &move : solution.discardedMoves) {
    if (move.changesDtypeOnly && context.option(name(), move.where.file, "WarnOnDtypeOnly") == "false")
      continue;
    Finding finding;
    finding.check = name();
    finding.where = move.where;
    finding.fields = {{"tensor", move.tensor}, {"method", move.method}};
    finding.fix = keepResult(move);
    finding.fixAt = move.where;
    findings.push_back(std::move(finding));
  }
}

} // namespace devicetidy
