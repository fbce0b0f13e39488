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

void forgetNumbers(Row &row) {
  std::vector<std::pair<RootId, Value>> changed;
  row.store.forEach([&](RootId root, const Value &value) {
    if (Value next = withoutNumbers(value); next != value)
      changed.emplace_back(root, std::move(next));
  });
  for (auto &[root, value] : changed)
    row.store.set(root, std::move(value));
  row.guessed = true;
}

} // namespace devicetidy
