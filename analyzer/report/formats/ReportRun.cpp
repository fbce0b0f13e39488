#include "analyzer/report/formats/ReportRun.h"

namespace devicetidy {

std::string_view levelWord(const Diagnostic &diagnostic) {
  if (diagnostic.severity == Severity::Error || diagnostic.level == Level::Definite)
    return "error";
  return diagnostic.level == Level::Likely ? "warning" : "note";
}

std::string_view inactiveMark(const Diagnostic &diagnostic) {
  return diagnostic.isSuppressed ? " (suppressed)" : diagnostic.isActive() ? "" : " (in the baseline)";
}

std::string_view certainty(Level level) {
  return level == Level::Definite ? "definite" : level == Level::Likely ? "likely" : "latent";
}

} // namespace devicetidy
