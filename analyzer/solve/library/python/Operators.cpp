//===- Operators.cpp - operators of Python ---===//
#include "analyzer/solve/engine/Operators.h"
#include "analyzer/facts/NameParts.h"
#include "analyzer/solve/domain/DeviceTerms.h"
#include "analyzer/solve/domain/TermOps.h"
#include "analyzer/solve/engine/Evidence.h"
#include "analyzer/solve/library/python/Lists.h"
#include "analyzer/solve/library/python/OpenValues.h"
#include "analyzer/solve/library/python/Operators.h"
#include "analyzer/solve/library/python/Words.h"

#include <algorithm>
#include <cctype>

namespace devicetidy {
namespace python {

using models::Effect;

std::string sign(const Call &call) { return std::string(lastPart(call.fact.name.view())); }

Argument argumentAt(const Call &call, std::size_t i) {
  const bool isTensor = sign(call) == "@";
  return {asOperand(call, call.operand(i), isTensor), {}, call.fact.operands[i].text, &call.fact.operands[i]};
}

bool isTensor(const Argument &argument) { return is(argument.value, ValueKind::Tensor); }

namespace {

// What an operator is called as a method of a tensor.
std::string methodOf(const std::string &sign) {
  static const std::map<std::string, std::string> methods = {{"+", "add"},
                                                             {"-", "sub"},
                                                             {"*", "mul"},
                                                             {"/", "div"},
                                                             {"@", "matmul"},
                                                             {"%", "remainder"},
                                                             {"**", "pow"},
                                                             {"//", "floor_divide"},
                                                             {"&", "bitwise_and"},
                                                             {"|", "bitwise_or"},
                                                             {"^", "bitwise_xor"},
                                                             {"<<", "bitwise_left_shift"},
                                                             {">>", "bitwise_right_shift"},
                                                             {"==", "eq"},
                                                             {"!=", "ne"},
                                                             {"<", "lt"},
                                                             {"<=", "le"},
                                                             {">", "gt"},
                                                             {">=", "ge"}};
  const auto found = methods.find(sign);
  return found == methods.end() ? std::string() : found->second;
}

bool hasSign(const std::string &sign) {
  return isOneOf(sign, {"+", "-", "*", "/", "==", "!=", "<", "<=", ">", ">="});
}

// Is it a number of the CPU, so that what it is computed with says where the result is?
bool isCpuScalar(const Call &call, const Value &value) {
  return is(value, ValueKind::Tensor) && call.machine.memory.rankOf(call.row, value) == 0 &&
         call.machine.memory.placementOf(call.row, value).kind == PlacementKind::Cpu;
}

// The same of any tensor there where ways of a whole program were joined: what is not known is what that has
// lost sight of, and may be on a GPU.
bool leavesOpen(const Call &call, const Value &value) {
  return isCpuScalar(call, value) ||
         (call.row.guessed && call.machine.usage.hasMain && is(value, ValueKind::Tensor) &&
          call.machine.memory.placementOf(call.row, value).kind == PlacementKind::Cpu);
}

} // namespace

Outcomes onTensors(Call &call, const std::string &sign, const Argument &left, const Argument &right) {
  const std::string method = methodOf(sign);
  if (!hasSign(sign) && method.empty())
    return done(call.row, unknownValue());
  const auto isUnknown = [](const Value &value) { return is(value, ValueKind::Unknown) && !isOpen(value); };
  const bool isAnywhere = (isUnknown(left.value) && leavesOpen(call, right.value)) ||
                          (isUnknown(right.value) && leavesOpen(call, left.value));
  Outcomes outcomes = callTorch(call, call.row, hasSign(sign) ? "at::operator" + sign : "at::" + method,
                                {left, right}, false);
  if (isAnywhere)
    for (Outcome &outcome : outcomes)
      outcome.result = tensorValue(Placement::unknown(), unknownRank, nullptr);
  return outcomes;
}

namespace {

// Two texts in a row; a number becomes its text.
Term joined(const Row &row, Term left, Term right) {
  const auto text = [&](Term term) -> std::optional<std::string> {
    term = row.resolve(term);
    if (const auto number = constantOf(term))
      return std::to_string(*number);
    const auto known = devicetidy::textOf(term);
    return known ? std::optional(known->str()) : std::nullopt;
  };
  const auto first = text(left), second = text(right);
  if (first && second)
    return textTerm(Name(*first + *second));
  const auto asText = [&](Term term, const std::optional<std::string> &known) {
    return known ? textTerm(Name(*known)) : applyTerm(op::toString, {term});
  };
  return applyTerm(op::concat, {asText(row.resolve(left), first), asText(row.resolve(right), second)});
}

// A part of a text that is put together: what is not known of it is told apart by where it comes from.
Term partOfText(const Call &call, const Value &part) {
  if (is(part, ValueKind::Device) && isConstant(part->placement)) // f"{device}:1"
    return textTerm(Name(part->placement.describe()));
  const Term number = is(part, ValueKind::Scalar) ? part->term : numberOfOpen(part);
  return number ? number : call.machine.freshScalar(call);
}

constexpr std::int64_t mostRepeated = 8; ///< times that a list is written out
constexpr std::size_t longestMade = 256; ///< elements of a list that is made of lists, and written out

std::vector<Value> repeated(const std::vector<Value> &elements, std::int64_t times) {
  std::vector<Value> all;
  for (std::int64_t i = 0; i < times; ++i)
    all.insert(all.end(), elements.begin(), elements.end());
  return all;
}

} // namespace

Value onValues(Call &call, const std::string &sign, const Value &left, const Value &right) {
  if (const auto text = sign == "%" ? textOf(call, left) : std::nullopt) {
    const bool areSeveral = is(right, ValueKind::List) && !isSummary(right);
    return withValues(call, call.row, *text, {"%d", "%s", "%i"},
                      areSeveral ? right->elements : std::vector<Value>{right});
  }
  if (is(left, ValueKind::Scalar) && is(right, ValueKind::Scalar)) {
    const bool isText = textOf(call, left) || textOf(call, right);
    if (sign == "+" && isText)
      return scalarValue(joined(call.row, left->term, right->term));
    if (isText && !isOneOf(sign, {"==", "!="}))
      return unknownValue();
    static const std::map<std::string, Name> names = {
        {"+", op::plus},         {"-", op::minus},   {"*", op::times},          {"%", op::remainder},
        {"//", op::divide},      {"==", op::equal},  {"!=", op::unequal},       {"<", op::less},
        {"<=", op::lessOrEqual}, {">", op::greater}, {">=", op::greaterOrEqual}};
    const auto found = names.find(sign);
    if (found != names.end())
      return operatorValue(call.row, found->second, {left, right}, /*areIntegers=*/true);
    return scalarValue(call.machine.freshScalar(call)); // a number
  }
  const Value a = behind(call, left), b = behind(call, right);
  if (sign == "+" && is(a, ValueKind::List) && is(b, ValueKind::List)) {
    std::vector<Value> all = isSummary(a) ? a->summary : a->elements;
    const std::vector<Value> &others = isSummary(b) ? b->summary : b->elements;
    all.insert(all.end(), others.begin(), others.end());
    if (isSummary(a) || isSummary(b) || all.size() > longestMade)
      return is(left, ValueKind::Address) ? allocated(call, call.row, "python::list", summaryOf(all))
                                          : summaryOf(all);
    return is(left, ValueKind::Address) ? listOf(call, call.row, std::move(all))
                                        : listValue("std::vector<at::Tensor>", std::move(all));
  }
  for (const auto &[list, open] : {std::pair(a, right), std::pair(b, left)})
    if (sign == "+" && is(list, ValueKind::List) && isOpen(open)) { // [0] + sizes
      std::vector<Value> all = isSummary(list) ? list->summary : list->elements;
      all.push_back(elementOfOpen(call, call.row, open));
      return allocated(call, call.row, "python::list", summaryOf(all));
    }
  if (sign == "|" && isDict(a) && isDict(b)) {
    std::map<Name, Value> entries = a->fields;
    addEntries(b, entries);
    return allocated(call, call.row, dictType, recordValue(dictType, std::move(entries)));
  }
  if (sign == "*" && (is(a, ValueKind::List) || is(b, ValueKind::List))) {
    const Value &list = is(a, ValueKind::List) ? a : b;
    const auto times = call.row.numberOf(is(a, ValueKind::List) ? b : a);
    const bool isWritten = times && *times <= mostRepeated &&
                           (*times <= 0 || list->elements.size() <= longestMade / std::size_t(*times));
    const Value any = isSummary(list) || list->elements.empty() ? list
                      : isWritten                               ? tupleValue(repeated(list->elements, *times))
                                                                : summaryList(list->type, list->elements);
    return is(left, ValueKind::Address) || is(right, ValueKind::Address)
               ? allocated(call, call.row, "python::list", any)
               : any;
  }
  return unknownValue();
}

namespace {

// a + b, where the class of a has __add__ or that of b has __radd__.
std::optional<Outcomes> ofObjects(Call &call, const Argument &left, const Argument &right) {
  static const std::map<std::string, std::string> others = {
      {"/", "truediv"}, {"%", "mod"}, {"&", "and"}, {"|", "or"}, {"^", "xor"}, {"//", "floordiv"}};
  const auto other = others.find(sign(call));
  const std::string name = other == others.end() ? methodOf(sign(call)) : other->second;
  if (name.empty())
    return std::nullopt;
  if (std::optional<Outcomes> outcomes = callSpecial(call, left, "__" + name + "__", {right}))
    return outcomes;
  return callSpecial(call, right, "__r" + name + "__", {left});
}

} // namespace

Value withValues(const Call &call, const Row &row, const std::string &text,
                 const std::vector<std::string_view> &marks, const std::vector<Value> &values) {
  Term whole = textTerm("");
  std::size_t from = 0, used = 0;
  for (std::size_t at = text.find(marks[0][0]); at != std::string::npos; at = text.find(marks[0][0], from)) {
    const std::string_view found = std::string_view(text).substr(at, marks[0].size());
    if (std::find(marks.begin(), marks.end(), found) == marks.end() || used == values.size())
      return unknownValue();
    whole = joined(row, whole, textTerm(Name(text.substr(from, at - from))));
    whole = joined(row, whole, partOfText(call, values[used++]));
    from = at + found.size();
  }
  if (used != values.size())
    return unknownValue();
  return scalarValue(from < text.size() ? joined(row, whole, textTerm(Name(text.substr(from)))) : whole);
}

namespace {

// A parameter that nothing but the way it is used says to be a tensor.
bool mayBeNumber(const Value &value) {
  return is(value, ValueKind::Tensor) && !value->address.valid() && isOpenRank(value->rank) &&
         value->placement.kind == PlacementKind::Symbol && value->placement.role == SymbolRole::Tensor &&
         applies(value->placement.index, op::parameter);
}

std::optional<Outcomes> binaryWord(Call &call, const Effect &) {
  Argument left = argumentAt(call, 0), right = argumentAt(call, 1);
  if (std::optional<Outcomes> outcomes = ofObjects(call, left, right))
    return outcomes;
  for (auto [open, number] : {std::pair(&left, &right), std::pair(&right, &left)})
    if (isOpen(open->value) && open->value->rank != 0 && isCpuScalar(call, number->value))
      open->value = asTensor(call, open->value); // else the result were a number, too
  // What something is divided by is a number, most often: x / temperature.
  const bool isDivision = isOneOf(sign(call), {"/", "//", "%", "**"}) && is(left.value, ValueKind::Unknown);
  if (isDivision && mayBeNumber(right.value))
    return call.done(isOpen(left.value) ? computedOfOpen(call, left.value) : unknownValue());
  if (isTensor(left) || isTensor(right))
    return onTensors(call, sign(call), left, right);
  for (const Value &each : {left.value, right.value})
    if (isOfHost(each))
      return call.done(each);
  const auto isSaidNumber = [](const Value &value) { return isOpen(value) && value->rank == 0; };
  const auto isDivisor = [&](const Argument &open, const Argument &other) {
    return &open == &right && isDivision && !isOpen(other.value);
  };
  for (const auto &[one, two] : {std::pair(&left, &right), std::pair(&right, &left)})
    if (const Argument &open = *one, &other = *two;
        isOpen(open.value) && !isDivisor(open, other) &&
        (is(other.value, ValueKind::Scalar) ? !textOf(call, other.value)
                                            : is(other.value, ValueKind::Unknown) &&
                                                  (!isSaidNumber(open.value) || isSaidNumber(other.value))))
      return call.done(computedOfOpen(call, open.value));
  return call.done(onValues(call, sign(call), left.value, right.value));
}

// x += y changes a tensor where it is, and a list too.
std::optional<Outcomes> inplaceWord(Call &call, const Effect &) {
  const Argument left = argumentAt(call, 0), right = argumentAt(call, 1);
  const std::string method = methodOf(sign(call));
  if (std::optional<Outcomes> outcomes = callSpecial(call, left, "__i" + method + "__", {right}))
    return outcomes;
  if (std::optional<Outcomes> outcomes = ofObjects(call, left, right))
    return outcomes;
  if (isTensor(left) && !method.empty() && sign(call) != "@") {
    Outcomes outcomes = callTorch(call, call.row, "at::Tensor::" + method + "_", {left, right}, true);
    for (Outcome &outcome : outcomes)
      outcome.result = withoutNumber(outcome.result);
    return outcomes;
  }
  if (isTensor(left) || isTensor(right))
    return onTensors(call, sign(call), left, right);
  return call.done(onValues(call, sign(call), left.value, right.value));
}

std::optional<Outcomes> unaryWord(Call &call, const Effect &) {
  const Argument operand = argumentAt(call, 0);
  if (isTensor(operand))
    return callTorch(call, call.row, sign(call) == "~" ? "at::bitwise_not" : "at::neg", {operand}, false);
  static const std::map<std::string, std::string> methods = {
      {"-", "__neg__"}, {"+", "__pos__"}, {"~", "__invert__"}};
  if (const auto method = methods.find(sign(call)); method != methods.end())
    if (std::optional<Outcomes> outcomes = callSpecial(call, operand, method->second, {}))
      return outcomes;
  if (isOpen(operand.value))
    return call.done(computedOfOpen(call, operand.value));
  if (is(operand.value, ValueKind::Scalar)) {
    if (sign(call) == "-")
      return call.done(operatorValue(call.row, op::minus, {scalarValue(intTerm(0)), operand.value}, true));
    return call.done(sign(call) == "+" ? operand.value : unknownValue());
  }
  return call.done(unknownValue());
}

std::optional<Outcomes> textWord(Call &call, const Effect &) {
  Term text = textTerm("");
  for (std::size_t i = 0; i < call.fact.operands.size(); ++i) {
    text = joined(call.row, text, partOfText(call, call.operand(i)));
  }
  return call.done(scalarValue(text));
}

} // namespace
} // namespace python

Words pythonOperatorWords() {
  return {{{"py_binary", python::binaryWord},
           {"py_inplace", python::inplaceWord},
           {"py_unary", python::unaryWord},
           {"py_text", python::textWord}},
          {},
          {}};
}

} // namespace devicetidy
