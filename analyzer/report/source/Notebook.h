//===- Notebook.h - the code of a Jupyter notebook --------------*- C++ -*-===//
//
// The code of a notebook is that of its cells, one after the other, as the front end joins them (parse.py).
// People know the cells, and tools that compare files know the lines of the file.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace devicetidy {

/// Where a line of the code is.
struct NotebookLine {
  std::uint32_t cell = 0; ///< from 1; cells without code count
  std::uint32_t line = 0; ///< of the cell, from 1
  std::uint32_t inFile = 1;
};

struct Notebook {
  std::string code;
  std::vector<NotebookLine> lines;
};

/// Reads the text of a file; no code when it is no notebook.
Notebook readNotebook(std::string_view json);

} // namespace devicetidy
