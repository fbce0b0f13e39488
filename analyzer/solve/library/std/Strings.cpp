//===- Strings.cpp - text that names devices ---===//
//
// "cuda:1", taken apart by the program's own parsing of options. A text that is known is computed with, so
// that `name.find("cuda") != npos` takes the way the program takes.
//
//===----------------------------------------------------------------------===//
#include "analyzer/solve/library/std/Strings.h"

#include "analyzer/solve/domain/DeviceTerms.h"
#include "analyzer/solve/domain/NameParts.h"
#include "analyzer/solve/domain/Registers.h"
#include "analyzer/solve/library/std/Containers.h"

#include <cerrno>
#include <cstdlib>

namespace devicetidy {
namespace {

std::optional<std::string> textIn(const Call &call, const Value &value) {
  if (!is(value, ValueKind::Scalar))
    return std::nullopt;
  const Term term = call.row.resolve(value->term);
  if (std::optional<Name> text = textOf(term))
    return text->str();
  // A single character is a number.
  if (auto code = constantOf(term); code && *code > 0 && *code < 128)
    return std::string(1, static_cast<char>(*code));
  return std::nullopt;
}

std::optional<std::int64_t> numberArgument(const Call &call, std::size_t i, std::int64_t otherwise) {
  if (i >= call.argCount())
    return otherwise;
  const Value value = call.arg(i);
  return call.row.numberOf(value);
}

Value position(std::size_t found) {
  return scalarValue(intTerm(found == std::string::npos ? -1 : static_cast<std::int64_t>(found)));
}

// What a method of a known text gives; nothing when an argument is not known or the text is too short.
std::optional<Value> compute(const Call &call, const std::string &text, std::string_view method) {
  if (method == "empty")
    return scalarValue(intTerm(text.empty()));
  if (method == "size" || method == "length")
    return scalarValue(intTerm(static_cast<std::int64_t>(text.size())));
  if (method == "substr") {
    const auto from = numberArgument(call, 0, 0), count = numberArgument(call, 1, -1);
    if (!from || !count || *from < 0 || *from > static_cast<std::int64_t>(text.size()))
      return std::nullopt;
    return scalarValue(
        textTerm(Name(text.substr(static_cast<std::size_t>(*from), static_cast<std::size_t>(*count)))));
  }
  if (method == "front" || method == "back" || method == "operator[]" || method == "at") {
    const auto last = static_cast<std::int64_t>(text.size()) - 1;
    const auto at = method == "front"  ? std::optional<std::int64_t>(0)
                    : method == "back" ? std::optional<std::int64_t>(last)
                                       : numberArgument(call, 0, 0);
    if (!at || *at < 0 || *at > last)
      return std::nullopt;
    return scalarValue(intTerm(static_cast<unsigned char>(text[static_cast<std::size_t>(*at)])));
  }
  const std::optional<std::string> other =
      call.argCount() ? textIn(call, call.arg(call.argCount() == 3 ? 2 : 0)) : std::nullopt;
  if (!other)
    return std::nullopt;
  if (method == "starts_with")
    return scalarValue(intTerm(startsWith(text, *other)));
  if (method == "ends_with")
    return scalarValue(intTerm(endsWith(text, *other)));
  if (method == "contains")
    return scalarValue(intTerm(text.find(*other) != std::string::npos));
  if (method == "compare") {
    const auto from = numberArgument(call, 0, 0), count = numberArgument(call, 1, -1);
    if (call.argCount() == 1)
      return scalarValue(intTerm(text.compare(*other)));
    if (!from || !count || *from < 0 || *from > static_cast<std::int64_t>(text.size()))
      return std::nullopt;
    return scalarValue(
        intTerm(text.compare(static_cast<std::size_t>(*from), static_cast<std::size_t>(*count), *other)));
  }
  const bool backwards = method == "rfind";
  if (method == "find" || backwards) {
    const auto from = numberArgument(call, 1, backwards ? -1 : 0);
    if (!from)
      return std::nullopt;
    const auto at = static_cast<std::size_t>(*from);
    return position(backwards ? text.rfind(*other, at) : text.find(*other, at));
  }
  if (method == "find_first_of")
    return position(text.find_first_of(*other));
  return std::nullopt;
}

// "cuda:" + std::to_string(i) names a device.
std::optional<Outcomes> concatenate(Call &call) {
  Value a = call.operand(0), b = call.operand(1);
  if (isMadeOfDevice(a) || isMadeOfDevice(b))
    return call.done(keyMadeOf(isMadeOfDevice(a) ? a : b));
  if (!is(a, ValueKind::Scalar) || !is(b, ValueKind::Scalar))
    return std::nullopt;
  std::optional<Name> left = textOf(call.row.resolve(a->term)), right = textOf(call.row.resolve(b->term));
  if (left && right)
    return call.done(scalarValue(textTerm(Name(left->str() + right->str()))));
  static const Name toString("to_string");
  Term number = call.row.resolve(b->term);
  if (left && left->str() == "cuda:" && number->kind == TermKind::Apply && number->name == toString) {
    Placement placement = Placement::cuda(number->args[0]);
    placement.text = call.fact.operands[1].text;
    return call.done(deviceValue(placement));
  }
  return call.done(scalarValue(applyTerm("concat", {a->term, b->term})));
}

// stoi, atoi: the number at the start of a known text.
Outcomes parseNumber(Call &call) {
  const std::optional<std::string> text = textIn(call, call.arg(0));
  if (!text)
    return call.done(scalarValue(call.machine.freshScalar(call)));
  char *end = nullptr;
  errno = 0;
  const long long number = std::strtoll(text->c_str(), &end, 10);
  if (end == text->c_str() || errno != 0)
    return call.done(scalarValue(call.machine.freshScalar(call)));
  return call.done(scalarValue(intTerm(number)));
}

} // namespace

std::optional<Outcomes> modelString(Call &call, std::string_view method) {
  const Value text = call.object();
  if (isOneOf(method, {"c_str", "data", "str", "operator basic_string_view"}))
    return call.done(text);
  if (method == "operator=") {
    call.machine.memory.write(call.row, call.objectAddress(), call.arg(0));
    return call.done(call.fact.resultIsAddress ? addressValue(call.objectAddress()) : call.arg(0));
  }
  const bool isText = is(text, ValueKind::Scalar) && textOf(call.row.resolve(text->term));
  if (isOneOf(method, {"operator+=", "append", "push_back", "assign"})) {
    const std::optional<std::string> added = call.argCount() == 1 ? textIn(call, call.arg(0)) : std::nullopt;
    const std::optional<std::string> before = method == "assign" ? "" : textIn(call, text);
    Value after = scalarValue(call.machine.freshScalar(call));
    if (added && before && (isText || method == "assign"))
      after = scalarValue(textTerm(Name(*before + *added)));
    else if (call.argCount() == 1 && (isMadeOfDevice(call.arg(0)) || isMadeOfDevice(text)))
      after = keyMadeOf(isMadeOfDevice(text) ? text : call.arg(0));
    call.machine.memory.write(call.row, call.objectAddress(), after);
    return call.done(call.fact.resultIsAddress ? addressValue(call.objectAddress()) : unknownValue());
  }
  if (isText)
    if (std::optional<Value> result = compute(call, textOf(call.row.resolve(text->term))->str(), method)) {
      if (!call.fact.resultIsAddress)
        return call.done(*result);
      const Address character = call.machine.allocate(call.row, call.frame, call.fact, call.resultType());
      call.machine.memory.write(call.row, character, *result);
      return call.done(addressValue(character));
    }
  if (method == "compare" && call.argCount() == 1 && is(call.arg(0), ValueKind::Scalar) &&
      is(text, ValueKind::Scalar))
    return call.done(
        scalarValue(notTerm(call.row.resolve(applyTerm("==", {text->term, call.arg(0)->term})))));
  return std::nullopt;
}

std::optional<Outcomes> modelStringFunction(Call &call, std::string_view name) {
  if (name == "std::to_string" && is(call.operand(0), ValueKind::Scalar)) {
    Term number = call.row.resolve(call.operand(0)->term);
    if (auto constant = constantOf(number))
      return call.done(scalarValue(textTerm(std::to_string(*constant))));
    return call.done(scalarValue(applyTerm("to_string", {number})));
  }
  if (isOneOf(name, {"std::stoi", "std::stol", "std::stoll", "std::stoul", "std::stoull", "std::atoi", "atoi",
                     "std::atol", "atol"}))
    return parseNumber(call);
  if (isOneOf(name, {"strcmp", "std::strcmp"}) && call.argCount() == 2) {
    const std::optional<std::string> a = textIn(call, call.arg(0)), b = textIn(call, call.arg(1));
    if (a && b)
      return call.done(scalarValue(intTerm(a->compare(*b))));
    return std::nullopt;
  }
  if (name == "std::operator+" && call.argCount() == 2)
    return concatenate(call);
  return std::nullopt;
}

} // namespace devicetidy
