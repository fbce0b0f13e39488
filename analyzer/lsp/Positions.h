//===- Positions.h - bytes here, UTF-16 there -------------------*- C++ -*-===//
//
// Facts count columns in bytes from 1, the protocol counts UTF-16 code units from 0.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/facts/Location.h"
#include "analyzer/report/source/Source.h"

#include "llvm/Support/LSP/Protocol.h"

#include <cstddef>
#include <string_view>

namespace devicetidy::lsp {

/// A range of `where.file`, whose text `sources` has. One without an end covers the name that begins there.
llvm::lsp::Range toRange(SourceCache &sources, const Location &where);

/// As toRange, but a range without an end is the place before what begins there.
llvm::lsp::Range toEditedRange(SourceCache &sources, const Location &where);

/// The byte offset of a position in `text`. Past the end of a line it is the line's end, past the last line
/// the end of the text.
std::size_t offsetOf(std::string_view text, const llvm::lsp::Position &position);

} // namespace devicetidy::lsp
