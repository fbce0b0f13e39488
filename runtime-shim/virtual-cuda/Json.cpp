#include "Json.h"

#include <cstdio>

namespace vcuda {
namespace {

// Length of the well-formed UTF-8 sequence at the start of `text`, or 0.
size_t sequenceLength(std::string_view text) {
  auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  unsigned char first = byte(0);
  size_t length = first < 0x80   ? 1
                  : first < 0xC2 ? 0
                  : first < 0xE0 ? 2
                  : first < 0xF0 ? 3
                  : first < 0xF5 ? 4
                                 : 0;
  if (length == 0 || length > text.size())
    return 0;
  for (size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xC0) != 0x80)
      return 0;
  bool overlong = (first == 0xE0 && byte(1) < 0xA0) || (first == 0xF0 && byte(1) < 0x90);
  bool surrogate = first == 0xED && byte(1) >= 0xA0;
  bool beyond = first == 0xF4 && byte(1) >= 0x90;
  return overlong || surrogate || beyond ? 0 : length;
}

void appendEscaped(std::string &out, char c) {
  char escape[8];
  switch (c) {
  case '"':
    out += "\\\"";
    return;
  case '\\':
    out += "\\\\";
    return;
  case '\n':
    out += "\\n";
    return;
  case '\t':
    out += "\\t";
    return;
  default:
    std::snprintf(escape, sizeof(escape), "\\u%04x", static_cast<unsigned>(static_cast<unsigned char>(c)));
    out += escape;
  }
}

} // namespace

std::string quoted(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    size_t length = sequenceLength(text);
    bool special = text[0] == '"' || text[0] == '\\' || static_cast<unsigned char>(text[0]) < 0x20;
    if (length == 0)
      out += "\xEF\xBF\xBD";
    else if (special)
      appendEscaped(out, text[0]);
    else
      out.append(text.substr(0, length));
    text.remove_prefix(length ? length : 1);
  }
  return out + "\"";
}

void JsonLine::key(std::string_view name) {
  if (text_.size() > 1)
    text_ += ", ";
  text_ += '"';
  text_ += name;
  text_ += "\": ";
}

JsonLine &JsonLine::json(std::string_view name, std::string_view value) {
  key(name);
  text_ += value;
  return *this;
}

JsonLine &JsonLine::text(std::string_view name, std::string_view value) { return json(name, quoted(value)); }

JsonLine &JsonLine::number(std::string_view name, double value) {
  char digits[40];
  std::snprintf(digits, sizeof(digits), "%.3f", value);
  return json(name, digits);
}

JsonLine &JsonLine::integer(std::string_view name, long long value) {
  return json(name, std::to_string(value));
}

JsonLine &JsonLine::integers(std::string_view name, c10::ArrayRef<int64_t> values) {
  std::string list = "[";
  for (int64_t value : values)
    list += (list.size() > 1 ? ", " : "") + std::to_string(value);
  return json(name, list + "]");
}

JsonLine &JsonLine::stack(std::string_view name, const CallStack &stack) {
  std::string list = "[";
  for (size_t i = 0; i < stack.count; ++i)
    list += (i ? ", " : "") + quoted(frameText(stack.frames[i]));
  return json(name, list + "]");
}

} // namespace vcuda
