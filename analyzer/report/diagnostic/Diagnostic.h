//===- Diagnostic.h - a finding in words ------------------------*- C++ -*-===//
//
// What all report formats print: sentences with locations, the fix, and whether the finding is suppressed
// or known.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/facts/Location.h"
#include "analyzer/report/fix/Fix.h"
#include "analyzer/report/graph/DeviceGraph.h"
#include "analyzer/solve/solution/Solution.h"

#include <optional>
#include <string>
#include <vector>

namespace devicetidy {

enum class Severity : std::uint8_t { Warning, Error };

/// None: no baseline was given.
enum class BaselineState : std::uint8_t { None, New, Unchanged };

struct Note {
  Location where;
  std::string text;
  bool isAdvice = false; ///< says what to do, not how the tensors got there
};

struct Diagnostic {
  Severity severity = Severity::Warning;
  std::string check;
  Location where;
  Location cause; ///< where the mistake was made, if that is in another function
  std::string message;
  std::vector<Location> ranges; ///< underlined in addition to the caret
  std::vector<Note> notes;      ///< in reading order; the fix comes last

  // For the formats that machines read.
  Level level = Level::Definite;
  std::string function;                 ///< qualified name of the enclosing function or class; may be empty
  std::vector<std::vector<Note>> flows; ///< per tensor its history; each ends at `where`
  std::vector<Note> related;            ///< the notes that belong to no flow
  DeviceGraph graph;                    ///< picture of the flows; empty unless the format draws it
  std::optional<Fix> fix;               ///< a change that can be applied without others
  bool isSuppressed = false;            ///< by a comment
  BaselineState baseline = BaselineState::None;
  std::string
      fingerprint; ///< the same in every run until the finding's own line or that of its cause changes
  /// What the fingerprint was when findings with different causes were one finding; empty where it is the
  /// same.
  std::string formerFingerprint;

  /// Does it count? It does unless a comment suppresses it or the baseline has it.
  bool isActive() const { return !isSuppressed && baseline != BaselineState::Unchanged; }
};

/// The line on which a comment suppresses the diagnostic.
inline const Location &suppressedAt(const Diagnostic &diagnostic) {
  return diagnostic.cause.valid() ? diagnostic.cause : diagnostic.where;
}

} // namespace devicetidy
