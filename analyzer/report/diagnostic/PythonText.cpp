#include "analyzer/report/diagnostic/PythonText.h"

#include "analyzer/facts/Language.h"
#include "analyzer/models/PythonSpelling.h"

namespace devicetidy {

using models::inPython;

void speakPython(Diagnostic &diagnostic) {
  if (!isPython(diagnostic.where.file.view()))
    return;
  diagnostic.message = inPython(std::move(diagnostic.message));
  diagnostic.function = inPython(std::move(diagnostic.function));
  for (std::vector<Note> *notes : {&diagnostic.notes, &diagnostic.related})
    for (Note &note : *notes)
      note.text = inPython(std::move(note.text));
  for (std::vector<Note> &flow : diagnostic.flows)
    for (Note &note : flow)
      note.text = inPython(std::move(note.text));
}

std::string spokenIn(Name file, std::string text) {
  return isPython(file.view()) ? inPython(std::move(text)) : text;
}

} // namespace devicetidy
