// Loops and comprehensions.
#include "analyzer/python/FunctionLowering.h"

#include <set>

namespace devicetidy::python {

// Is there an element? `range` is the local that holds what is iterated.
void FunctionLowering::rangeTest(const Node &node, int range, BlockId body, BlockId end, bool entersLoop) {
  const Reg iterated = loadLocal(range, node);
  Fact test = fact(FactKind::Call, node);
  test.name = Name("__range_has_next");
  test.type = Name("bool");
  test.operands.push_back(use(iterated, node, true));
  branch(use(emit(std::move(test)), node), body, end, entersLoop, node);
}

// `head` begins a loop; what its blocks store to varies in it: `head` and those from `first` on.
void FunctionLowering::markLoop(BlockId head, std::size_t first) {
  std::set<int> varies;
  for (std::size_t i = 0; i < function.blocks.size(); ++i) {
    if (i < first && i != static_cast<std::size_t>(head))
      continue;
    std::map<Reg, int> addresses;
    for (const Fact &each : function.blocks[i].facts) {
      if (each.kind == FactKind::Local)
        addresses[each.result] = static_cast<int>(each.number);
      if (each.kind == FactKind::Store && addresses.count(each.operands[0].reg))
        varies.insert(addresses[each.operands[0].reg]);
    }
  }
  Block &loop = function.blocks[static_cast<std::size_t>(head)];
  loop.isLoopHead = true;
  loop.variesInLoop.assign(varies.begin(), varies.end());
}

void FunctionLowering::loopBody(const Node &target, const Node &iterated, int range,
                                const std::function<void()> &body) {
  const BlockId head = newBlock(), next = newBlock(), end = newBlock();
  rangeTest(iterated, range, head, end, true);
  enter(head);
  const std::size_t before = function.blocks.size();
  endStatement();
  Fact take = fact(FactKind::Call, target);
  take.name = Name("__range_next");
  take.resultIsAddress = true;
  take.operands.push_back(use(loadLocal(range, iterated), iterated, true));
  Fact load = fact(FactKind::Load, target);
  load.operands.push_back(use(emit(std::move(take)), target, true));
  assign(target, use(emit(std::move(load)), target));
  endStatement();
  loops.push_back({next, end, managers.size()});
  body();
  loops.pop_back();
  jump(next);
  enter(next);
  rangeTest(iterated, range, head, end, false);
  markLoop(head, before);
  enter(end);
  endStatement();
}

void FunctionLowering::forLoop(const Node &node) {
  const Node iterated = node["iter"];
  const int range = newLocal("", {}, iterated);
  storeLocal(range, use(emitCall("iterable", {operand(iterated)}, iterated), iterated), iterated);
  endStatement();
  loopBody(node["target"], iterated, range, [&] { statements(node.list("body")); });
  statements(node.list("orelse"));
}

void FunctionLowering::whileLoop(const Node &node) {
  const BlockId head = newBlock(), next = newBlock(), end = newBlock();
  const std::size_t before = function.blocks.size();
  condition(node["test"], head, end, true);
  enter(head);
  endStatement();
  loops.push_back({next, end, managers.size()});
  statements(node.list("body"));
  loops.pop_back();
  jump(next);
  enter(next);
  endStatement();
  // A generator without an end gives as much as it is asked for.
  if (scope.yields && node["test"].is("Constant"))
    branch(use(emit(fact(FactKind::Opaque, node)), node), head, end, false, node);
  else
    condition(node["test"], head, end);
  markLoop(head, before);
  enter(end);
  endStatement();
  statements(node.list("orelse"));
}

// Parameter 0 is what the first `for` iterates.
void FunctionLowering::comprehensionBody(const Node &node, std::size_t generator) {
  const std::vector<Node> generators = node.list("generators");
  if (generator == generators.size()) {
    const Reg made = loadLocal(yielded, node);
    if (node.is("DictComp"))
      emitCall("put", {use(made, node), operand(node["key"]), operand(node["value"])}, node);
    else
      emitCall("method::append",
               {use(made, node), givesTensors ? tensorOperand(node["elt"]) : operand(node["elt"])},
               node["elt"]);
    block().facts.back().hasObject = !node.is("DictComp");
    endStatement();
    return;
  }
  const Node each = generators[generator], iterated = each["iter"];
  const int range = newLocal("", {}, iterated);
  const Operand over = generator == 0 ? use(loadLocal(0, iterated), iterated) : operand(iterated);
  storeLocal(range, use(emitCall("iterable", {over}, iterated), iterated), iterated);
  endStatement();
  loopBody(each["target"], iterated, range, [&] {
    for (const Node &test : each.list("ifs")) {
      const BlockId passes = newBlock();
      condition(test, passes, loops.back().next);
      enter(passes);
      endStatement();
    }
    comprehensionBody(node, generator + 1);
  });
}

} // namespace devicetidy::python
