#include "analyzer/report/diagnostic/Templates.h"

namespace devicetidy {

std::string_view noteTemplate(const CheckInfo &info, const std::string &key) {
  for (const NoteTemplate &note : info.notes)
    if (note.key == key)
      return note.text;
  return {};
}

std::string fillTemplate(std::string_view text, const std::map<std::string, std::string> &fields) {
  std::string result;
  while (!text.empty()) {
    const std::size_t open = text.find('{');
    result += text.substr(0, open);
    if (open == std::string_view::npos)
      break;
    const std::size_t close = text.find('}', open);
    const auto field = close == std::string_view::npos
                           ? fields.end()
                           : fields.find(std::string(text.substr(open + 1, close - open - 1)));
    if (field == fields.end()) {
      result += '{';
      text.remove_prefix(open + 1);
      continue;
    }
    result += field->second;
    text.remove_prefix(close + 1);
  }
  return result;
}

} // namespace devicetidy
