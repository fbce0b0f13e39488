#include "analyzer/report/diagnostic/Describe.h"
#include "analyzer/facts/NameParts.h"

#include "analyzer/report/diagnostic/Advice.h"
#include "analyzer/report/diagnostic/PythonText.h"
#include "analyzer/report/diagnostic/Templates.h"
#include "analyzer/report/finding/StepText.h"

#include <fmt/format.h>

#include <algorithm>

namespace devicetidy {
namespace {

/// "cuda" next to "cuda:1" is the current device; alone it needs no explanation.
std::string deviceBeside(const std::string &device, const std::string &other) {
  if (device == "cuda" && other.rfind("cuda:", 0) == 0)
    return "cuda (the current device)";
  return deviceText(device);
}

/// A class as the user knows it: which file its unnamed namespace is in is ours to know.
std::string withoutFiles(std::string name) {
  static constexpr std::string_view mark = "(anonymous namespace in ";
  for (std::size_t at; (at = name.find(mark)) != std::string::npos;) {
    const std::size_t end = name.find(")::", at);
    if (end == std::string::npos)
      break;
    name.erase(at, end + 3 - at);
  }
  return withoutPath(name);
}

std::map<std::string, std::string> templateFields(const Finding &finding) {
  std::map<std::string, std::string> fields = finding.fields;
  fields.emplace("operation", finding.operation);
  fields.emplace("gets", finding.level == Level::Definite ? "gets" : "can get");
  if (fields.count("class"))
    fields["class"] = withoutFiles(fields["class"]);
  if (finding.operands.size() == 1) {
    fields.emplace("first", operandText(finding.operands[0]));
    fields.emplace("firstDevice", finding.operands[0].device);
  }
  if (finding.operands.size() == 2) {
    const PlacedOperand &first = finding.operands[0], &second = finding.operands[1];
    fields.emplace("first", operandText(first));
    fields.emplace("second", operandText(second));
    fields.emplace("firstDevice", deviceBeside(first.device, second.device));
    fields.emplace("secondDevice", deviceBeside(second.device, first.device));
  }
  if (const auto says = fields.find("says"); says != fields.end()) // has fields of its own
    says->second = fillTemplate(says->second, fields);
  return fields;
}

class NoteList {
public:
  void add(Location where, std::string text, bool isAdvice = false) {
    if (!where.valid() || text.empty())
      return;
    // The histories of two operands often share their first steps.
    const auto same = [&](const Note &note) { return note.where == where && note.text == text; };
    if (std::none_of(notes.begin(), notes.end(), same))
      notes.push_back({where, std::move(text), isAdvice});
  }
  void add(const std::vector<Step> &steps) {
    for (const Step &step : steps)
      add(step.where, describeStep(step));
  }
  std::vector<Note> take() { return std::move(notes); }

private:
  std::vector<Note> notes;
};

/// The history of each tensor up to the operation that fails.
std::vector<std::vector<Note>> flowsOf(const Finding &finding, SourceCache &sources) {
  std::vector<std::vector<Note>> flows;
  const auto add = [&](const std::vector<Step> &steps) -> std::vector<Note> & {
    std::vector<Note> &flow = flows.emplace_back();
    for (const Step &step : steps)
      if (step.where.valid())
        flow.push_back({step.where, describeStep(step), false});
    return flow;
  };
  for (const PlacedOperand &operand : finding.operands)
    add(historyOf(operand, sources))
        .push_back({operand.where.valid() ? operand.where : finding.where,
                    fmt::format("{} on {} reaches '{}' here", operandText(operand),
                                deviceText(operand.device), finding.operation),
                    false});
  if (!finding.origin.empty())
    add(finding.origin).push_back({finding.where, "reaches this call", false});
  return flows;
}

} // namespace

Diagnostic describe(const Finding &finding, const CheckInfo &info, SourceCache &sources) {
  const std::map<std::string, std::string> fields = templateFields(finding);
  Diagnostic result;
  result.check = finding.check;
  result.where = finding.where;
  result.cause = finding.cause;
  result.message = fillTemplate(info.message, fields);
  result.level = finding.level;
  result.function = finding.site.function;
  result.flows = flowsOf(finding, sources);
  NoteList notes, related;
  for (const PlacedOperand &operand : finding.operands) {
    if (operand.where.valid())
      result.ranges.push_back(operand.where);
    notes.add(historyOf(operand, sources));
  }
  notes.add(finding.origin);
  const auto addToBoth = [&](const Location &where, const std::string &text, bool isAdvice = false) {
    notes.add(where, text, isAdvice);
    related.add(where, text, isAdvice);
  };
  const auto addRelated = [&](bool isAdvice) {
    for (const RelatedPlace &place : finding.related)
      if (place.isAdvice == isAdvice)
        addToBoth(place.where, fillTemplate(noteTemplate(info, place.key), fields), isAdvice);
  };
  addRelated(false);
  for (const CallSite &call : finding.callers)
    addToBoth(call.where, fmt::format("reached from this call of '{}'", call.function));
  addRelated(true);
  const Advice advice = adviseOn(finding, info, fields, sources);
  addToBoth(advice.where, advice.text, true);
  result.notes = notes.take();
  result.related = related.take();
  speakPython(result);
  return result;
}

} // namespace devicetidy
