//===- MarkdownTable.h - tables of a page, for tests ------------*- C++ -*-===//
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

namespace devicetidy::test {

/// A table with a heading for every row and column.
struct MarkdownTable {
  std::vector<std::string> columns, rows;
  std::vector<std::vector<std::string>> cells; ///< cells[row][column]
};

/// The cells between the bars of one line, without the blanks around them.
inline std::vector<std::string> splitBars(const std::string &line) {
  std::vector<std::string> cells;
  for (std::size_t from = line.find('|'); from != std::string::npos;) {
    const std::size_t to = line.find('|', from + 1);
    if (to == std::string::npos)
      break;
    std::string cell = line.substr(from + 1, to - from - 1);
    const std::size_t first = cell.find_first_not_of(' ');
    cells.push_back(first == std::string::npos ? std::string()
                                               : cell.substr(first, cell.find_last_not_of(' ') - first + 1));
    from = to;
  }
  return cells;
}

/// The first table below `## heading`. Throws std::runtime_error when there is none, or a row has other cells
/// than the header.
inline MarkdownTable tableUnder(const std::string &page, const std::string &heading) {
  const std::size_t start = page.find("\n## " + heading + "\n");
  if (start == std::string::npos)
    throw std::runtime_error("no section '" + heading + "'");
  MarkdownTable table;
  bool inTable = false;
  for (std::size_t at = page.find('\n', start + 1) + 1; at < page.size();) {
    const std::size_t end = page.find('\n', at);
    const std::string line = page.substr(at, end - at);
    at = end == std::string::npos ? page.size() : end + 1;
    if (line.empty() || line[0] != '|') {
      if (inTable || line.rfind("## ", 0) == 0)
        break;
      continue;
    }
    inTable = true;
    std::vector<std::string> cells = splitBars(line);
    if (table.columns.empty()) {
      table.columns.assign(cells.begin() + 1, cells.end());
    } else if (cells[0].rfind("---", 0) != 0) {
      table.rows.push_back(cells[0]);
      table.cells.emplace_back(cells.begin() + 1, cells.end());
      if (table.cells.back().size() != table.columns.size())
        throw std::runtime_error("row '" + cells[0] + "' of '" + heading +
                                 "' has other cells than its header");
    }
  }
  if (table.rows.empty())
    throw std::runtime_error("no table under '" + heading + "'");
  return table;
}

} // namespace devicetidy::test
