// Expressions: each is a value in a register.
#include "analyzer/python/FunctionLowering.h"

#include "analyzer/facts/NameParts.h"

#include <algorithm>
#include <cstdlib>

namespace devicetidy::python {
namespace {

/// Generated modules have tables of many thousand lines. No tensor is in one that is written of constants.
constexpr std::size_t mostData = 256;

bool isData(const Node &node) {
  if (isOneOf(node.kind(), {"Constant", "Load"}))
    return true;
  const std::vector<Node> parts = node.children();
  return isOneOf(node.kind(), {"List", "Tuple", "Set", "Dict", "UnaryOp", "USub"}) &&
         std::all_of(parts.begin(), parts.end(), isData);
}

} // namespace

std::string operatorOf(const Node &node) {
  static const std::map<std::string_view, const char *> spelled = {
      {"Add", "+"},       {"Sub", "-"},    {"Mult", "*"},      {"MatMult", "@"}, {"Div", "/"},
      {"Mod", "%"},       {"Pow", "**"},   {"LShift", "<<"},   {"RShift", ">>"}, {"BitOr", "|"},
      {"BitXor", "^"},    {"BitAnd", "&"}, {"FloorDiv", "//"}, {"Eq", "=="},     {"NotEq", "!="},
      {"Lt", "<"},        {"LtE", "<="},   {"Gt", ">"},        {"GtE", ">="},    {"Is", "is"},
      {"IsNot", "isnot"}, {"In", "in"},    {"NotIn", "notin"}, {"Invert", "~"},  {"Not", "not"},
      {"UAdd", "+"},      {"USub", "-"}};
  const auto found = spelled.find(node.kind());
  return found == spelled.end() ? std::string("?") : found->second;
}

Operand FunctionLowering::operand(const Node &node) {
  return use(value(node), node.is("Starred") ? node["value"] : node);
}

std::vector<Operand> FunctionLowering::operandsOf(const std::vector<Node> &nodes) {
  std::vector<Operand> operands;
  operands.reserve(nodes.size());
  for (const Node &node : nodes)
    operands.push_back(operand(node));
  return operands;
}

Reg FunctionLowering::value(const Node &node) {
  const std::string_view kind = node.kind();
  if (kind == "Name")
    return loadName(node, node.text("id"));
  if (kind == "Constant")
    return literal(node);
  if (kind == "Attribute")
    return attribute(node);
  if (kind == "Call")
    return call(node);
  if (kind == "BinOp")
    return binary(node);
  if (kind == "UnaryOp" && node["op"].is("Not"))
    return emitCall("not", withVariable({operand(node["operand"])}, node["operand"]), node);
  if (kind == "UnaryOp")
    return emitCall("unary::" + operatorOf(node["op"]), {operand(node["operand"])}, node);
  if (kind == "Compare")
    return comparison(node);
  if (kind == "BoolOp" || kind == "IfExp")
    return chosen(node);
  if (isOneOf(kind, {"List", "Tuple", "Set"}))
    return sequence(node);
  if (kind == "Dict")
    return dictionary(node);
  if (kind == "Subscript")
    return subscript(node);
  if (kind == "Slice")
    return sliced({node["lower"], node["upper"], node["step"]}, node);
  if (kind == "JoinedStr")
    return joined(node);
  if (kind == "Lambda" || isOneOf(kind, {"ListComp", "SetComp", "DictComp", "GeneratorExp"}))
    return comprehension(node);
  if (kind == "NamedExpr") {
    const Operand named = operand(node["value"]);
    assign(node["target"], named);
    return named.reg;
  }
  if (kind == "Starred")
    return emitCall("spread", {operand(node["value"])}, node);
  if (isOneOf(kind, {"Await", "FormattedValue"}))
    return value(node["value"]);
  if (kind == "Yield" || kind == "YieldFrom") {
    const std::string adds = kind == "Yield" ? "method::append" : "method::extend";
    if (const Node given = node["value"]; given && yielded >= 0)
      emitCall(adds, {use(loadLocal(yielded, node), node), operand(given)}, node);
    return emit(fact(FactKind::Opaque, node));
  }
  ++parts.unit.opaqueExpressions[Name(kind)];
  return emit(fact(FactKind::Opaque, node));
}

Reg FunctionLowering::literal(const Node &node) {
  const auto [kind, text] = node.constant();
  Fact literal = fact(FactKind::Literal, node);
  if (kind == "str") {
    literal.literal = LiteralKind::String;
    literal.name = Name(text);
  } else if (kind == "bool") {
    literal.literal = LiteralKind::Bool;
    literal.number = text == "True";
  } else if (kind == "int") {
    literal.literal = LiteralKind::Int;
    literal.number = std::strtoll(text.c_str(), nullptr, 10);
  } else if (kind == "float") {
    literal.literal = LiteralKind::Float;
    literal.name = Name(text);
  } else if (kind == "NoneType") {
    literal.literal = LiteralKind::Null;
  } else if (kind == "ellipsis") {
    return emitCall("value::builtins.Ellipsis", {}, node);
  } else {
    return emit(fact(FactKind::Opaque, node));
  }
  return emit(std::move(literal));
}

Reg FunctionLowering::joined(const Node &node) {
  return emitCall("text", operandsOf(node.list("values")), node);
}

bool FunctionLowering::isShape(const Node &node) const {
  return node.is("Attribute") && node.text("attr") == "shape" && !meaningOf(node);
}

Operand FunctionLowering::dimensions(const Node &shape) {
  return use(emitCall("dimensions", {operand(shape["value"])}, shape), shape);
}

Reg FunctionLowering::attribute(const Node &node) {
  if (const std::optional<Meaning> meaning = meaningOf(node))
    return loadMeaning(node, *meaning);
  if (const std::optional<Name> id = variableOfModule(node)) {
    Fact load = fact(FactKind::Load, node);
    load.operands.push_back(use(global(node, *id), node, true));
    return emit(std::move(load));
  }
  if (node.text("attr") == "ndim")
    return emitCall("dimensions", {operand(node["value"])}, node);
  const bool isTensor = isOfTensors(node.text("attr"));
  return emitCall("attribute::" + node.text("attr"),
                  {isTensor ? tensorOperand(node["value"]) : operand(node["value"])}, node);
}

Operand FunctionLowering::tensorOperand(const Node &node) {
  const Operand given = operand(node);
  return isOneOf(node.kind(), {"Attribute", "Subscript", "BinOp", "UnaryOp"}) && !meaningOf(node)
             ? use(emitCall("tensor", {given}, node), node)
             : given;
}

Reg FunctionLowering::binary(const Node &node) {
  const Operand left = operand(node["left"]), right = operand(node["right"]);
  return emitCall("binary::" + operatorOf(node["op"]), {left, right}, node);
}

// `a < b < c` is true where both are. What is compared with a number is a tensor as often, but not in a
// condition.
Reg FunctionLowering::comparison(const Node &node, bool isCondition) {
  const std::vector<Node> operators = node.list("ops"), others = node.list("comparators");
  Operand left = operand(node["left"]);
  Reg result = NoReg;
  for (std::size_t i = 0; i < operators.size() && i < others.size(); ++i) {
    const Operand right = operand(others[i]);
    std::vector<Operand> compared = {left, right};
    if (i == 0 && others[i].is("Constant") &&
        (isCondition || !isOneOf(others[i].constant().first, {"int", "float"})))
      compared = withVariable(std::move(compared), node["left"]);
    const Reg next = emitCall("compare::" + operatorOf(operators[i]), std::move(compared), node);
    result = result == NoReg ? next : emitCall("both", {use(result, node), use(next, node)}, node);
    left = right;
  }
  return result;
}

Reg FunctionLowering::chosen(const Node &node) {
  const int local = newLocal("", {}, node);
  const BlockId end = newBlock();
  if (node.is("IfExp")) {
    const BlockId whenTrue = newBlock(), whenFalse = newBlock();
    condition(node["test"], whenTrue, whenFalse);
    for (const auto &[from, part] :
         {std::pair(whenTrue, node["body"]), std::pair(whenFalse, node["orelse"])}) {
      enter(from);
      storeLocal(local, operand(part), node);
      jump(end);
    }
  } else {
    const std::vector<Node> values = node.list("values");
    const bool isAnd = node["op"].is("And");
    for (std::size_t i = 0; i < values.size(); ++i) {
      const Operand part = operand(values[i]);
      storeLocal(local, part, node);
      if (i + 1 == values.size())
        break;
      const BlockId more = newBlock();
      const Reg truth = emitCall("truth", withVariable({part}, values[i]), values[i]);
      branch(use(truth, values[i]), isAnd ? more : end, isAnd ? end : more, false, values[i]);
      enter(more);
    }
    jump(end);
  }
  enter(end);
  return loadLocal(local, node);
}

void FunctionLowering::condition(const Node &node, BlockId whenTrue, BlockId whenFalse, bool entersLoop) {
  if (node.is("UnaryOp") && node["op"].is("Not") && !entersLoop) {
    condition(node["operand"], whenFalse, whenTrue);
    return;
  }
  if (node.is("BoolOp") && !entersLoop) {
    const std::vector<Node> values = node.list("values");
    for (std::size_t i = 0; i + 1 < values.size(); ++i) {
      const BlockId more = newBlock();
      if (node["op"].is("And"))
        condition(values[i], more, whenFalse);
      else
        condition(values[i], whenTrue, more);
      enter(more);
    }
    condition(values.back(), whenTrue, whenFalse);
    return;
  }
  const Operand tested = isShape(node)        ? dimensions(node)
                         : node.is("Compare") ? use(comparison(node, true), node)
                                              : operand(node);
  const Reg truth =
      emitCall("truth", isShape(node) ? std::vector<Operand>{tested} : withVariable({tested}, node), node);
  branch(use(truth, node), whenTrue, whenFalse, entersLoop, node);
}

Reg FunctionLowering::sequence(const Node &node, bool areTensors) {
  const std::vector<Node> elements = node.list("elts");
  if (elements.size() > mostData && isData(node))
    return emit(fact(FactKind::Opaque, node));
  std::vector<Operand> operands;
  std::vector<Name> names;
  bool spreads = false;
  for (const Node &element : elements) {
    const bool isSpread = element.is("Starred");
    spreads |= isSpread;
    names.push_back(isSpread ? Name("*") : Name());
    operands.push_back(areTensors && !isSpread ? tensorOperand(element) : operand(element));
  }
  const std::string made = node.is("Tuple") ? "tuple" : node.is("Set") ? "set" : "list";
  return emitCall(made, std::move(operands), node, spreads ? names : std::vector<Name>());
}

// Keys and values in turn; what is spread has the key None.
Reg FunctionLowering::dictionary(const Node &node) {
  std::vector<Operand> entries;
  std::vector<Name> names;
  const std::vector<Node> keys = node.list("keys"), values = node.list("values");
  if (keys.size() > mostData && isData(node))
    return emit(fact(FactKind::Opaque, node));
  for (std::size_t i = 0; i < keys.size() && i < values.size(); ++i) {
    entries.push_back(keys[i] ? operand(keys[i]) : use(emit(fact(FactKind::Opaque, node)), node));
    entries.push_back(operand(values[i]));
    names.emplace_back();
    names.push_back(keys[i] ? Name() : Name("**"));
  }
  return emitCall("dict", std::move(entries), node, std::move(names));
}

Reg FunctionLowering::subscript(const Node &node) {
  const bool isNumber = node["slice"].is("Constant") || node["slice"].is("UnaryOp");
  if (isNumber && isShape(node["value"]))
    return emitCall("length", {operand(node["value"]["value"])}, node);
  Node base = node["value"];
  while (base.is("Subscript"))
    base = base["value"];
  const bool isTensor = hasSlices(node["slice"]) && !uses.arrays.count(base.text("id"));
  const Operand object = isTensor ? tensorOperand(node["value"]) : operand(node["value"]),
                index = operand(node["slice"]);
  return emitCall("get", {object, index}, node);
}

// `ends` are the lower one, the upper one and the step; those that are left out are none.
Reg FunctionLowering::sliced(const std::vector<Node> &ends, const Node &node) {
  std::vector<Operand> operands;
  std::vector<Name> names;
  const char *const all[] = {"lower", "upper", "step"};
  for (std::size_t i = 0; i < ends.size() && i < 3; ++i)
    if (ends[i] && ends[i].constant().first != "NoneType") {
      operands.push_back(operand(ends[i]));
      names.emplace_back(all[i]);
    }
  return emitCall("slice", std::move(operands), node, std::move(names));
}

} // namespace devicetidy::python
