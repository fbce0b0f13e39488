//===- CheckInfo.h - what the registry says about a check -------*- C++ -*-===//
#pragma once

#include "analyzer/solve/Solution.h"

#include <string_view>
#include <vector>

namespace devicetidy {

/// A sentence of a check, looked up by its key.
struct NoteTemplate {
  std::string_view key;
  std::string_view text;
};

/// One entry of checks/checks.json. Templates name their fields in braces: "'{operation}' gets {first}".
struct CheckInfo {
  std::string_view name;
  std::string_view summary;
  Level level;              ///< the surest level at which the check reports
  std::string_view message; ///< template of the one sentence a finding consists of
  std::string_view fix;     ///< template of the last note, which says how to repair the code
  std::vector<NoteTemplate> notes;
  std::string_view page; ///< the documentation page, as Markdown
};

} // namespace devicetidy
