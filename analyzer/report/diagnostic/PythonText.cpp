#include "analyzer/report/diagnostic/PythonText.h"

#include "analyzer/report/source/Language.h"

#include <array>
#include <regex>

namespace devicetidy {

std::string inPython(std::string text) {
  static const std::array<std::pair<std::regex, const char *>, 9> spelled = {{
      {std::regex(R"(torch::Device\(torch::kCUDA, (\d+)\))"), "\"cuda:$1\""},
      {std::regex("torch::kCUDA"), "\"cuda\""},
      {std::regex("torch::kCPU"), "\"cpu\""},
      {std::regex("'auto (host|moved) = ([^';]*);?'"), "'$1 = $2'"},
      {std::regex(R"(auto moved = (([\w.]+)\.to))"), "$2 = $1"},
      {std::regex(R"(register_buffer\(\"(\w+)\", \w+\))"), "self.register_buffer(\"$1\", ...)"},
      {std::regex(R"(\.device\(\))"), ".device"},
      {std::regex("Impl::"), "."},
      {std::regex("::"), "."},
  }};
  for (const auto &[pattern, words] : spelled)
    text = std::regex_replace(text, pattern, words);
  return text;
}

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

} // namespace devicetidy
