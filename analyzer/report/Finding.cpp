#include "analyzer/report/Finding.h"

#include <algorithm>
#include <tuple>

namespace devicetidy {
namespace {

/// What two findings have in common when they are the same finding, seen twice.
std::vector<std::string> statement(const Finding &finding) {
  std::vector<std::string> parts{finding.operation};
  for (const PlacedOperand &operand : finding.operands) {
    parts.push_back(operand.text);
    parts.push_back(operand.device);
  }
  for (const auto &[name, value] : finding.fields) {
    parts.push_back(name);
    parts.push_back(value);
  }
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
  // The surest first, then the one with the shortest story.
  return std::make_tuple(a.level, a.callers.size()) < std::make_tuple(b.level, b.callers.size());
}

bool same(const Finding &a, const Finding &b) {
  return a.where == b.where && a.check == b.check && statement(a) == statement(b);
}

} // namespace

void sortAndMerge(std::vector<Finding> &findings) {
  std::sort(findings.begin(), findings.end(), before);
  findings.erase(std::unique(findings.begin(), findings.end(), same), findings.end());
}

} // namespace devicetidy
