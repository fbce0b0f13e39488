#include "DistinctParameters.h"

#include <map>

namespace device_shim::detail {

std::vector<DistinctParameter> distinctParameters(const torch::nn::Module &module,
                                                  const std::string &prefix) {
  std::vector<DistinctParameter> all;
  std::map<const void *, size_t> places;
  for (const auto &entry : module.named_parameters()) {
    const auto [place, first] = places.emplace(entry.value().unsafeGetTensorImpl(), all.size());
    if (first)
      all.push_back({prefix + entry.key(), entry.value(), {}});
    else
      all[place->second].aliases.push_back(prefix + entry.key());
  }
  return all;
}

} // namespace device_shim::detail
