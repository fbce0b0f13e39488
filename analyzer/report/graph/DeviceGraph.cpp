#include "analyzer/report/graph/DeviceGraph.h"

#include "analyzer/report/finding/StepText.h"

#include <fmt/format.h>

#include <algorithm>

namespace devicetidy {
namespace {

/// What a step does, in the few words a box has room for.
std::string eventOf(const Step &step) {
  switch (step.kind) {
  case StepKind::Created:
    return "created";
  case StepKind::Moved:
    return "moved";
  case StepKind::Inherited:
    return "device taken from it";
  case StepKind::ModuleMoved:
    return "model moved";
  case StepKind::ModuleMade:
    return "model created";
  case StepKind::Loaded:
    return "loaded";
  case StepKind::Parameter:
    return "parameter";
  case StepKind::Member:
    return "member";
  case StepKind::Chosen:
    return "chosen at run time";
  case StepKind::Passed:
    return "passed";
  case StepKind::Returned:
    return "returned";
  case StepKind::Stored:
    return "stored";
  case StepKind::Named:
    return "named";
  case StepKind::Discarded:
    return "result of move discarded";
  case StepKind::LeftBehind:
    return "left behind";
  case StepKind::Dispatched:
    return "registered for it";
  case StepKind::Registered:
    return step.device.empty() ? "registered" : "registered too late";
  }
  return {};
}

bool isMove(const Step &step) { return step.kind == StepKind::Moved || step.kind == StepKind::ModuleMoved; }

/// Does it say where the tensor is then? What a caller passes is wherever it is.
bool namesDevice(const Step &step) { return !step.device.empty() && step.kind != StepKind::Parameter; }

/// The device a tensor is on after step `i` of a history that ends on `last`. Steps that only pass it on name
/// none.
std::string deviceAfter(const std::vector<Step> &steps, std::size_t i, const std::string &last) {
  for (std::size_t back = i + 1; back-- > 0;)
    if (namesDevice(steps[back]))
      return steps[back].device;
  for (std::size_t next = i + 1; next < steps.size(); ++next)
    if (namesDevice(steps[next]))
      return isMove(steps[next]) ? steps[next].from : steps[next].device;
  return last;
}

std::string subjectOf(const Step &step) {
  std::string subject = step.subject;
  if (subject.size() > 2 && subject.compare(subject.size() - 2, 2, "->") == 0)
    subject.resize(subject.size() - 2);
  return subject;
}

std::string placeKey(const Location &where) {
  return fmt::format("{}:{}:{}", where.file.str(), where.line, where.column);
}

} // namespace

bool deviceBefore(const std::string &a, const std::string &b) {
  const auto rank = [](const std::string &device) { return device == "cpu" ? 0 : device.empty() ? 2 : 1; };
  return rank(a) != rank(b) ? rank(a) < rank(b) : a < b;
}

std::size_t GraphBuilder::addNode(GraphNode node, const std::string &device, const std::string &key) {
  const auto [entry, isNew] = known.emplace(key, graph.nodes.size());
  if (isNew) {
    graph.nodes.push_back(std::move(node));
    deviceOf.push_back(device);
  }
  return entry->second;
}

std::size_t GraphBuilder::addHistory(const std::vector<Step> &steps, const std::string &device,
                                     std::size_t before) {
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Step &step = steps[i];
    if (!step.where.valid())
      continue;
    GraphNode node;
    node.name = subjectOf(step);
    node.event = eventOf(step);
    node.isMove = isMove(step) && !step.device.empty();
    node.where = step.where;
    const std::string after = deviceAfter(steps, i, device);
    if (before == none && isMove(step) && !step.from.empty()) // where it was is all that is known of before
      before = addPlace(node.name, step.from, none, {});
    const std::string key =
        fmt::format("step\n{}\n{}\n{}\n{}", placeKey(step.where), node.event, node.name, after);
    const std::size_t at = addNode(std::move(node), after, key);
    if (before != none)
      connect(before, at, step.where);
    before = at;
  }
  return before;
}

