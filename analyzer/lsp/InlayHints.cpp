#include "analyzer/lsp/InlayHints.h"

namespace devicetidy::lsp {

namespace json = llvm::json;

json::Value inlayHintsIn(const FileReport &report, const llvm::lsp::Range &range) {
  json::Array hints;
  for (const ShownPlacement &each : report.placements) {
    // The parameter list already shows that the device is decided outside.
    const bool isTold =
        each.kind != PlacedKind::Device && each.kind != PlacedKind::Options && each.kind != PlacedKind::Other;
    if (!each.isDeclaration || each.isOpen || !isTold)
      continue;
    if (each.range.end < range.start || range.end < each.range.end)
      continue;
    hints.push_back(json::Object{{"position", toJSON(each.range.end)},
                                 {"label", "@ " + each.label()},
                                 {"tooltip", each.sentence()},
                                 {"paddingLeft", true}});
  }
  return hints;
}

} // namespace devicetidy::lsp
