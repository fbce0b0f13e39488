#include "analyzer/solve/domain/Widening.h"

#include "analyzer/solve/domain/DeviceTerms.h"
#include "analyzer/solve/domain/Hashing.h"
#include "analyzer/solve/domain/TermOps.h"

#include <algorithm>

namespace devicetidy {
namespace {

bool isUnknown(const Value &value) { return is(value, ValueKind::Unknown); }

// What takes few values: a text, a flag, what the user chose.
bool isChoice(Term term) {
  const auto number = constantOf(term);
  return number ? *number == 0 || *number == 1 : term->kind != TermKind::Apply;
}

bool mayHoldNumbers(const Value &value) {
  return is(value, ValueKind::Scalar) || is(value, ValueKind::Record) || is(value, ValueKind::List) ||
         is(value, ValueKind::Function);
}

Value partsWithoutNumbers(const Value &value, std::uint64_t place) {
  ValueData data = *value;
  bool isChanged = false;
  auto replace = [&](Value &part, std::uint64_t where = 0) {
    Value next = withoutNumbers(part, where);
    isChanged |= next != part;
    part = std::move(next);
  };
  for (auto &[name, field] : data.fields)
    if (mayHoldNumbers(field))
      replace(field, place ? mix(place, textHash(name)) : 0);
  for (Value &element : data.elements)
    replace(element);
  for (Value &alternative : data.summary)
    replace(alternative);
  if (!isChanged)
    return value;
  const bool isOfNothingElse = is(value, ValueKind::List) &&
                               std::all_of(data.elements.begin(), data.elements.end(), isUnknown) &&
                               std::all_of(data.summary.begin(), data.summary.end(), isUnknown);
  return isOfNothingElse ? unknownValue() : makeValue(std::move(data));
}

} // namespace

Value withoutNumbers(const Value &value, std::uint64_t place) {
  switch (value->kind) {
  case ValueKind::Scalar:
    if (isChoice(value->term))
      return value;
    return place ? withIdentity(bounded({intTerm(std::int64_t(place >> 1))})) : unknownValue();
  case ValueKind::Record:
  case ValueKind::List:
  case ValueKind::Function:
    return partsWithoutNumbers(value, place);
  default:
    return value;
  }
}

Store withoutNumbers(const Store &store, const Store &like, Store result) {
  Store::forEachDifference(like, store, [&](RootId root, const Value &, const Value &value) {
    result.set(root, value ? withoutNumbers(value, mix(root, 1)) : nullptr);
  });
  return result;
}

} // namespace devicetidy
