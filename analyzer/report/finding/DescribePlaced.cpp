#include "analyzer/report/finding/DescribePlaced.h"

#include "analyzer/report/finding/StepText.h"

#include <fmt/format.h>

namespace devicetidy {
namespace {

std::string_view verbOf(PlacedKind kind) {
  switch (kind) {
  case PlacedKind::Tensor:
    return "is a tensor on";
  case PlacedKind::Tensors:
    return "holds tensors on";
  case PlacedKind::Module:
    return "is a module with parameters on";
  case PlacedKind::Device:
    return "is the device";
  case PlacedKind::Options:
    return "are options for tensors on";
  case PlacedKind::Other:
    break;
  }
  return {};
}

bool isMove(const Step &step) { return step.kind == StepKind::Moved || step.kind == StepKind::ModuleMoved; }

/// Steps that only pass a tensor on do not decide its device.
bool isPassing(const Step &step) {
  return step.kind == StepKind::Passed || step.kind == StepKind::Returned || step.kind == StepKind::Stored ||
         step.kind == StepKind::Member || step.kind == StepKind::Discarded ||
         step.kind == StepKind::LeftBehind;
}

} // namespace

std::string placedLabel(const std::vector<PlacedExpression> &devices) {
  std::string text;
  for (const PlacedExpression &each : devices)
    text += (text.empty() ? "" : " or ") + deviceText(each.device);
  return text;
}

std::string describePlaced(const std::vector<PlacedExpression> &devices) {
  const PlacedExpression &first = devices.front();
  if (first.kind == PlacedKind::Other)
    return {};
  const bool isOpen = devices.size() == 1 && first.isOpen;
  return fmt::format("'{}' {} {}{}", first.text, verbOf(first.kind), placedLabel(devices),
                     isOpen ? ", which is decided elsewhere" : "");
}

const Step *placingStep(const PlacedExpression &expression) {
  const Step *found = nullptr;
  for (const Step &step : expression.history)
    if (step.where.valid() && !isPassing(step) && (!found || isMove(step) || !isMove(*found)))
      found = &step;
  return found;
}

} // namespace devicetidy
