#include "analyzer/report/Describe.h"

#include "analyzer/report/KeptResult.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace devicetidy {
namespace {

/// "cpu", "cuda" or "cuda:1", as opposed to a device only the program knows ("device", "cuda:rank").
bool isLiteralDevice(std::string_view device) {
  static constexpr std::array<std::string_view, 10> types = {"cpu", "cuda", "hip",    "mps",    "xpu",
                                                             "xla", "meta", "mkldnn", "vulkan", "hpu"};
  const std::string_view type = device.substr(0, device.find(':'));
  const std::string_view index = device.substr(std::min(device.size(), type.size() + 1));
  return std::find(types.begin(), types.end(), type) != types.end() &&
         index.find_first_not_of("0123456789") == std::string_view::npos;
}

/// An index that is computed often wears a cast: "cuda:static_cast<c10::DeviceIndex>(rank)".
std::string withoutCast(const std::string &device) {
  static constexpr std::string_view cast = "static_cast<";
  const std::size_t open = device.find(cast), close = device.find(">(", open);
  if (open == std::string::npos || close == std::string::npos || device.back() != ')')
    return device;
  return device.substr(0, open) + device.substr(close + 2, device.size() - close - 3);
}

} // namespace

std::string deviceText(const std::string &written) {
  if (written.empty())
    return "an unknown device";
  const std::string device = withoutCast(written);
  return isLiteralDevice(device) ? device : fmt::format("'{}'", device);
}

namespace {

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
  std::string_view subject = step.subject;
  if (subject.size() > 2 &&
      subject.substr(subject.size() - 2) == "->") // of a smart pointer: `net->to(device)`
    subject.remove_suffix(2);
  return subject.empty() ? std::string(fallback) : fmt::format("'{}'", subject);
}

std::string onDevice(const Step &step) {
  return step.device.empty() ? std::string() : fmt::format(" on {}", deviceText(step.device));
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
    // The stories of two operands often share their first steps.
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

/// The story of each tensor up to the operation that it spoils.
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
    add(storyOf(operand))
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

std::vector<Step> storyOf(const PlacedOperand &operand) {
  std::vector<Step> steps = operand.witness;
  if (steps.size() == 1 && steps[0].kind == StepKind::Created && operand.text.find('(') == std::string::npos)
    steps[0].subject = operand.text;
  return steps;
}

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
    if (step.subject.find("::") != std::string::npos) // the factory that makes it
      return fmt::format("created{} by '{}' here", onDevice(step), step.subject);
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
  case StepKind::Named:
    return fmt::format("{} is named here", deviceText(step.device));
  case StepKind::Discarded:
    return fmt::format("the result of moving {} is thrown away here", subjectOr(step, "it"));
  case StepKind::Dispatched:
    return fmt::format("{} is a parameter of a function that is registered for {}",
                       subjectOr(step, "the tensor"), deviceText(step.device));
  }
  return {};
}

Diagnostic describe(const Finding &finding, const CheckInfo &info, SourceCache &sources) {
  const Advice advice =
      finding.fields.count("method") ? keptResult(finding, sources) : Advice{{}, finding.fix};
  const std::map<std::string, std::string> fields = templateFields(finding, advice);
  Diagnostic result;
  result.check = finding.check;
  result.where = finding.where;
  result.message = fillTemplate(info.message, fields);
  result.level = finding.level;
  result.function = finding.site.function;
  result.flows = flowsOf(finding);
  NoteList notes, related;
  for (const PlacedOperand &operand : finding.operands) {
    if (operand.where.valid())
      result.ranges.push_back(operand.where);
    notes.add(storyOf(operand));
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
  // Advice with an expression needs the expression; one without stands by itself.
  const bool wantsExpression = advised.find("{fix}") != std::string_view::npos;
  if (!wantsExpression || !fields.at("fix").empty())
    addToBoth(finding.fixAt.valid() ? finding.fixAt : finding.where, fillTemplate(advised, fields), true);
  result.notes = notes.take();
  result.related = related.take();
  return result;
}

} // namespace devicetidy
