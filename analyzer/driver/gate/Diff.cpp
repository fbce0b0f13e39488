#include "analyzer/driver/gate/Diff.h"

#include "llvm/ADT/SmallVector.h"

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <utility>

namespace devicetidy::driver {
namespace {

using llvm::StringRef;

/// The path after "+++ ", which git puts in quotes when it has control characters, quotes or backslashes.
std::string diffPath(StringRef written) {
  if (!written.consume_front("\""))
    return written.rtrim("\t").str(); // a tab ends a path with blanks in it
  std::string path;
  for (std::size_t i = 0; i < written.size() && written[i] != '"'; ++i) {
    if (written[i] != '\\' || i + 1 == written.size()) {
      path += written[i];
      continue;
    }
    const char code = written[++i];
    static constexpr StringRef codes = "abtnvfr", meanings = "\a\b\t\n\v\f\r";
    unsigned octal = 0;
    if (const std::size_t known = codes.find(code); known != StringRef::npos)
      path += meanings[known];
    else if (i + 2 < written.size() && !written.substr(i, 3).getAsInteger(8, octal)) {
      path += static_cast<char>(octal);
      i += 2;
    } else
      path += code;
  }
  return path;
}

/// "12,3" or "12": first line and number of lines.
std::pair<std::uint32_t, std::uint32_t> span(StringRef text) {
  std::uint32_t line = 0, count = 1;
  const auto [first, second] = text.split(',');
  first.getAsInteger(10, line);
  second.getAsInteger(10, count);
  return {line, count};
}

/// The lines of a hunk that are still to come: what they look like means nothing else.
struct HunkBody {
  std::uint32_t oldLines = 0, newLines = 0;

  bool takes(StringRef line) {
    if (oldLines == 0 && newLines == 0)
      return false;
    if (line.starts_with("\\")) // not a line: it says that the last one has no line end
      return true;
    if (!line.starts_with("+") && oldLines > 0)
      --oldLines;
    if (!line.starts_with("-") && newLines > 0)
      --newLines;
    return true;
  }
};

} // namespace

void addDiff(StringRef diff, const std::string &root, LineFilter &filter) {
  std::string file;
  HunkBody body;
  while (!diff.empty()) {
    StringRef line;
    std::tie(line, diff) = diff.split('\n');
    if (body.takes(line))
      continue;
    if (line.consume_front("+++ ")) {
      const std::string path = diffPath(line);
      file = path == "/dev/null" ? std::string() : root + "/" + StringRef(path).drop_front(2).str();
    } else if (line.consume_front("@@ -")) {
      llvm::SmallVector<StringRef, 4> parts;
      line.split(parts, ' ');
      const auto [oldLine, oldCount] = span(parts[0]);
      const auto [newLine, newCount] = span(parts.size() > 1 ? parts[1].ltrim('+') : StringRef("0,0"));
      body = {oldCount, newCount};
      if (!file.empty())
        filter.addPath(file, newCount ? LineFilter::Range(newLine, newLine + newCount - 1)
                                      : LineFilter::Range(std::max(newLine, 1u), newLine + 1));
    }
  }
}

} // namespace devicetidy::driver
