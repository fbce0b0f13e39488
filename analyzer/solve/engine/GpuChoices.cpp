#include "analyzer/solve/engine/GpuChoices.h"

#include "analyzer/models/Models.h"

namespace devicetidy {
namespace {

// "cuda:1", or a text that is not written here.
bool mayNameIndex(std::string_view written) {
  return written.find('"') == std::string_view::npos || written.find(':') != std::string_view::npos;
}

} // namespace

bool choosesGpu(const Types &types, const Fact &fact) {
  if (fact.kind == FactKind::Construct && types.classOf(fact.type) == TypeClass::Device &&
      fact.operands.size() > 1) {
    const bool hasIndex = fact.operands.size() > 2 && !fact.operands[2].text.empty(); // no default argument
    return hasIndex || (types.classOf(fact.operands[1].type) == TypeClass::String &&
                        mayNameIndex(fact.operands[1].text.view()));
  }
  if (fact.kind != FactKind::Call)
    return false;
  const std::string_view name = fact.name.view();
  const std::size_t given = fact.operands.size() - fact.hasObject;
  return models::effect(name, "set_current") || models::effect(name, "with_device_index") ||
         (given > 1 && models::effect(name, "with_device"));
}

} // namespace devicetidy
