// By what adapters are multiplied: with another alpha the same tensors are another correction.
#include "adapters/AdapterFile.h"

#include <device_shim/Error.h>
#include <device_shim/Lora.h>

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <sstream>
#include <vector>

namespace device_shim::detail {
namespace {

struct Layer {
  std::string name; ///< path from the root, "" for the root itself
  const LoraLinearImpl *layer;
};

void findLayers(const torch::nn::Module &module, const std::string &path, std::vector<Layer> &found) {
  if (const auto *layer = dynamic_cast<const LoraLinearImpl *>(&module))
    found.push_back({path, layer});
  for (const auto &child : module.named_children())
    findLayers(*child.value(), path.empty() ? child.key() : path + "." + child.key(), found);
}

std::vector<Layer> layersOf(const torch::nn::Module &module) {
  std::vector<Layer> found;
  findLayers(module, "", found);
  return found;
}

std::string keyOf(const Layer &layer) { return layer.name.empty() ? "scaling" : layer.name + ".scaling"; }

} // namespace

void addScales(const torch::nn::Module &module, std::map<std::string, at::Tensor> &adapters) {
  for (const auto &layer : layersOf(module))
    adapters[keyOf(layer)] = at::full({}, layer.layer->scale(), at::kDouble);
}

void requireSameScales(const torch::nn::Module &module, torch::serialize::InputArchive &archive,
                       const std::string &file) {
  for (const auto &layer : layersOf(module)) {
    auto key = keyOf(layer);
    std::replace(key.begin(), key.end(), '.', '/');
    at::Tensor value;
    if (!archive.try_read(key, value))
      continue;
    const double theirs = value.item<double>(), own = layer.layer->scale();
    if (std::abs(theirs - own) <= 1e-9 * std::abs(own))
      continue;
    const auto rank = static_cast<double>(layer.layer->lora_A.size(0));
    std::ostringstream text;
    text << "the adapter '" << layer.name << "' in '" << file << "' was trained with alpha " << theirs * rank
         << ", but this layer has " << own * rank << ", so that it would be another correction; make the "
         << "layer with LoraOptions::alpha = " << theirs * rank;
    throw Error(text.str());
  }
}

} // namespace device_shim::detail
