//===- Text.h - text, columns and paths -------------------------*- C++ -*-===//
//
// Small functions on text that several report formats use.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace devicetidy {

/// `path` relative to the directory `root`; unchanged when it is elsewhere, or when `root` is empty.
std::string relativePath(const std::string &path, const std::string &root);

/// The column of a byte column, counted in the UTF-16 code units that editors and SARIF viewers count in.
/// A byte that is not UTF-8 counts as one.
std::uint32_t utf16Column(std::string_view line, std::uint32_t byteColumn);

/// Can `text` be written to a JSON or YAML file? A fix that cannot is left out there.
bool isUtf8(std::string_view text);

/// `text` with at most `limit` bytes, cut between characters and then ended with "...".
std::string cutText(std::string text, std::size_t limit);

} // namespace devicetidy
