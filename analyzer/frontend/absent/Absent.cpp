//===- Absent.cpp - the front end of a build that reads no C++ -------------===//
#include "analyzer/frontend/IncludeScan.h"
#include "analyzer/frontend/Lower.h"
#include "analyzer/frontend/Preamble.h"

namespace devicetidy::frontend {

Unit lowerTranslationUnit(const std::string &, const std::string &file, const std::vector<std::string> &,
                          const LowerOptions &, const LowerExtras &) {
  Unit unit;
  unit.mainFile = Name(file);
  unit.hasFatalError = true;
  unit.parseErrors.push_back(file + ":1:1: error: this device-tidy reads Python only");
  return unit;
}

std::uint32_t identifierHash(std::string_view) { return 0; }

bool buildPreamble(const std::string &, const std::vector<std::string> &, const LowerOptions &, Preamble &) {
  return false;
}

std::vector<std::string> withoutForcedIncludes(const std::vector<std::string> &arguments) {
  return arguments;
}

LeadingIncludes leadingIncludes(const std::string &, const IncludeSearch &) { return {}; }

} // namespace devicetidy::frontend
