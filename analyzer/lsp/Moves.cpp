#include "analyzer/lsp/Moves.h"

#include "llvm/ADT/STLExtras.h"

namespace devicetidy::lsp {

namespace json = llvm::json;

json::Value movesAt(const FileReport &report, const llvm::lsp::Position &position) {
  json::Array locations;
  if (const ShownPlacement *placement = report.placementAt(position))
    for (const ShownStep &step : placement->placing) {
      json::Value location = json::Object{{"uri", step.uri}, {"range", toJSON(step.range)}};
      if (llvm::find(locations, location) == locations.end())
        locations.push_back(std::move(location));
    }
  return locations;
}

} // namespace devicetidy::lsp
