#include "analyzer/report/graph/FunctionGraph.h"

#include "analyzer/report/graph/CollapseGraph.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace devicetidy {
namespace {

/// A range; locations are equal when they begin together.
using Range = std::tuple<Name, std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>;

Range rangeOf(const Location &where) {
  return {where.file, where.line, where.column, where.endLine, where.endColumn};
}

bool isDrawn(PlacedKind kind) {
  return kind == PlacedKind::Tensor || kind == PlacedKind::Tensors || kind == PlacedKind::Module;
}

/// Variables, members and elements have a box of their own; a call is a step already.
bool isNamed(const PlacedExpression &expression) {
  return !expression.text.empty() && expression.text.find('(') == std::string::npos;
}

class Collector {
public:
  Collector(const std::string &name, Name file, const Program &program, const Solution &solution,
            GraphBuilder &builder)
      : builder(builder) {
    std::set<Range> ranges;
    const std::string lambda = name + "::lambda";
    for (Name id : program.order) {
      const Function &function = *program.function(id);
      if (function.where.file != file)
        continue;
      if (function.name.str() == name || function.name.str().compare(0, lambda.size(), lambda) == 0) {
        functions.insert(id.str());
        scan(function, ranges);
      }
    }
    for (const PlacedExpression &each : solution.placed)
      if (isDrawn(each.kind) && ranges.count(rangeOf(each.where)) && !isAlreadyMoved(each))
        placed[rangeOf(each.where)].push_back(&each);
  }

  std::size_t collect(const Solution &solution) {
    for (const auto &[range, expressions] : placed)
      for (const PlacedExpression *each : expressions)
        nodeOf(*each);
    std::size_t count = 0;
    for (const Conflict &conflict : solution.conflicts)
      count += addConflict(conflict);
    for (const UnregisteredMember &member : solution.unregisteredMembers)
      count += addConflict(member.conflict);
    return count;
  }

private:
  void scan(const Function &function, std::set<Range> &ranges) {
    for (const Variable &local : function.locals)
      ranges.insert(rangeOf(local.where));
    for (const Block &block : function.blocks)
      for (const Fact &fact : block.facts) {
        for (const Operand &operand : fact.operands)
          ranges.insert(rangeOf(operand.where));
        if (fact.kind == FactKind::Call && fact.hasObject)
          receivers[fact.where] = rangeOf(fact.operands[0].where);
      }
  }

  /// A module is noted at its own move after it, too; there it still is where it was.
  bool isAlreadyMoved(const PlacedExpression &expression) const {
    if (expression.history.empty() || expression.history.back().kind != StepKind::ModuleMoved)
      return false;
    const auto receiver = receivers.find(expression.history.back().where);
    return receiver != receivers.end() && receiver->second == rangeOf(expression.where);
  }

  /// What a move moves: the expressions it was called on, each on a device it had there.
  std::vector<const PlacedExpression *> movedBy(const Step &step) const {
    std::vector<const PlacedExpression *> found;
    if (step.kind == StepKind::Moved) {
      const auto receiver = receivers.find(step.where);
      if (const auto there = receiver == receivers.end() ? placed.end() : placed.find(receiver->second);
          there != placed.end())
        found = there->second;
      const auto isFrom = [&](const PlacedExpression *each) { return each->device == step.from; };
      if (std::any_of(found.begin(), found.end(), isFrom))
        found.erase(
            std::remove_if(found.begin(), found.end(), [&](const auto *each) { return !isFrom(each); }),
            found.end());
    }
    if (step.kind == StepKind::ModuleMoved) // the module itself is moved: the step before says what it was
      for (const auto &[range, expressions] : placed)
        for (const PlacedExpression *each : expressions)
          if (each->kind == PlacedKind::Module && each->device != step.device && each->where < step.where &&
              step.subject.compare(0, each->text.size(), each->text) == 0)
            found.push_back(each);
    return found;
  }

  std::size_t nodeOf(const PlacedExpression &expression) {
    const auto [entry, isNew] = nodes.emplace(&expression, GraphBuilder::none);
    if (!isNew)
      return entry->second; // `none` while it is being made: a loop moves what it moved before
    std::vector<Step> steps = expression.history;
    std::set<std::size_t> before;
    if (!steps.empty())
      for (const PlacedExpression *each : movedBy(steps.front()))
        before.insert(nodeOf(*each));
    before.erase(GraphBuilder::none);
    if (before.empty())
      before.insert(GraphBuilder::none);
    else
      steps.front().from.clear();
    std::size_t last = GraphBuilder::none;
    for (std::size_t each : before)
      last = builder.addHistory(steps, expression.device, each);
    if (isNamed(expression))
      last = builder.addPlace(expression.text, expression.device, last, expression.where);
    return nodes[&expression] = last;
  }

  std::size_t operandNode(const PlacedOperand &operand) {
    if (const auto there = placed.find(rangeOf(operand.where)); there != placed.end())
      for (const PlacedExpression *each : there->second)
        if (each->device == operand.device)
          if (const std::size_t node = nodeOf(*each); node != GraphBuilder::none)
            return node;
    const std::size_t last = builder.addHistory(operand.history, operand.device);
    return last != GraphBuilder::none ? last
                                      : builder.addPlace(operand.text, operand.device, last, operand.where);
  }

  std::size_t addConflict(const Conflict &conflict) {
    if (!functions.count(conflict.functionId))
      return 0;
    const std::size_t at = builder.addOperation(conflict.operation, "gets both", conflict.where);
    for (const PlacedOperand *operand : {&conflict.first, &conflict.second})
      builder.connect(operandNode(*operand), at, operand->where.valid() ? operand->where : conflict.where);
    return 1;
  }

  GraphBuilder &builder;
  std::set<std::string> functions; ///< ids
  std::map<Location, Range> receivers;
  std::map<Range, std::vector<const PlacedExpression *>> placed;
  std::map<const PlacedExpression *, std::size_t> nodes;
};

} // namespace

void FunctionGraph::add(const Program &program, const Solution &solution) {
  operations += Collector(name, file, program, solution, builder).collect(solution);
}

DeviceGraph FunctionGraph::take() {
  DeviceGraph graph = collapsed(builder.take());
  graph.title = fmt::format("Devices in '{}'", name);
  std::map<std::string, std::string> byDevice;
  for (const GraphNode &node : graph.nodes)
    for (const GraphItem &item : node.items) {
      std::string &names = byDevice[graph.devices[node.lane]];
      names += (names.empty() ? "" : ", ") + item.name;
    }
  for (const auto &[device, names] : byDevice)
    graph.description += fmt::format("On {}: {}. ", device.empty() ? "an unknown device" : device, names);
  if (operations)
    graph.description += fmt::format("{} operation{} tensors of different devices.", operations,
                                     operations == 1 ? " gets" : "s get");
  return graph;
}

} // namespace devicetidy
