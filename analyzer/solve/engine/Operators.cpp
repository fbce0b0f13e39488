#include "analyzer/solve/engine/Operators.h"

#include "analyzer/facts/NameParts.h"
#include "analyzer/solve/domain/Comparisons.h"
#include "analyzer/solve/domain/DeviceTerms.h"
#include "analyzer/solve/domain/TermOps.h"

namespace devicetidy {
namespace {

bool isPointer(Term term) { return term->kind == TermKind::Apply && term->name == op::pointer; }

bool comparesPointers(Name op) { return op == op::negation || op == op::equal || op == op::unequal; }

Term pointerTerm(const Address &address) {
  return applyTerm(op::pointer,
                   {intTerm(address.root),
                    intTerm(static_cast<std::int64_t>(address.path ? address.path->hash >> 1 : 0))});
}

// Built-in comparisons are those of device types, which have no index.
Term sameTypeTerm(const Row &row, const Value &a, const Value &b) {
  auto typeOf = [&](const Value &value) {
    Placement placement = row.resolve(value->placement);
    if (placement.kind == PlacementKind::Cuda)
      placement.index = currentCudaIndex();
    return placement;
  };
  return sameDeviceTerm(typeOf(a), typeOf(b));
}

// Two objects that the program made are not at one place; one from outside may be any.
bool areApart(Term a, Term b) {
  const auto isMade = [](Term term) {
    return isPointer(term) && kindOf(static_cast<RootId>(*constantOf(term->args[0]))) != RootKind::Outside;
  };
  return isMade(a) && isMade(b) && a->args[0] != b->args[0];
}

// A pointer that is known is not null.
std::optional<bool> comparePointers(Name op, const std::vector<Term> &terms) {
  if (op == op::negation && terms.size() == 1 && isPointer(terms[0]))
    return false;
  const bool isEquality = op == op::equal || op == op::unequal;
  if (isEquality && terms.size() == 2 && areApart(terms[0], terms[1]))
    return op == op::unequal;
  if (!isEquality || terms.size() != 2 || terms[0] == terms[1] ||
      !(isPointer(terms[0]) || isPointer(terms[1])) || !(constantOf(terms[0]) || constantOf(terms[1])))
    return std::nullopt;
  return op == op::unequal;
}

// No device or handle has a negative number, but programs take `(cudaStream_t)-1` or `~0` for no stream.
bool isSentinelOfHandles(Name op, const std::vector<Value> &operands, const std::vector<Term> &terms) {
  if (terms.size() != 2 || (op != op::equal && op != op::unequal))
    return false;
  for (const std::size_t i : {0, 1})
    if (is(operands[i], ValueKind::Device) &&
        (constantOf(terms[1 - i]).value_or(0) < 0 || applies(terms[1 - i], op::complement)))
      return true;
  return false;
}

// An index is -1 or more, so `index == -1` is `!(-1 < index)`: the form rows learn from.
Term asIndexTest(Term term) {
  if (term->kind != TermKind::Apply)
    return term;
  if (term->name == op::negation)
    return notTerm(asIndexTest(term->args[0]));
  if (term->name != op::equal)
    return term;
  for (std::size_t i : {0, 1}) {
    const Term above = applyTerm(op::less, {intTerm(-1), term->args[1 - i]});
    if (constantOf(term->args[i]) == -1 && deviceWithIndex(above))
      return notTerm(above);
  }
  return term;
}

} // namespace

Value operatorValue(const Row &row, Name op, const std::vector<Value> &operands, bool areIntegers) {
  const bool isEquality = op == op::equal || op == op::unequal;
  if (isEquality && operands.size() == 2 && is(operands[0], ValueKind::Device) &&
      is(operands[1], ValueKind::Device)) {
    const Term equal = row.resolve(sameTypeTerm(row, operands[0], operands[1]));
    return scalarValue(op == op::equal ? equal : notTerm(equal));
  }
  std::vector<Term> terms;
  for (const Value &value : operands) {
    if (is(value, ValueKind::Scalar))
      terms.push_back(value->term);
    else if (is(value, ValueKind::Null))
      terms.push_back(intTerm(0));
    else if (is(value, ValueKind::Address) && comparesPointers(op))
      terms.push_back(pointerTerm(value->address));
    else if (is(value, ValueKind::Device) && operands.size() == 2)
      terms.push_back(deviceTerm(row.resolve(value->placement)));
    else
      return unknownValue();
  }
  if (const std::optional<bool> compared = comparePointers(op, terms))
    return scalarValue(intTerm(*compared));
  if (isSentinelOfHandles(op, operands, terms))
    return scalarValue(intTerm(op == op::unequal));
  Term result = applyTerm(op, std::move(terms));
  if (areIntegers)
    result = asIndexTest(compareIntegers(result));
  return scalarValue(row.resolve(asAvailability(result)));
}

Term caseTerm(const Row &row, const Value &value, std::int64_t label) {
  if (is(value, ValueKind::Device))
    return sameTypeTerm(row, value, deviceValue(deviceOfEnum(label)));
  if (!is(value, ValueKind::Scalar))
    return nullptr;
  return applyTerm(op::equal, {row.resolve(value->term), intTerm(label)});
}

Name overloadedBy(Name function) {
  constexpr std::string_view word = "operator";
  const std::string_view last = lastPart(function.view());
  return startsWith(last, word) ? Name(last.substr(word.size())) : Name();
}

} // namespace devicetidy
