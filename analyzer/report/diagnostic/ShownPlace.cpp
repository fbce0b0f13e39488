#include "analyzer/report/diagnostic/ShownPlace.h"

#include <algorithm>

namespace devicetidy {

bool showWhereItEnters(Diagnostic &diagnostic, const std::function<bool(const Location &)> &isWanted) {
  Location entry;
  if (diagnostic.cause.valid() && isWanted(diagnostic.cause))
    entry = diagnostic.cause;
  for (const std::vector<Note> *notes : {&diagnostic.related, &diagnostic.notes})
    for (const Note &note : *notes)
      if (!entry.valid() && !note.isAdvice && isWanted(note.where))
        entry = note.where;
  if (!entry.valid())
    return false;
  const auto advice = std::find_if(diagnostic.notes.begin(), diagnostic.notes.end(),
                                   [](const Note &note) { return note.isAdvice; });
  diagnostic.notes.insert(advice, {diagnostic.where, "the operation that fails is here", false});
  diagnostic.where = entry;
  diagnostic.ranges.clear();
  return true;
}

} // namespace devicetidy
