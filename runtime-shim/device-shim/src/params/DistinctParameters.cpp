#include "params/DistinctParameters.h"

#include <map>

namespace device_shim::detail {

std::vector<DistinctParameter> distinctParameters(const torch::nn::Module &module, const std::string &path,
                                                  const std::vector<std::string> &aliases) {
  std::vector<DistinctParameter> all;
  std::map<const void *, size_t> places;
  const auto named = [](const std::string &module, const std::string &parameter) {
    return module.empty() ? parameter : module + "." + parameter;
  };
  for (const auto &entry : module.named_parameters()) {
    const auto [place, first] = places.emplace(entry.value().unsafeGetTensorImpl(), all.size());
    if (first)
      all.push_back({named(path, entry.key()), entry.value(), {}});
    auto &parameter = all[place->second];
    if (!first)
      parameter.aliases.push_back(named(path, entry.key()));
    for (const auto &alias : aliases)
      parameter.aliases.push_back(named(alias, entry.key()));
  }
  return all;
}

} // namespace device_shim::detail
