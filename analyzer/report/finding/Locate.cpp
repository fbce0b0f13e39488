#include "analyzer/report/finding/Locate.h"

#include <utility>

namespace devicetidy {
namespace {

SiteQuestion questionOf(const Finding &finding) {
  SiteQuestion question;
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
  return question;
}

} // namespace

void locate(std::vector<Finding> &findings, std::size_t first, const Program &program) {
  std::vector<SiteQuestion> questions;
  for (std::size_t i = first; i < findings.size(); ++i)
    questions.push_back(questionOf(findings[i]));
  std::vector<CodeSite> sites = sitesOf(questions, program);
  for (std::size_t i = 0; i < sites.size(); ++i)
    findings[first + i].site = std::move(sites[i]);
}

} // namespace devicetidy
