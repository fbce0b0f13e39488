//===- HtmlExcerpt.h - source lines in an HTML page -------------*- C++ -*-===//
//
// The source code around a finding, with line numbers and marked operands.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/report/source/Source.h"

#include <string>
#include <vector>

namespace devicetidy {

/// A range of the source to be marked: in the colour of a device, with the device as a tooltip.
struct SourceMark {
  Location where;
  std::string style; ///< class of the style sheet
  std::string hint;
};

/// A <pre> with the lines of `where`, `context` more on both sides, line numbers and the marks; empty when
/// the file cannot be read. Of long lines and long ranges a part is shown.
std::string htmlExcerpt(SourceCache &sources, const Location &where, const std::vector<SourceMark> &marks,
                        std::uint32_t context);

} // namespace devicetidy
