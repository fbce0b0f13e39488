//===- YamlLines.h - the lines of a YAML file -------------------*- C++ -*-===//
//
// Reads keys and values of YAML files line by line. It is not a YAML parser.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace devicerun::doctor {

/// "key: value # comment" without the comment, quotes and blanks.
struct YamlLine {
  std::size_t indent = 0; ///< column of the key, after the "- " of a list too
  std::string key, value;
};

/// YAML files are not parsed: keys are taken as they stand. Nothing for a line without a key.
std::optional<YamlLine> readYamlLine(const std::string &line);
std::string withoutYamlComment(const std::string &line);
std::string unquotedYaml(std::string_view text);

} // namespace devicerun::doctor
