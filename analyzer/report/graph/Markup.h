//===- Markup.h - text in HTML and SVG --------------------------*- C++ -*-===//
//
// Escapes and shortens text for HTML and SVG.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <string>
#include <string_view>

namespace devicetidy {

/// `text` as text or attribute value of HTML and XML: valid UTF-8, with the characters that are markup
/// escaped. Characters that are not allowed there, or would reorder the text around them, become U+FFFD.
std::string escapeMarkup(std::string_view text);

/// `text`, which is UTF-8, in at most `columns` columns; what is cut off is "…".
std::string fitColumns(std::string_view text, std::size_t columns);

/// The part of a path behind its last slash.
std::string_view fileName(std::string_view path);

} // namespace devicetidy
