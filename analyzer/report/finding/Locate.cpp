#include "analyzer/report/finding/Locate.h"

#include <array>
#include <utility>

namespace devicetidy {
namespace {

constexpr std::size_t perFinding = 4;

/// Of the operation, of the call that makes or registers what was left behind, of a module that was, and of
/// what put the other operand on its device.
std::array<SiteQuestion, perFinding> questionsOf(const Finding &finding) {
  SiteQuestion question, made, module, kept;
  question.where = finding.where;
  question.fixAt = finding.fixAt;
  for (const PlacedOperand &operand : finding.operands) {
    question.operands.push_back(operand.where);
    for (const Step &step : operand.history)
      question.history.push_back(step.where);
  }
  const auto className = finding.fields.find("class"), member = finding.fields.find("member");
  if (className != finding.fields.end() && member != finding.fields.end()) {
    question.className = className->second;
    question.member = member->second;
  }
  if (!finding.operands.empty()) {
    const PlacedOperand &left = finding.operands.back();
    const Step *registered = registeringStep(left);
    if (const Step *step = registered ? registered : decidingStep(left))
      made.where = step->where;
    if (const Step *step = decidingStep(finding.operands.front()))
      kept.where = step->where;
  }
  module.where = usedModule(finding).where;
  return {question, made, module, kept};
}

} // namespace

void locate(std::vector<Finding> &findings, std::size_t first, const Program &program) {
  std::vector<SiteQuestion> questions;
  for (std::size_t i = first; i < findings.size(); ++i)
    for (SiteQuestion &question : questionsOf(findings[i]))
      questions.push_back(std::move(question));
  std::vector<CodeSite> sites = sitesOf(questions, program);
  for (std::size_t i = 0; i < sites.size(); i += perFinding) {
    Finding &finding = findings[first + i / perFinding];
    finding.site = std::move(sites[i]);
    finding.madeSite = std::move(sites[i + 1]);
    finding.moduleSite = std::move(sites[i + 2]);
    finding.keptSite = std::move(sites[i + 3]);
  }
}

} // namespace devicetidy
