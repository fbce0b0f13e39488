#include "analyzer/solve/domain/Widening.h"

#include <algorithm>

namespace devicetidy {
namespace {

bool isUnknown(const Value &value) { return is(value, ValueKind::Unknown); }

Value partsWithoutNumbers(const Value &value) {
  ValueData data = *value;
  bool isChanged = false;
  auto replace = [&](Value &part) {
    Value next = withoutNumbers(part);
    isChanged |= next != part;
    part = std::move(next);
  };
  for (auto &[name, field] : data.fields)
    replace(field);
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

Value withoutNumbers(const Value &value) {
  switch (value->kind) {
  case ValueKind::Scalar:
    return unknownValue();
  case ValueKind::Record:
  case ValueKind::List:
  case ValueKind::Function:
    return partsWithoutNumbers(value);
  default:
    return value;
  }
}

Store withoutNumbers(const Store &store, const Store &like, Store result) {
  Store::forEachDifference(like, store, [&](RootId root, const Value &, const Value &value) {
    result.set(root, value ? withoutNumbers(value) : nullptr);
  });
  return result;
}

} // namespace devicetidy
