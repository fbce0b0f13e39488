//===- CheckInfo.h - the registry entry of a check --------------*- C++ -*-===//
//
// The name, the sentences and the options of a check, as checks.json has them.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/solve/solution/Solution.h"

#include <string_view>
#include <vector>

namespace devicetidy {

/// A sentence of a check, looked up by its key.
struct NoteTemplate {
  std::string_view key;
  std::string_view text;
};

enum class CheckOptionKind : std::uint8_t {
  Level, ///< a level, or empty for the one of all checks
  Flag,  ///< true or false
  Names, ///< names, with ";" between them
};

/// Something that users can set for one check, as "check.Option" in CheckOptions.
struct CheckOption {
  std::string_view name;
  CheckOptionKind kind;
  std::string_view value; ///< when nothing sets it
  std::string_view help;  ///< what it does, without a full stop
};

/// One entry of checks/checks.json. Templates name their fields in braces: "'{operation}' gets {first}".
struct CheckInfo {
  std::string_view name;
  std::string_view summary;
  Level level;              ///< the highest level at which the check reports
  std::string_view message; ///< template of the one sentence a finding consists of
  std::string_view fix;     ///< template of the last note, which says how to repair the code
  std::vector<NoteTemplate> notes;
  std::vector<CheckOption> options;
  std::string_view page; ///< the documentation page, as Markdown
};

} // namespace devicetidy
