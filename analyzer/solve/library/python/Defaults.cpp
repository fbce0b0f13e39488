//===- Defaults.cpp - parameters that nothing was given for ---===//
#include "analyzer/solve/library/python/Defaults.h"

#include "analyzer/solve/domain/TermOps.h"
#include "analyzer/solve/library/python/Lists.h"
#include "analyzer/solve/library/python/OpenValues.h"
#include "analyzer/solve/library/python/Words.h"

namespace devicetidy {
namespace python {

using models::Effect;

Value passedOn(const Call &call, const Row &row, const Value &spread, const Value &key) {
  if (spread && !key && is(behind(call, spread), ValueKind::List))
    return spread;
  return spread && isOpen(spread) ? key ? entryOfOpen(call, row, spread, key) : spread : unknownValue();
}

namespace {

const Name perhapsType("python::perhaps");

} // namespace

bool isPerhaps(const Value &value) { return value->type == perhapsType; }

Value perhapsGiven(const Call &call, const Row &row, const Value &spread, std::string_view name) {
  const Value passed = passedOn(call, row, spread, scalarValue(textTerm(Name(name))));
  const Term member = applyTerm(op::member, {call.machine.freshScalar(call), textTerm(Name(name))});
  return typed(isOpen(passed) ? passed : withIdentity(member), perhapsType);
}

namespace {

// What an entry is given for a parameter of no known type is like its default, and so is what ** may bring:
// numbers and texts are decided outside, all else is as the default says.
std::optional<Outcomes> defaultWord(Call &call, const Effect &) {
  const Value otherwise = call.operand(1), passed = call.operand(0);
  if (isPerhaps(passed) && !is(otherwise, ValueKind::Scalar))
    return call.done(otherwise);
  const Value given = isPerhaps(passed) ? typed(passed, {}) : passed;
  const bool isOfEntry = !call.frame.caller; // callers in the program say what they give
  if (is(given, ValueKind::Tensor) && is(otherwise, ValueKind::Null))
    return call.done(isOfEntry ? leftOutOr(given) : given);
  const Value held = behind(call, otherwise);
  const bool isSentinel =
      is(held, ValueKind::Record) && held->fields.empty(); // it says that nothing was given
  const bool mayBeLeftOut = is(otherwise, ValueKind::Tensor) ||
                            (is(given, ValueKind::Address) && is(otherwise, ValueKind::Null)) ||
                            (is(given, ValueKind::Unknown) && is(otherwise, ValueKind::Address) &&
                             (is(held, ValueKind::List) || isDict(held) || isSentinel));
  if (isOfEntry && mayBeLeftOut && !isMissing(given)) { // by the caller
    Outcomes both = call.done(given);
    both.push_back({call.row, otherwise});
    return both;
  }
  if (isMissing(given) || (is(given, ValueKind::Unknown) && is(otherwise, ValueKind::Address)))
    return call.done(otherwise);
  if (!is(given, ValueKind::Unknown) || !is(otherwise, ValueKind::Scalar))
    return call.done(given);
  if (textOf(call, otherwise)) {
    const std::string name = call.fact.operands[0].text.str();
    return call.done(is(asDevice(call, otherwise), ValueKind::Device)
                         ? deviceValue(Placement::symbol(SymbolRole::DeviceChoice,
                                                         symbolTerm(Name("parameter " + name)), Name(name)))
                         : given);
  }
  return call.done(scalarValue(given->term ? given->term : call.machine.freshScalar(call)));
}

} // namespace

} // namespace python

Words pythonDefaultWords() { return {{{"py_default", python::defaultWord}}, {}, {}}; }

} // namespace devicetidy
