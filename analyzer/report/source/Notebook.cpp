#include "analyzer/report/source/Notebook.h"

#include <nlohmann/json.hpp>

namespace devicetidy {
namespace {

using Json = nlohmann::ordered_json;

// The line of each string in a JSON text, in the order of the text.
std::vector<std::uint32_t> linesOfStrings(std::string_view json) {
  std::vector<std::uint32_t> lines;
  std::uint32_t line = 1;
  for (std::size_t i = 0; i < json.size(); ++i) {
    line += json[i] == '\n';
    if (json[i] != '"')
      continue;
    lines.push_back(line);
    for (++i; i < json.size() && json[i] != '"'; ++i)
      i += json[i] == '\\';
  }
  return lines;
}

class Reader {
public:
  explicit Reader(std::string_view text) : stringLines(linesOfStrings(text)) {}

  /// Visits all strings in their order, which is that of `stringLines`.
  void visit(const Json &value, bool isTop = false) {
    if (value.is_string())
      ++strings;
    else if (value.is_array())
      for (const Json &each : value)
        visit(each);
    else if (value.is_object())
      for (const auto &[key, each] : value.items()) {
        ++strings; // the key
        if (isTop && key == "cells" && each.is_array())
          for (const Json &cell : each)
            visitCell(cell);
        else
          visit(each);
      }
  }

  Notebook result;

private:
  void visitCell(const Json &cell) {
    ++cells;
    if (!cell.is_object())
      return visit(cell);
    const auto kind = cell.find("cell_type");
    const bool isCode = kind != cell.end() && *kind == "code";
    for (const auto &[key, value] : cell.items()) {
      ++strings;
      if (isCode && key == "source")
        addSource(value);
      else
        visit(value);
    }
  }

  void addSource(const Json &source) {
    const Json pieces = source.is_array() ? source : Json::array({source});
    lineInCell = 1;
    addLine();
    for (const Json &piece : pieces)
      if (piece.is_string()) {
        add(piece.get_ref<const std::string &>());
        ++strings;
      }
    add("\n"); // each cell ends a line; the one that begins here is not there
    result.lines.pop_back();
  }

  void add(const std::string &text) {
    result.lines.back().inFile = lineOfString();
    for (char c : text) {
      result.code += c;
      if (c == '\n') {
        ++lineInCell;
        addLine();
      }
    }
  }

  void addLine() { result.lines.push_back({cells, lineInCell, lineOfString()}); }

  std::uint32_t lineOfString() const {
    return stringLines.empty() ? 1 : stringLines[std::min(strings, stringLines.size() - 1)];
  }

  const std::vector<std::uint32_t> stringLines;
  std::size_t strings = 0;
  std::uint32_t cells = 0, lineInCell = 1;
};

} // namespace

Notebook readNotebook(std::string_view json) {
  const Json file = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  Reader reader(json);
  if (!file.is_discarded())
    reader.visit(file, true);
  return std::move(reader.result);
}

} // namespace devicetidy
