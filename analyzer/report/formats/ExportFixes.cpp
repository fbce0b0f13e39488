//===- ExportFixes.cpp - fixes as clang-apply-replacements reads them ----===//
#include "analyzer/report/formats/ReportRun.h"

#include "analyzer/report/source/Text.h"

#include <fmt/format.h>

namespace devicetidy {
namespace {

/// A double-quoted YAML scalar: the only kind that can hold any text.
std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\')
      result += fmt::format("\\{}", c);
    else if (c == '\n')
      result += "\\n";
    else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F)
      result += fmt::format("\\x{:02X}", static_cast<unsigned char>(c));
    else
      result += c;
  }
  return result + '"';
}

/// Keys of clang::tooling::DiagnosticMessage, at `indent`.
std::string messageKeys(const std::string &indent, const std::string &text, const Location &where,
                        SourceCache &sources) {
  const auto bytes = sources.bytes(where);
  return fmt::format("Message: {1}\n{0}FilePath: {2}\n{0}FileOffset: {3}\n", indent, quoted(printable(text)),
                     quoted(where.file.view()), bytes ? bytes->first : 0);
}

} // namespace

std::string exportedFixes(const std::vector<Diagnostic> &diagnostics, const std::vector<bool> &isChosen,
                          SourceCache &sources) {
  std::string text = "---\nMainSourceFile: \"\"\nDiagnostics:";
  if (diagnostics.empty())
    text += " []";
  text += '\n';
  for (std::size_t i = 0; i < diagnostics.size(); ++i) {
    const Diagnostic &diagnostic = diagnostics[i];
    const std::string indent(6, ' ');
    text +=
        fmt::format("  - DiagnosticName: {}\n    DiagnosticMessage:\n{}", quoted(diagnostic.check), indent);
    text += messageKeys(indent, diagnostic.message, diagnostic.where, sources);
    if (isChosen[i] && isUtf8(diagnostic.fix->change.text)) {
      const Replacement &change = diagnostic.fix->change;
      text += fmt::format("{0}Replacements:\n{0}  - FilePath: {1}\n{0}    Offset: {2}\n{0}    Length: {3}\n"
                          "{0}    ReplacementText: {4}\n",
                          indent, quoted(change.where.file.view()), change.offset, change.length,
                          quoted(change.text));
    } else {
      text += indent + "Replacements: []\n";
    }
    if (!diagnostic.notes.empty())
      text += "    Notes:\n";
    for (const Note &note : diagnostic.notes)
      text += fmt::format("      - {}        Replacements: []\n",
                          messageKeys("        ", note.text, note.where, sources));
    text += fmt::format("    Level: {}\n    BuildDirectory: \"\"\n",
                        diagnostic.severity == Severity::Error ? "Error" : "Warning");
  }
  return text + "...\n";
}

} // namespace devicetidy
