//===- Source.h - the lines of source files ---------------------*- C++ -*-===//
//
// Reads source files once and returns their lines in a printable form.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/facts/Location.h"
#include "analyzer/report/source/Notebook.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace devicetidy {

/// Reads files on demand and returns their lines. The text of a notebook is its code.
class SourceCache {
public:
  /// From now on `file` has this text, regardless of the disk.
  void provide(Name file, std::string text);

  /// From now on `file` counts as one that cannot be read: its text is not what was analysed.
  void withhold(Name file);

  /// Line `number` (from 1) of `file` without its line end, or nothing when there is no such line.
  std::optional<std::string_view> line(Name file, std::uint32_t number);

  /// The text of a range that lies on one line; empty for any other.
  std::string_view text(const Location &where);

  /// The whole file; empty when it cannot be read.
  std::string_view text(Name file);

  /// First byte and end of a range over any number of lines, or nothing when the file has no such place.
  std::optional<std::pair<std::size_t, std::size_t>> bytes(const Location &where);

  /// The range of the bytes from `begin` up to `end`.
  Location range(Name file, std::size_t begin, std::size_t end);

  /// Cell and line of a line of a notebook; nothing for a line of another file.
  std::optional<NotebookLine> cellOf(Name file, std::uint32_t line);

  /// "LINE:COLUMN", in a notebook "cell CELL:LINE:COLUMN".
  std::string spelledPlace(const Location &where);

  /// The place in the file on disk: of a notebook, lines of it without columns.
  Location inFile(const Location &where);

private:
  struct File {
    std::string text;
    std::vector<std::size_t> starts;
    std::vector<NotebookLine> cells; ///< of the lines of a notebook
  };
  const File &load(Name file);
  std::map<Name, File> files;
};

/// Length of the UTF-8 sequence at the start of `text`, which is not empty, or 0 when it is invalid. Sets
/// `code` to the code point.
std::size_t decodeUtf8(std::string_view text, std::uint32_t &code);

/// `text` as valid UTF-8 without control characters: bytes that are not UTF-8 become U+FFFD.
std::string printable(std::string_view text);

/// Columns that `text` takes on a terminal, and in a font of one width.
std::size_t columnWidth(std::string_view text);

/// A source line with the marker line below it.
struct Snippet {
  std::string source;
  std::string marks;
};

/// Draws a caret under byte column `caret` (from 1) of `line` and tildes under `ranges` (byte columns, end
/// exclusive). Tabs are expanded; of a very long line only the part around the caret is shown.
Snippet drawSnippet(std::string_view line, std::uint32_t caret,
                    const std::vector<std::pair<std::uint32_t, std::uint32_t>> &ranges);

} // namespace devicetidy
