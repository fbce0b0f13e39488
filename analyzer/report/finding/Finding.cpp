#include "analyzer/report/finding/Finding.h"

#include <algorithm>
#include <tuple>

namespace devicetidy {
namespace {

/// What two findings have in common when they are the same finding, seen twice.
std::vector<std::string> statement(const Finding &finding) {
  std::vector<std::string> parts{finding.operation};
  for (const PlacedOperand &operand : finding.operands)
    parts.push_back(operand.text);
  for (const auto &[name, value] : finding.fields) {
    if (name == "device" || name == "initialiser") // what another program may do otherwise
      continue;
    parts.push_back(name);
    parts.push_back(value);
  }
  return parts;
}

/// What is left to order findings that are the same, so that the one that is kept never depends on the
/// order in which programs were solved.
std::vector<std::string> circumstances(const Finding &finding) {
  std::vector<std::string> parts;
  for (const PlacedOperand &operand : finding.operands)
    parts.push_back(operand.device);
  for (const auto &[name, value] : finding.fields)
    parts.push_back(value);
  for (const CallSite &call : finding.callers)
    parts.push_back(call.function + ':' + std::to_string(call.where.line));
  return parts;
}

bool before(const Finding &a, const Finding &b) {
  if (a.where != b.where)
    return a.where < b.where;
  if (a.check != b.check)
    return a.check < b.check;
  const std::vector<std::string> left = statement(a), right = statement(b);
  if (left != right)
    return left < right;
  // The highest level first, then the one with the fewest callers.
  const auto first = std::make_tuple(a.level, a.cause, a.callers.size()),
             second = std::make_tuple(b.level, b.cause, b.callers.size());
  return first != second ? first < second : circumstances(a) < circumstances(b);
}

// Callers make mistakes of their own, but not of what is wrong whoever calls.
bool same(const Finding &a, const Finding &b) {
  return a.where == b.where && a.check == b.check && statement(a) == statement(b) &&
         (a.cause == b.cause || !a.cause.valid() || !b.cause.valid());
}

} // namespace

UsedModule usedModule(const Finding &finding) {
  if (finding.operands.empty())
    return {};
  UsedModule used{finding.operands.back().module, finding.where};
  for (const CallSite &call : finding.callers) {
    if (!call.isOfModule)
      break;
    if (!call.module.empty())
      used = {call.module, call.where};
  }
  return used;
}

bool touches(const Finding &finding, const std::set<Name> &files) {
  const auto isIn = [&files](const auto &place) { return files.count(place.where.file) != 0; };
  const auto anyIn = [&isIn](const auto &places) { return std::any_of(places.begin(), places.end(), isIn); };
  return isIn(finding) || anyIn(finding.origin) || anyIn(finding.related) || anyIn(finding.callers) ||
         std::any_of(finding.operands.begin(), finding.operands.end(),
                     [&](const PlacedOperand &operand) { return isIn(operand) || anyIn(operand.history); });
}

void sortAndMerge(std::vector<Finding> &findings) {
  std::sort(findings.begin(), findings.end(), before);
  std::vector<Finding> kept;
  for (Finding &finding : findings) {
    const auto isTold = [&](const Finding &other) { return same(other, finding); };
    const auto here = std::find_if(kept.rbegin(), kept.rend(),
                                   [&](const Finding &other) { return other.where != finding.where; });
    if (std::none_of(here.base(), kept.end(), isTold))
      kept.push_back(std::move(finding));
  }
  findings = std::move(kept);
}

} // namespace devicetidy
