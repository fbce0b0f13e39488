#include "analyzer/solve/library/std/Views.h"

#include "analyzer/solve/domain/HiddenFields.h"
#include "analyzer/solve/domain/Positions.h"

namespace devicetidy {
Value viewOf(Name type, const Value &first, Term count) {
  if (!isPosition(first))
    return unknownValue();
  return recordValue(type, {{hidden::first, first}, {hidden::count, scalarValue(count)}});
}

bool isView(const Value &value) {
  return is(value, ValueKind::Record) && value->fields.count(hidden::first) &&
         value->fields.count(hidden::count) && isPosition(value->fields.at(hidden::first)) &&
         is(value->fields.at(hidden::count), ValueKind::Scalar);
}

Address beginOf(const Value &view) { return view->fields.at(hidden::first)->address; }

Term countOf(const Value &view) { return view->fields.at(hidden::count)->term; }

} // namespace devicetidy