std::size_t GraphBuilder::addPlace(const std::string &text, const std::string &device, std::size_t before,
                                   const Location &where) {
  GraphNode node;
  node.kind = NodeKind::Place;
  node.name = text;
  node.where = where;
  if (where.valid())
    node.items.push_back({text, {where.line}});
  const std::string key = fmt::format("place\n{}\n{}\n{}\n{}", text, device, before, placeKey(where));
  const std::size_t at = addNode(std::move(node), device, key);
  if (before != none)
    connect(before, at, {});
  return at;
}

std::size_t GraphBuilder::addOperation(const std::string &name, const std::string &event,
                                       const Location &where) {
  GraphNode node;
  node.kind = NodeKind::Operation;
  node.name = name;
  node.event = event;
  node.where = where;
  return addNode(std::move(node), {}, fmt::format("operation\n{}\n{}", placeKey(where), name));
}

void GraphBuilder::connect(std::size_t from, std::size_t to, const Location &where) {
  const auto same = [&](const GraphEdge &edge) {
    return edge.from == from && edge.to == to && edge.where == where;
  };
  if (from != to && std::none_of(graph.edges.begin(), graph.edges.end(), same))
    graph.edges.push_back({from, to, where});
}

DeviceGraph GraphBuilder::take() {
  std::vector<std::string> &devices = graph.devices;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i)
    if (graph.nodes[i].kind != NodeKind::Operation)
      devices.push_back(deviceOf[i]);
  std::sort(devices.begin(), devices.end(), deviceBefore);
  devices.erase(std::unique(devices.begin(), devices.end()), devices.end());
  for (std::size_t i = 0; i < graph.nodes.size(); ++i)
    if (graph.nodes[i].kind != NodeKind::Operation)
      graph.nodes[i].lane =
          static_cast<std::size_t>(std::find(devices.begin(), devices.end(), deviceOf[i]) - devices.begin());
  DeviceGraph result = std::move(graph);
  *this = GraphBuilder();
  return result;
}

DeviceGraph graphOf(const Finding &finding, SourceCache &sources) {
  if (finding.operands.empty() && finding.origin.empty())
    return {};
  GraphBuilder builder;
  const std::string operation = finding.operation.empty() ? finding.check : finding.operation;
  const std::size_t count = finding.operands.size();
  const std::size_t end = builder.addOperation(operation,
                                               count == 0   ? ""
                                               : count == 1 ? "gets"
                                                            : "gets both",
                                               finding.where);
  std::string history;
  const auto tell = [&](const std::vector<Step> &steps) {
    for (const Step &step : steps)
      if (step.where.valid())
        history += fmt::format("{}{} (line {})", history.empty() || history.back() == '\n' ? "" : "; ",
                               describeStep(step), step.where.line);
  };
  for (const PlacedOperand &operand : finding.operands) {
    const std::vector<Step> steps = historyOf(operand, sources);
    tell(steps);
    std::size_t last = builder.addHistory(steps, operand.device);
    if (last == GraphBuilder::none || steps.back().subject != operand.text)
      last = builder.addPlace(operand.text, operand.device, last, {});
    builder.connect(last, end, operand.where.valid() ? operand.where : finding.where);
    history += history.empty() || history.back() == '\n' ? "" : ".\n";
  }
  if (const std::size_t last = builder.addHistory(finding.origin, {}); last != GraphBuilder::none) {
    tell(finding.origin);
    builder.connect(last, end, finding.where);
  }
  DeviceGraph graph = builder.take();
  graph.title =
      finding.operands.size() == 2
          ? fmt::format("'{}' gets {} on {} and {} on {}", operation, finding.operands[0].text,
                        finding.operands[0].device, finding.operands[1].text, finding.operands[1].device)
          : fmt::format("How the value reaches '{}'", operation);
  graph.description = std::move(history);
  return graph;
}

} // namespace devicetidy
