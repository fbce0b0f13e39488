#include "analyzer/report/diagnostic/Describe.h"

#include "analyzer/report/finding/StepText.h"
#include "analyzer/report/fix/KeptResult.h"

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

/// Source text in quotes; "parameters of fc1" is a description and gets quotes around the name alone.
std::string operandText(const std::string &text) {
  static constexpr std::string_view parameters = "parameters of ";
  if (text.rfind(parameters, 0) == 0)
    return fmt::format("the parameters of '{}'", text.substr(parameters.size()));
  return text.empty() ? std::string("a tensor") : fmt::format("'{}'", text);
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
  return name;
}

std::map<std::string, std::string> templateFields(const Finding &finding, const Advice &advice) {
  std::map<std::string, std::string> fields = finding.fields;
  fields.emplace("operation", finding.operation);
  fields.emplace("gets", finding.level == Level::Definite ? "gets" : "can get");
  fields.emplace("fix", advice.code);
  if (fields.count("class"))
    fields["class"] = withoutFiles(fields["class"]);
  if (finding.operands.size() == 1) {
    fields.emplace("first", operandText(finding.operands[0].text));
    fields.emplace("firstDevice", finding.operands[0].device);
  }
  if (finding.operands.size() == 2) {
    const PlacedOperand &first = finding.operands[0], &second = finding.operands[1];
    fields.emplace("first", operandText(first.text));
    fields.emplace("second", operandText(second.text));
    fields.emplace("firstDevice", deviceBeside(first.device, second.device));
    fields.emplace("secondDevice", deviceBeside(second.device, first.device));
  }
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
std::vector<std::vector<Note>> flowsOf(const Finding &finding) {
  std::vector<std::vector<Note>> flows;
  const auto add = [&](const std::vector<Step> &steps) -> std::vector<Note> & {
    std::vector<Note> &flow = flows.emplace_back();
    for (const Step &step : steps)
      if (step.where.valid())
        flow.push_back({step.where, describeStep(step), false});
    return flow;
  };
  for (const PlacedOperand &operand : finding.operands)
    add(historyOf(operand))
        .push_back({operand.where.valid() ? operand.where : finding.where,
                    fmt::format("{} on {} reaches '{}' here", operandText(operand.text),
                                deviceText(operand.device), finding.operation),
                    false});
  if (!finding.origin.empty())
    add(finding.origin).push_back({finding.where, "reaches this call", false});
  return flows;
}

std::string_view noteTemplate(const CheckInfo &info, const std::string &key) {
  for (const NoteTemplate &note : info.notes)
    if (note.key == key)
      return note.text;
  return {};
}

} // namespace

std::string fillTemplate(std::string_view text, const std::map<std::string, std::string> &fields) {
  std::string result;
  while (!text.empty()) {
    const std::size_t open = text.find('{');
    result += text.substr(0, open);
    if (open == std::string_view::npos)
      break;
    const std::size_t close = text.find('}', open);
    const auto field = close == std::string_view::npos
                           ? fields.end()
                           : fields.find(std::string(text.substr(open + 1, close - open - 1)));
    if (field == fields.end()) {
      result += '{';
      text.remove_prefix(open + 1);
      continue;
    }
    result += field->second;
    text.remove_prefix(close + 1);
  }
  return result;
}

Diagnostic describe(const Finding &finding, const CheckInfo &info, SourceCache &sources) {
  const Advice advice =
      finding.fields.count("method") ? keptResult(finding, sources) : Advice{{}, finding.fix};
  const std::map<std::string, std::string> fields = templateFields(finding, advice);
  Diagnostic result;
  result.check = finding.check;
  result.where = finding.where;
  result.cause = finding.cause;
  result.message = fillTemplate(info.message, fields);
  result.level = finding.level;
  result.function = finding.site.function;
  result.flows = flowsOf(finding);
  NoteList notes, related;
  for (const PlacedOperand &operand : finding.operands) {
    if (operand.where.valid())
      result.ranges.push_back(operand.where);
    notes.add(historyOf(operand));
  }
  notes.add(finding.origin);
  const auto addToBoth = [&](const Location &where, const std::string &text, bool isAdvice = false) {
    notes.add(where, text, isAdvice);
    related.add(where, text, isAdvice);
  };
  for (const RelatedPlace &place : finding.related)
    addToBoth(place.where, fillTemplate(noteTemplate(info, place.key), fields));
  for (const CallSite &call : finding.callers)
    addToBoth(call.where, fmt::format("reached from this call of '{}'", call.function));
  const std::string_view advised = advice.key.empty() ? info.fix : noteTemplate(info, advice.key);
  // Advice with an expression needs the expression; advice without one is complete.
  const bool wantsExpression = advised.find("{fix}") != std::string_view::npos;
  if (!wantsExpression || !fields.at("fix").empty())
    addToBoth(finding.fixAt.valid() ? finding.fixAt : finding.where, fillTemplate(advised, fields), true);
  result.notes = notes.take();
  result.related = related.take();
  return result;
}

} // namespace devicetidy
