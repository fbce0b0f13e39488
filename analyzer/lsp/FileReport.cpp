#include "analyzer/lsp/FileReport.h"

#include "analyzer/report/finding/DescribePlaced.h"
#include "analyzer/report/source/Source.h"

namespace devicetidy::lsp {

std::string ShownPlacement::sentence() const { return printable(describePlaced(devices)); }

std::string ShownPlacement::label() const { return printable(placedLabel(devices)); }

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
