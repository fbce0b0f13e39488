//===- JsonText.h - JSON of configuration files -----------------*- C++ -*-===//
//
// Parses JSON with the deviations that training programs accept, such as comments.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <nlohmann/json.hpp>

#include <cstddef>
#include <string>

namespace devicerun::doctor {

/// Deeper structures are not built, because configurations are walked recursively.
constexpr int kDeepestJson = 100;

/// A parsed JSON text.
struct JsonText {
  nlohmann::json root;
  std::string repeated; ///< a name that an object has twice; empty: none has
  bool tooDeep = false; ///< it is nested deeper than kDeepestJson
};

/// Throws nlohmann::json::parse_error.
JsonText parseJson(const std::string &text);

/// The text with comments (//, # and /* */) and commas before a closing bracket made blanks, as hjson reads
/// it; every other character stays where it is.
std::string asStrictJson(const std::string &text);

} // namespace devicerun::doctor
