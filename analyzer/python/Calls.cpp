// Calls, and the functions that stand inside of expressions.
#include "analyzer/python/FunctionLowering.h"

#include "analyzer/facts/NameParts.h"

#include <algorithm>

namespace devicetidy::python {
namespace {

const Name lossType("python::loss"); // of a call whose result is differentiated

} // namespace

Arguments FunctionLowering::arguments(const Node &call) {
  Arguments given;
  const std::vector<std::size_t> places = placesOfTensors(parts.module, call);
  const bool isOfLists = joinsTensors(parts.module, call);
  for (const Node &argument : call.list("args")) {
    const bool spreads = argument.is("Starred");
    const bool isTensor = std::count(places.begin(), places.end(), given.operands.size()) != 0;
    given.operands.push_back(isOfLists              ? tensorsOperand(argument)
                             : isTensor && !spreads ? tensorOperand(argument)
                                                    : operand(argument));
    given.names.push_back(spreads ? Name("*") : Name());
    given.hasNames |= spreads;
  }
  for (const Node &keyword : call.list("keywords")) {
    const std::string name = keyword.text("arg");
    given.operands.push_back(operand(keyword["value"]));
    given.names.push_back(name.empty() ? Name("**") : Name(name));
    given.hasNames = true;
  }
  return given;
}

// A list whose elements are tensors.
Operand FunctionLowering::tensorsOperand(const Node &node) {
  if (node.is("List") || node.is("Tuple"))
    return use(sequence(node, true), node);
  return node.is("ListComp") || node.is("GeneratorExp") ? use(comprehension(node, true), node)
                                                        : operand(node);
}

Reg FunctionLowering::call(const Node &node) {
  const Node callee = node["func"];
  const bool isMethod = callee.is("Attribute");
  if (isMethod && callee["value"].is("Call") && callee["value"]["func"].text("id") == "super")
    return superCall(node);
  const std::optional<Meaning> meaning = meaningOf(callee);
  const std::vector<Node> passed = node.list("args");
  if (meaning && meaning->name == "builtins.len" && passed.size() == 1 && isShape(passed[0]))
    return emitCall("dimensions", {operand(passed[0]["value"])}, node);
  if (meaning && meaning->name == "builtins.slice" && !passed.empty())
    return sliced(passed.size() == 1 ? std::vector<Node>{Node(), passed[0]} : passed, node);
  if (meaning && meaning->kind == Meaning::Kind::Library) {
    Arguments given = arguments(node);
    return emitCall("library::" + meaning->name, std::move(given.operands), node,
                    given.hasNames ? std::move(given.names) : std::vector<Name>());
  }
  const Node object = callee["value"];
  Operand on;
  if (meaning)
    on = use(loadMeaning(callee, *meaning), callee);
  else if (const Reg address = isMethod ? addressOf(object) : NoReg; address != NoReg)
    on = use(address, object, true);
  else
    on = !isMethod                          ? operand(callee)
         : isOfTensors(callee.text("attr")) ? tensorOperand(object)
                                            : operand(object);
  const bool asMethod = isMethod && !meaning;
  Arguments given = arguments(node);
  given.operands.insert(given.operands.begin(), on);
  given.names.insert(given.names.begin(), Name());
  const Reg result = emitCall(asMethod ? "method::" + callee.text("attr") : "call", std::move(given.operands),
                              node, given.hasNames ? std::move(given.names) : std::vector<Name>());
  block().facts.back().hasObject = asMethod;
  if (uses.losses.count(node.where()))
    block().facts.back().templateTypes = {lossType};
  return result;
}

// super().method(..): that of the classes behind this one.
Reg FunctionLowering::superCall(const Node &node) {
  Arguments given = arguments(node);
  const Reg self = loadName(node, selfName);
  given.operands.insert(given.operands.begin(), use(self, node, true));
  given.operands.front().text = Name(selfName);
  given.names.insert(given.names.begin(), Name());
  const Reg result = emitCall("super::" + node["func"].text("attr"), std::move(given.operands), node,
                              given.hasNames ? std::move(given.names) : std::vector<Name>());
  block().facts.back().templateTypes = {className};
  block().facts.back().hasObject = true;
  return result;
}

Reg FunctionLowering::closure(const Node &node, const FunctionLowering &inner) {
  Fact closure = fact(FactKind::Closure, node);
  closure.target = inner.id();
  closure.name = Name(inner.qualified);
  for (const std::string &name : inner.captured()) {
    closure.operands.push_back(use(loadName(node, name), node));
    closure.captures.push_back(Name(name));
  }
  return emit(std::move(closure));
}

Reg FunctionLowering::comprehension(const Node &node, bool areTensors) {
  const bool isLambda = node.is("Lambda");
  FunctionLowering inner(parts, this, className,
                         qualified + (isLambda ? ".<lambda" : ".<comprehension") + std::to_string(++nested) +
                             ">");
  inner.selfName = {};
  inner.givesTensors = areTensors;
  inner.lowerFunction(node);
  const Reg made = closure(node, inner);
  if (isLambda)
    return made;
  // The first iterable is evaluated outside (Python reference, 6.2.4).
  const Operand iterated = operand(node.list("generators").front()["iter"]);
  return emitCall("call", {use(made, node), iterated}, node);
}

} // namespace devicetidy::python
