//===- Diagnostic.h - a finding in words ------------------------*- C++ -*-===//
#pragma once

#include "analyzer/facts/Location.h"

#include <string>
#include <vector>

namespace devicetidy {

enum class Severity : std::uint8_t { Warning, Error };

struct Note {
  Location where;
  std::string text;
};

struct Diagnostic {
  Severity severity = Severity::Warning;
  std::string check;
  Location where;
  std::string message;
  std::vector<Location> ranges; ///< underlined beside the caret
  std::vector<Note> notes;      ///< in reading order; the fix comes last
};

} // namespace devicetidy
