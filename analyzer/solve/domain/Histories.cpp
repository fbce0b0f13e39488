//===- Histories.cpp - the steps that a value has come by ---===//
#include "analyzer/solve/domain/Hashing.h"
#include "analyzer/solve/domain/Value.h"

#include <algorithm>

namespace devicetidy {

History extend(History before, Step step) {
  auto event = std::make_shared<Event>();
  event->step = std::move(step);
  if (before && before->length >= maxHistory)
    before = before->before;
  event->length = before ? before->length + 1 : 1;
  event->before = std::move(before);
  return event;
}

std::vector<Step> steps(const History &history) {
  std::vector<Step> result;
  for (const Event *event = history.get(); event; event = event->before.get())
    result.push_back(event->step);
  std::reverse(result.begin(), result.end());
  return result;
}

History ofResult(const History &history) {
  if (!history || history->step.kind != StepKind::Parameter || history->isOfResult)
    return history;
  auto event = std::make_shared<Event>(*history);
  event->isOfResult = true;
  return event;
}

const Step *decidingStep(const History &history) {
  for (const Event *event = history.get(); event; event = event->before.get())
    if (decidesDevice(event->step.kind))
      return &event->step;
  return history ? &history->step : nullptr;
}

std::uint64_t originsIn(const Value &value) {
  std::uint64_t digest = 0;
  if (const Step *step = decidingStep(value->history))
    digest = mix(step->where.file.hash(), mix(step->where.line, step->where.column));
  for (const auto *list : {&value->elements, &value->summary})
    for (const Value &element : *list)
      digest = mix(digest, originsIn(element));
  for (const auto &[name, field] : value->fields)
    digest = mix(digest, originsIn(field));
  return digest;
}

} // namespace devicetidy
