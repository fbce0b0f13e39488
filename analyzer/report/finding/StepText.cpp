#include "analyzer/report/finding/StepText.h"

#include "analyzer/report/source/Tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace devicetidy {
namespace {

/// Is the device a description, as "a device chosen at run time" is?
bool isPhrase(const std::string &device) {
  return device.empty() || device.rfind("a ", 0) == 0 || device.rfind("the ", 0) == 0;
}

/// Is `name`, which may have several parts, in `line`, and not as a part of another name?
bool mentions(std::string_view line, const std::string &name) {
  const std::vector<Token> words = tokenize(line), parts = tokenize(name);
  const auto same = [](const Token &a, const Token &b) { return a.text == b.text; };
  return !parts.empty() &&
         std::search(words.begin(), words.end(), parts.begin(), parts.end(), same) != words.end();
}

/// A computed index often has a cast: "cuda:static_cast<c10::DeviceIndex>(rank)".
std::string withoutCast(const std::string &device) {
  static constexpr std::string_view cast = "static_cast<";
  const std::size_t open = device.find(cast), close = device.find(">(", open);
  if (open == std::string::npos || close == std::string::npos || device.back() != ')')
    return device;
  return device.substr(0, open) + device.substr(close + 2, device.size() - close - 3);
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

} // namespace

bool isLiteralDevice(std::string_view device) {
  static constexpr std::array<std::string_view, 10> types = {"cpu", "cuda", "hip",    "mps",    "xpu",
                                                             "xla", "meta", "mkldnn", "vulkan", "hpu"};
  const std::string_view type = device.substr(0, device.find(':'));
  const std::string_view index = device.substr(std::min(device.size(), type.size() + 1));
  return std::find(types.begin(), types.end(), type) != types.end() &&
         index.find_first_not_of("0123456789") == std::string_view::npos;
}

std::string operandText(const PlacedOperand &operand) {
  if (operand.text.empty())
    return "a tensor";
  return operand.isCode ? fmt::format("'{}'", operand.text) : operand.text;
}

std::string deviceText(const std::string &written) {
  if (isPhrase(written))
    return written.empty() ? "an unknown device" : written;
  const std::string device = withoutCast(written);
  return isLiteralDevice(device) ? device : fmt::format("'{}'", device);
}

std::vector<Step> toldSteps(std::vector<Step> steps) {
  const auto saysNothing = [](const Step &step) { return describeStep(step).empty(); };
  steps.erase(std::remove_if(steps.begin(), steps.end(), saysNothing), steps.end());
  return steps;
}

std::vector<Step> historyOf(const PlacedOperand &operand, SourceCache &sources) {
  std::vector<Step> steps = toldSteps(operand.history);
  if (operand.isCode && steps.size() == 1 && steps[0].kind == StepKind::Created &&
      operand.text.find('(') == std::string::npos &&
      mentions(sources.line(steps[0].where.file, steps[0].where.line).value_or(""), operand.text))
    steps[0].subject = operand.text;
  return steps;
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
    return fmt::format("model {} is created here with its parameters{}", subjectOr(step, "this"),
                       onDevice(step));
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
    return fmt::format("the result of moving {} is discarded here", subjectOr(step, "it"));
  case StepKind::LeftBehind:
    return fmt::format("stays where it was when {} is moved to {} here", subjectOr(step, "the rest"),
                       deviceText(step.device));
  case StepKind::Registered: // with a module that was not moved before it says nothing of the device
    return step.device.empty() ? std::string()
                               : fmt::format("{} is registered here, after the module was moved to {}",
                                             subjectOr(step, "it"), deviceText(step.device));
  case StepKind::Dispatched:
    return fmt::format("{} is a parameter of a function that is registered for {}",
                       subjectOr(step, "the tensor"), deviceText(step.device));
  }
  return {};
}

} // namespace devicetidy
