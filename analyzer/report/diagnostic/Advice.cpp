#include "analyzer/report/diagnostic/Advice.h"

#include "analyzer/report/diagnostic/Templates.h"
#include "analyzer/report/finding/StepText.h"
#include "analyzer/report/fix/KeptResult.h"
#include "analyzer/report/fix/MovedOperand.h"

#include <fmt/format.h>

namespace devicetidy {
namespace {

/// What belongs to a module is moved with it.
Advice adviseToMoveModule(const Finding &finding, const std::string &there) {
  const UsedModule used = usedModule(finding);
  return {used.where, used.name.empty() ? fmt::format("move the module to {} before this", there)
                                        : fmt::format("move '{}' to {} before this", used.name, there)};
}

/// In words, where the device of what was left behind was decided.
Advice adviseOnCause(const Finding &finding) {
  const PlacedOperand &kept = finding.operands[0], &left = finding.operands[1];
  // What names a device at the operation need not name it elsewhere.
  const bool isLiteral = isLiteralDevice(kept.device);
  const std::string there = isLiteral ? kept.device : fmt::format("the device of {}", operandText(kept));
  const Step *cause = decidingStep(left), *move = decidingStep(kept);
  const Step *registered = registeringStep(left);
  const bool hasCause = cause && cause->where.valid();
  if (registered && !registered->device.empty())
    return {registered->where, "register it before the module is moved, or move the module again after this"};
  if (hasCause && cause->kind == StepKind::Loaded)
    return {cause->where, fmt::format("load it on {0}, or move it to {0} before it is used", there)};
  if (!left.module.empty() || registered)
    return adviseToMoveModule(finding, there);
  if (!left.isCode && move && move->where.valid() && move->kind == StepKind::ModuleMoved &&
      (!cause || cause->kind != StepKind::ModuleMoved))
    return {move->where, fmt::format("move the model before {} is made", left.text)};
  if (hasCause && cause->kind == StepKind::Created && isLiteral)
    return {cause->where, fmt::format("create it on {0}, or move it to {0} before it is used", there)};
  if (cause && cause->kind == StepKind::Parameter)
    return {finding.where,
            fmt::format("let the callers pass {} on {}, or move it before this", operandText(left), there)};
  return {finding.where, fmt::format("move {} to {} before this", operandText(left), there)};
}

} // namespace

Advice adviseOn(const Finding &finding, const CheckInfo &info, std::map<std::string, std::string> fields,
                SourceCache &sources) {
  std::string_view sentence = info.fix;
  std::string &code = fields["fix"] = finding.fix;
  if (finding.fields.count("method")) {
    const KeptResult kept = keptResult(finding, sources);
    code = kept.code;
    if (!kept.key.empty())
      sentence = noteTemplate(info, kept.key);
  } else if (code.empty() && finding.operands.size() == 2) {
    code = movedOperand(finding);
  }
  const bool wantsCode = sentence.find("{fix}") != std::string_view::npos;
  if (wantsCode && code.empty())
    return finding.operands.size() == 2 ? adviseOnCause(finding) : Advice();
  return {finding.fixAt.valid() ? finding.fixAt : finding.where, fillTemplate(sentence, fields)};
}

} // namespace devicetidy
