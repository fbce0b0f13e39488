#include "analyzer/lsp/FileReport.h"

namespace devicetidy::lsp {

const ShownPlacement *FileReport::placementAt(const llvm::lsp::Position &position) const {
  const ShownPlacement *best = nullptr;
  for (const ShownPlacement &each : placements) {
    // A cursor behind the last character of a name is still on it.
    const bool isInside = each.range.start <= position && position <= each.range.end;
    if (isInside && (!best || best->range.contains(each.range)))
      best = &each;
  }
  return best;
}

} // namespace devicetidy::lsp
