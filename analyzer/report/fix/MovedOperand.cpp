#include "analyzer/report/fix/MovedOperand.h"

#include "analyzer/models/Spelling.h"
#include "analyzer/report/source/ExpressionText.h"

#include <fmt/format.h>

namespace devicetidy {
namespace {

namespace spelling = models::spelling;

/// `text` as something a member can be called on.
std::string postfix(const std::string &text) {
  const std::vector<Token> tokens = tokenize(text);
  return isPostfix({tokens.data(), tokens.data() + tokens.size()}) ? text : fmt::format("({})", text);
}

} // namespace

std::string movedOperand(const Finding &finding) {
  const PlacedOperand &kept = finding.operands[0], &left = finding.operands[1];
  const auto isWritten = [](const PlacedOperand &each) { return each.isCode && !each.text.empty(); };
  if (!isWritten(kept) || !isWritten(left) || finding.site.inMacro || registeringStep(left) ||
      !finding.site.isTensor(left.where))
    return {};
  const bool isOnce = kept.text.find('(') == std::string::npos && finding.site.isTensor(kept.where);
  const std::string device =
      isOnce ? spelling::deviceOf(postfix(kept.text), ".") : spelling::device(kept.device);
  return device.empty() ? std::string() : spelling::move(postfix(left.text), device);
}

} // namespace devicetidy
