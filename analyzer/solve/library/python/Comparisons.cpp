//===- Comparisons.cpp - what Python asks of values: are they equal, the same, true ---===//
#include "analyzer/facts/NameParts.h"
#include "analyzer/solve/domain/DeviceTerms.h"
#include "analyzer/solve/domain/Options.h"
#include "analyzer/solve/domain/TermOps.h"
#include "analyzer/solve/engine/Evidence.h"
#include "analyzer/solve/engine/Operators.h"
#include "analyzer/solve/library/python/Lists.h"
#include "analyzer/solve/library/python/OpenValues.h"
#include "analyzer/solve/library/python/Operators.h"
#include "analyzer/solve/library/python/Words.h"

#include <algorithm>

namespace devicetidy {
namespace python {
namespace {

using models::Effect;

constexpr std::size_t mostTexts = 6; ///< that a text is asked to be among

bool isSomething(const Value &value) {
  return is(value, ValueKind::Tensor) || is(value, ValueKind::Address) || is(value, ValueKind::Device) ||
         is(value, ValueKind::List) || is(value, ValueKind::Function) || is(value, ValueKind::Record);
}

// torch.device("cuda"), which no tensor says of itself: theirs have an index.
bool isWithoutIndex(const Value &device) {
  return device->placement == Placement::cuda(currentCudaIndex()) && !device->pinned && !device->hasDevice;
}

// device.type == "cuda", device == torch.device("cpu"), device == "cpu"
Value compareDevice(Call &call, const Value &device, const Value &other) {
  const Placement placement = call.row.resolve(device->placement);
  if (!placement.isKnown())
    return unknownValue();
  const auto text = textOf(call, other);
  if (text == "cuda")
    return scalarValue(isCudaTerm(placement));
  if (is(other, ValueKind::Function) && endsWith(other->type.view(), "Tensor")) { // x.type() == y.type()
    const Term isCuda = isCudaTerm(placement);
    return scalarValue(startsWith(other->type.view(), "torch.cuda.") ? isCuda : notTerm(isCuda));
  }
  const Value asked = asDevice(call, other);
  if (text && !is(asked, ValueKind::Device) && placement.kind != PlacementKind::Symbol) // "auto"
    return scalarValue(intTerm(0));
  if (is(other, ValueKind::Device) && placement.kind == PlacementKind::Cuda &&
      (device->pinned ? isWithoutIndex(other) : other->pinned && isWithoutIndex(device)))
    return scalarValue(intTerm(0));
  return is(asked, ValueKind::Device) && asked->placement.isKnown()
             ? scalarValue(sameDeviceTerm(placement, call.row.resolve(asked->placement)))
         : is(asked, ValueKind::Device) || is(asked, ValueKind::Unknown)
             ? scalarValue(applyTerm(isDeviceOfUnknown, {call.machine.freshScalar(call)}))
             : unknownValue();
}

constexpr const char *isNoneQuestion = "is None"; ///< of what a caller passes

Value isNone(const Value &value) {
  if (is(value, ValueKind::Null))
    return scalarValue(intTerm(1));
  if (mayBeLeftOut(value))
    return value->placement.kind == PlacementKind::Symbol
               ? scalarValue(applyTerm(isNoneQuestion, {value->placement.index}))
               : unknownValue();
  return isSomething(value) || is(value, ValueKind::Scalar) ? scalarValue(intTerm(0)) : unknownValue();
}

Value contains(Call &call, const Value &container, const Value &key) {
  if (is(container, ValueKind::Device))
    return namesDevice(call, container, key);
  if (is(container, ValueKind::Function) && container->type == environmentType)
    return hasVariable(call, key);
  const Value held = behind(call, container);
  const auto text = textOf(call, key);
  if (is(held, ValueKind::Record) && held->type == varsType)
    return text ? hasOwnAttribute(call, held->fields.at("object"), *text) : unknownValue();
  if (const auto elements = isDict(held) ? std::nullopt : elementsOf(call, container); elements && text) {
    bool areTexts = true, isAmong = false;
    for (const Value &each : *elements) {
      const auto other = textOf(call, each);
      areTexts &= other.has_value();
      isAmong |= other == text;
    }
    return isAmong || areTexts ? scalarValue(intTerm(isAmong)) : unknownValue();
  }
  const std::optional<bool> isThere = isDict(held) ? hasKey(call.row, held, key) : std::nullopt;
  return isThere ? scalarValue(intTerm(*isThere)) : unknownValue();
}

Value negated(const Value &value) {
  return is(value, ValueKind::Scalar) ? scalarValue(notTerm(value->term)) : value;
}

// None, a text or number, a tuple, an object: are they certainly of different kinds?
bool areOfDifferentKinds(const Value &a, const Value &b) {
  const auto kind = [](const Value &value) {
    return is(value, ValueKind::Null)      ? 1
           : is(value, ValueKind::Scalar)  ? 2
           : is(value, ValueKind::List)    ? 3
           : is(value, ValueKind::Address) ? 4
                                           : 0;
  };
  // Types of tensors, as x.type() names them.
  if (is(a, ValueKind::Function) && is(b, ValueKind::Function) && endsWith(a->type.view(), "Tensor") &&
      endsWith(b->type.view(), "Tensor"))
    return a->type != b->type;
  const int first = kind(a), second = kind(b);
  return first != 0 && second != 0 && first != second && first + second != 7; // a list is an address
}

// What tells a value that is not known from others: where it comes from, or what its variable, operand
// `variable`, keeps of it from now on. Of `a.b` and `a["b"]` the variable is `a`.
Term identityOf(Call &call, const Value &unknown, std::size_t variable) {
  const auto known = [](const Value &value) { return isOpen(value) ? value->origin : value->term; };
  if (known(unknown))
    return known(unknown);
  const Term fresh = call.machine.freshScalar(call);
  const Address at = call.addressOf(variable);
  if (!at.valid())
    return fresh;
  const std::string_view text = call.fact.operands[0].text.view();
  const std::string_view path = text.substr(std::min(text.find_first_of(".["), text.size()));
  Memory &memory = call.machine.memory;
  const Value held = memory.read(call.row, at);
  if (is(held, ValueKind::Unknown)) {
    const Term whole = known(held) ? known(held) : fresh;
    if (!known(held))
      memory.write(call.row, at, withIdentity(whole));
    return path.empty() ? whole : pathFrom(whole, std::string(path));
  }
  const Address object = is(held, ValueKind::Address) ? held->address : at;
  const Address field = path.size() > 1 ? object.field(Name(std::string(path.substr(1)))) : Address();
  if (field.valid() && is(unknown, ValueKind::Unknown) &&
      is(memory.read(call.row, object), ValueKind::Record) && same(memory.read(call.row, field), unknown))
    memory.write(call.row, field, withIdentity(fresh));
  return fresh;
}

// The answer to a question about what is not known: the same whenever it is asked of one value.
Value answerOf(Call &call, const char *question, const Value &unknown, std::size_t variable) {
  return scalarValue(call.row.resolve(applyTerm(question, {identityOf(call, unknown, variable)})));
}

// An object that the program has made, and no other.
bool isOneObject(const Value &value) {
  return is(value, ValueKind::Address) && kindOf(value->address.root) == RootKind::Heap &&
         !value->address.path;
}

// left is right
Value isSame(Call &call, const Value &left, const Value &right) {
  const bool isOpenQuestion = is(left, ValueKind::Unknown) && !call.frame.function.isModel;
  if (is(right, ValueKind::Null))
    return isOpenQuestion ? answerOf(call, isNoneQuestion, left, 2) : isNone(left);
  if (is(left, ValueKind::Null))
    return isNone(right);
  if (is(left, ValueKind::Scalar) && is(right, ValueKind::Scalar))
    return onValues(call, "==", left, right);
  if (isOneObject(left) && isOneObject(right))
    return scalarValue(intTerm(left->address.root == right->address.root));
  if (isOpenQuestion && isOneObject(right))
    return scalarValue(
        call.row.resolve(applyTerm("is", {identityOf(call, left, 2), intTerm(right->address.root)})));
  if (areOfDifferentKinds(left, right))
    return scalarValue(intTerm(0));
  const bool areMade =
      is(left, ValueKind::Address) || is(right, ValueKind::Address); // elements of lists, say
  return areMade ? scalarValue(guess(call.machine.freshScalar(call))) : unknownValue();
}

// Of device.type, which is compared with a text, the device; what nothing is known of is one then.
Value deviceOfType(const Call &call, const Value &type, const Value &other) {
  static const Name name("type");
  const auto text = textOf(call, other);
  if (!text || !parseDevice(*text) || !isOpen(type) || !applies(type->origin, op::inner) ||
      devicetidy::textOf(type->origin->args[1]) != name)
    return type;
  const std::string_view written = type->function.view();
  return asChosenDevice(openValue(type->origin->args[0], Name(written.substr(0, written.rfind('.')))));
}

// `value`, or what tells it from others where it is not known.
Value asAsked(Call &call, const Value &value, const Value &other) {
  const bool isOpenQuestion = is(value, ValueKind::Unknown) && is(other, ValueKind::Scalar) &&
                              call.addressOf(2).valid() && !call.frame.function.isModel;
  return isOpenQuestion ? scalarValue(identityOf(call, value, 2)) : value;
}

// text in ("a", "b"): one of them, or none. Nothing where that is known, or no such question.
Outcomes oneOfTexts(Call &call, const Value &text, const Value &container, bool isAsked) {
  const auto texts = isDict(behind(call, container)) ? std::nullopt : elementsOf(call, container);
  if (!texts || texts->empty() || texts->size() > mostTexts || textOf(call, text) ||
      !std::all_of(texts->begin(), texts->end(), [&](const Value &each) { return textOf(call, each); }))
    return {};
  const Value asked = asAsked(call, text, texts->front());
  Outcomes outcomes;
  bool canBeNone = true;
  Row other = call.row;
  for (const Value &each : *texts) {
    const Value isIt = onValues(call, "==", asked, each);
    if (!is(isIt, ValueKind::Scalar))
      return {};
    Row row = other;
    if (row.assume(isIt->term, 1))
      outcomes.push_back({std::move(row), scalarValue(intTerm(isAsked))});
    canBeNone = canBeNone && other.assume(isIt->term, 0);
    if (!canBeNone)
      break;
  }
  if (canBeNone)
    outcomes.push_back({std::move(other), scalarValue(intTerm(!isAsked))});
  return outcomes;
}

std::optional<Outcomes> compareWord(Call &call, const Effect &) {
  Argument left = argumentAt(call, 0), right = argumentAt(call, 1);
  left.value = deviceOfType(call, left.value, right.value);
  const std::string how = sign(call);
  if (how == "is" || how == "isnot") {
    const Value result = isSame(call, left.value, right.value);
    return call.done(how == "is" ? result : negated(result));
  }
  if (how == "in" || how == "notin") {
    if (std::optional<Outcomes> outcomes = callSpecial(call, right, "__contains__", {left})) {
      for (Outcome &each : *outcomes)
        each.result = how == "in" ? each.result : negated(each.result);
      return outcomes;
    }
    if (Outcomes outcomes = oneOfTexts(call, left.value, right.value, how == "in"); !outcomes.empty())
      return outcomes;
    const Value result = answered(call, contains(call, right.value, left.value));
    return call.done(how == "in" ? result : negated(result));
  }
  if (const auto number = numberIn(left.value); number && is(right.value, ValueKind::Scalar))
    if (const auto other = numberOf(call.row.resolve(right.value->term)); other && isOneOf(how, {"==", "!="}))
      return call.done(scalarValue(intTerm((*number == *other) == (how == "=="))));
  static const std::map<std::string, std::string> methods = {{"==", "__eq__"}, {"!=", "__ne__"},
                                                             {"<", "__lt__"},  {"<=", "__le__"},
                                                             {">", "__gt__"},  {">=", "__ge__"}};
  if (const auto method = methods.find(how); method != methods.end())
    if (std::optional<Outcomes> outcomes = callSpecial(call, left, method->second, {right}))
      return outcomes;
  if (isTensor(left) || isTensor(right))
    return onTensors(call, how, left, right);
  if ((how == "==" || how == "!=") &&
      (is(left.value, ValueKind::Device) || is(right.value, ValueKind::Device))) {
    const bool isLeft = is(left.value, ValueKind::Device);
    const Value result =
        compareDevice(call, isLeft ? left.value : right.value, isLeft ? right.value : left.value);
    return call.done(how == "==" ? result : negated(result));
  }
  if ((how == "==" || how == "!=") && areOfDifferentKinds(left.value, right.value))
    return call.done(scalarValue(intTerm(how == "!=")));
  return call.done(answered(call, onValues(call, how, asAsked(call, left.value, right.value), right.value)));
}

// What a pattern of `match` takes for a sequence or a mapping: texts are neither.
std::optional<Outcomes> isKindWord(Call &call, const Effect &) {
  const Value value = call.operand(0), held = behind(call, value);
  if (is(value, ValueKind::Unknown) || is(value, ValueKind::Tensor) ||
      (is(held, ValueKind::Record) && !isDict(held)))
    return call.done(unknownValue());
  const bool isIt = sign(call) == "sequence" ? is(held, ValueKind::List) : isDict(held);
  return call.done(scalarValue(intTerm(isIt)));
}

// FLAG, of a library of which nothing is known; its classes and functions are true.
bool isConstantOfLibrary(const Value &value) {
  if (!is(value, ValueKind::Function) || startsWith(value->type.view(), classPrefix))
    return false;
  const std::string_view name = value->type.view(), last = name.substr(name.rfind('.') + 1);
  return last.size() > 1 &&
         std::none_of(last.begin(), last.end(), [](char c) { return c >= 'a' && c <= 'z'; });
}

Value truthOf(const Call &call, const Value &value) {
  if (is(value, ValueKind::Null))
    return scalarValue(intTerm(0));
  if (const auto text = textOf(call, value))
    return scalarValue(intTerm(!text->empty()));
  if (is(value, ValueKind::Scalar)) { // that an option is given says nothing more of it
    const Term term = call.row.resolve(value->term);
    return scalarValue(isOption(term) ? call.row.resolve(applyTerm("truth", {term})) : term);
  }
  if (isConstantOfLibrary(value))
    return scalarValue(call.row.resolve(applyTerm("truth", {textTerm(value->type)})));
  const Value held = behind(call, value);
  if (is(held, ValueKind::List))
    return isSummary(held) ? unknownValue() : scalarValue(intTerm(!held->elements.empty()));
  return is(value, ValueKind::Tensor) || is(value, ValueKind::Unknown) || isDict(held)
             ? unknownValue()
             : scalarValue(intTerm(1));
}

// A model of a library is written so that what it tests holds in special cases only: it does not where that
// is not known.
std::optional<Outcomes> truthWord(Call &call, const Effect &) {
  const Argument asked = argumentAt(call, 0);
  for (const char *method : {"__bool__", "__len__"})
    if (std::optional<Outcomes> outcomes = callSpecial(call, asked, method, {})) {
      for (Outcome &outcome : *outcomes) {
        const Value truth = truthOf(call, outcome.result);
        outcome.result = is(truth, ValueKind::Unknown) ? scalarValue(call.machine.freshScalar(call)) : truth;
      }
      return outcomes;
    }
  const Value truth = truthOf(call, asked.value);
  if (!is(truth, ValueKind::Unknown))
    return call.done(truth);
  return call.done(call.frame.function.isModel ? scalarValue(intTerm(0))
                                               : answerOf(call, "truth", call.operand(0), 1));
}

std::optional<Outcomes> notWord(Call &call, const Effect &asked) {
  std::optional<Outcomes> outcomes = truthWord(call, asked);
  for (Outcome &outcome : *outcomes)
    outcome.result = scalarValue(notTerm(outcome.row.resolve(outcome.result->term)));
  return outcomes;
}

std::optional<Outcomes> bothWord(Call &call, const Effect &) {
  const Value left = call.operand(0), right = call.operand(1);
  const bool areNumbers = is(left, ValueKind::Scalar) && is(right, ValueKind::Scalar);
  return call.done(
      answered(call, areNumbers ? operatorValue(call.row, op::bitAnd, {left, right}, true) : unknownValue()));
}

} // namespace
} // namespace python

Words pythonComparisonWords() {
  return {{{"py_compare", python::compareWord},
           {"py_truth", python::truthWord},
           {"py_not", python::notWord},
           {"py_is_kind", python::isKindWord},
           {"py_both", python::bothWord}},
          {},
          {}};
}

} // namespace devicetidy
