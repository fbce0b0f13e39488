#include "analyzer/report/Describe.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace devicetidy {
namespace {

/// "cpu", "cuda" or "cuda:1", as opposed to a device only the program knows ("device", "devices.back()").
bool isLiteralDevice(std::string_view device) {
  static constexpr std::array<std::string_view, 10> types = {"cpu", "cuda", "hip",    "mps",    "xpu",
                                                             "xla", "meta", "mkldnn", "vulkan", "hpu"};
  const std::string_view type = device.substr(0, device.find(':'));
  return std::find(types.begin(), types.end(), type) != types.end();
}

std::string deviceText(const std::string &device) {
  if (device.empty())
    return "an unknown device";
  return isLiteralDevice(device) ? device : fmt::format("'{}'", device);
}

/// "cuda" beside "cuda:1" is the current device; alone it needs no comment.
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

std::string subjectOr(const Step &step, std::string_view fallback) {
  return step.subject.empty() ? std::string(fallback) : fmt::format("'{}'", step.subject);
}

std::string onDevice(const Step &step) {
  return step.device.empty() ? std::string() : fmt::format(" on {}", deviceText(step.device));
}

std::map<std::string, std::string> templateFields(const Finding &finding) {
  std::map<std::string, std::string> fields = finding.fields;
  fields.emplace("operation", finding.operation);
  fields.emplace("gets", finding.level == Level::Definite ? "gets" : "can get");
  fields.emplace("fix", finding.fix);
  if (fields.count("device"))
    fields["device"] = deviceText(fields["device"]);
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
  void add(Location where, std::string text) {
    if (!where.valid() || text.empty())
      return;
    // The stories of two operands often share their first steps.
    const auto same = [&](const Note &note) { return note.where == where && note.text == text; };
    if (std::none_of(notes.begin(), notes.end(), same))
      notes.push_back({where, std::move(text)});
  }
  void add(const std::vector<Step> &steps) {
    for (const Step &step : steps)
      add(step.where, describeStep(step));
  }
  std::vector<Note> take() { return std::move(notes); }

private:
  std::vector<Note> notes;
};

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

std::string describeStep(const Step &step) {
  switch (step.kind) {
  case StepKind::Created:
    return fmt::format("{} is created{} here", subjectOr(step, "the tensor"), onDevice(step));
  case StepKind::Moved:
    return fmt::format("{} is moved to {} here", subjectOr(step, "the tensor"), deviceText(step.device));
  case StepKind::Inherited:
    return step.device.empty() ? fmt::format("takes the device of {} here", subjectOr(step, "its operand"))
                               : fmt::format("takes the device of {} here, {}",
                                             subjectOr(step, "its operand"), deviceText(step.device));
  case StepKind::ModuleMoved:
    return fmt::format("model {} is moved to {} here", subjectOr(step, "this"), deviceText(step.device));
  case StepKind::ModuleMade:
    return fmt::format("model {} is made here, its parameters{}", subjectOr(step, "this"), onDevice(step));
  case StepKind::Loaded:
    return fmt::format("{} is loaded{} here", subjectOr(step, "the tensor"), onDevice(step));
  case StepKind::Parameter:
    return fmt::format("{} is a parameter: its device is the caller's choice", subjectOr(step, "the tensor"));
  case StepKind::Member:
    return fmt::format("{} is a member: its device is chosen elsewhere", subjectOr(step, "the tensor"));
  case StepKind::Chosen:
    return fmt::format("{} is chosen at run time here",
                       step.subject.empty() ? deviceText(step.device) : subjectOr(step, ""));
  case StepKind::Passed:
    return fmt::format("passed as {} here", subjectOr(step, "an argument"));
  case StepKind::Returned:
    return fmt::format("returned from {} here", subjectOr(step, "the function"));
  case StepKind::Stored:
    return fmt::format("stored in {} here", subjectOr(step, "a member"));
  }
  return {};
}

Diagnostic describe(const Finding &finding, const CheckInfo &info) {
  const std::map<std::string, std::string> fields = templateFields(finding);
  Diagnostic result;
  result.check = finding.check;
  result.where = finding.where;
  result.message = fillTemplate(info.message, fields);
  NoteList notes;
  for (const PlacedOperand &operand : finding.operands) {
    if (operand.where.valid())
      result.ranges.push_back(operand.where);
    notes.add(operand.witness);
  }
  notes.add(finding.origin);
  for (const RelatedPlace &place : finding.related)
    notes.add(place.where, fillTemplate(noteTemplate(info, place.key), fields));
  for (const CallSite &call : finding.callers)
    notes.add(call.where, fmt::format("reached from this call of '{}'", call.function));
  // A fix with an expression needs the expression; one without stands by itself.
  const bool wantsExpression = info.fix.find("{fix}") != std::string_view::npos;
  if (!wantsExpression || !finding.fix.empty())
    notes.add(finding.fixAt.valid() ? finding.fixAt : finding.where, fillTemplate(info.fix, fields));
  result.notes = notes.take();
  return result;
}

} // namespace devicetidy
