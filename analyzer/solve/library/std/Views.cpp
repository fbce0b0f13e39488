#include "analyzer/solve/library/std/Views.h"

#include "analyzer/solve/domain/Positions.h"

namespace devicetidy {
namespace {

const Name firstField("@first"), countField("@count");

} // namespace

Value viewOf(Name type, const Value &first, Term count) {
  if (!isPosition(first))
    return unknownValue();
  return recordValue(type, {{firstField, first}, {countField, scalarValue(count)}});
}

bool isView(const Value &value) {
  return is(value, ValueKind::Record) && value->fields.count(firstField) && value->fields.count(countField) &&
         isPosition(value->fields.at(firstField)) && is(value->fields.at(countField), ValueKind::Scalar);
}

Address beginOf(const Value &view) { return view->fields.at(firstField)->address; }

Term countOf(const Value &view) { return view->fields.at(countField)->term; }

} // namespace devicetidy
