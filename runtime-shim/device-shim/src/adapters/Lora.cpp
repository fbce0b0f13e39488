#include <device_shim/Lora.h>

#include "adapters/AdapterFile.h"
#include "files/ArchiveFile.h"
#include "params/DistinctParameters.h"
#include "params/LaggingParameters.h"

#include <device_shim/Error.h>

#include <torch/nn/init.h>
#include <torch/serialize/archive.h>
#include <torch/utils.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace device_shim {
namespace detail {

bool isAdapter(const std::string &name) {
  const auto last = name.substr(name.rfind('.') + 1);
  return last == "lora_A" || last == "lora_B";
}

void writeAdapters(const std::map<std::string, at::Tensor> &adapters, const std::string &path) {
  torch::serialize::OutputArchive archive;
  for (const auto &[name, value] : adapters) {
    auto key = name;
    std::replace(key.begin(), key.end(), '.', '/'); // archives take a dot for nesting
    archive.write(key, value.detach().cpu());
  }
  writeArchive(archive, path);
}

} // namespace detail

namespace {

using detail::isAdapter;

// With stage 3, ShardedDataParallel empties the parameters between passes, and arithmetic with empty tensors
// is no error.
void requireHeld(const torch::Tensor &adapter, const std::string &name) {
  if (adapter.dim() != 2)
    throw UsageError("adapter '" + name +
                     "' has no values: ShardedDataParallel with stage 3 keeps them in its "
                     "partitions. Use ShardedDataParallel::save_adapters(), and load or merge adapters in a "
                     "model that is not sharded");
}

// Meanwhile its adapters are of different steps: this rank's part of the last, the others' of one before.
void requireCurrent(const torch::Tensor &adapter, const std::string &name) {
  requireHeld(adapter, name);
  if (detail::lags(adapter))
    throw UsageError("adapter '" + name +
                     "' may have values from before the last step: with stage 2 "
                     "ShardedDataParallel updates the module on request. Call synchronize() of the wrapper "
                     "first, on all ranks");
}

std::string joined(const std::string &path, const std::string &name) {
  return path.empty() ? name : path + "." + name;
}

// What is loaded would have no effect before the old correction is out of the base.
void requireUnmerged(const torch::nn::Module &module, const std::string &path = "") {
  if (const auto *layer = dynamic_cast<const LoraLinearImpl *>(&module); layer && layer->merged())
    throw UsageError("the adapters of '" + path +
                     "' are merged into their base; call unmerge() before load_adapters()");
  for (const auto &child : module.named_children())
    requireUnmerged(*child.value(), joined(path, child.key()));
}

} // namespace

LoraLinearImpl::LoraLinearImpl(int64_t in, int64_t out, const LoraOptions &options)
    : base_layer(register_module("base_layer", torch::nn::Linear(in, out))) {
  makeAdapter(options);
}

LoraLinearImpl::LoraLinearImpl(torch::nn::Linear base, const LoraOptions &options)
    : base_layer(register_module("base_layer", std::move(base))) {
  makeAdapter(options);
}

void LoraLinearImpl::makeAdapter(const LoraOptions &options) {
  if (options.rank < 1)
    throw UsageError("LoraOptions::rank is " + std::to_string(options.rank) + "; it must be at least 1");
  for (auto &parameter : base_layer->parameters())
    parameter.set_requires_grad(false);
  const auto &weight = base_layer->weight;
  const auto place = weight.options().requires_grad(false);
  lora_A = register_parameter("lora_A", torch::empty({options.rank, weight.size(1)}, place));
  torch::nn::init::kaiming_uniform_(lora_A, std::sqrt(5.0));
  lora_B = register_parameter("lora_B", torch::zeros({weight.size(0), options.rank}, place));
  scaling = options.alpha / static_cast<double>(options.rank);
}

torch::Tensor LoraLinearImpl::forward(const torch::Tensor &input) {
  auto output = base_layer->forward(input);
  if (merged())
    return output;
  return output + torch::matmul(torch::matmul(input, lora_A.t()), lora_B.t()) * scaling;
}

torch::Tensor LoraLinearImpl::correction(const torch::Tensor &a, const torch::Tensor &b) const {
  requireHeld(a, "lora_A");
  requireHeld(b, "lora_B");
  const auto place = base_layer->weight.options().requires_grad(false); // it may have moved since merge()
  return torch::matmul(b.to(place), a.to(place)) * scaling;
}

void LoraLinearImpl::merge() {
  torch::NoGradGuard noGrad;
  if (merged())
    return;
  requireCurrent(lora_A, "lora_A");
  requireCurrent(lora_B, "lora_B");
  base_layer->weight.add_(correction(lora_A, lora_B));
  mergedA = lora_A.detach().clone();
  mergedB = lora_B.detach().clone();
}

void LoraLinearImpl::unmerge() {
  torch::NoGradGuard noGrad;
  if (!merged())
    return;
  base_layer->weight.sub_(correction(mergedA, mergedB));
  forgetMerge();
}

void LoraLinearImpl::forgetMerge() { mergedA = mergedB = torch::Tensor(); }

void LoraLinearImpl::save(torch::serialize::OutputArchive &archive) const {
  if (!merged())
    return torch::nn::Module::save(archive);
  torch::NoGradGuard noGrad;
  archive.write("lora_A", lora_A);
  archive.write("lora_B", lora_B);
  torch::serialize::OutputArchive base(archive.compilation_unit());
  base.write("weight", base_layer->weight.detach() - correction(mergedA, mergedB));
  if (base_layer->bias.defined())
    base.write("bias", base_layer->bias);
  archive.write("base_layer", base);
}

void LoraLinearImpl::load(torch::serialize::InputArchive &archive) {
  torch::nn::Module::load(archive);
  forgetMerge();
}

int64_t train_only_adapters(torch::nn::Module &module) {
  int64_t trainable = 0;
  for (auto &parameter : detail::distinctParameters(module)) {
    const bool adapter = isAdapter(parameter.name);
    parameter.value.set_requires_grad(adapter);
    trainable += adapter ? parameter.value.numel() : 0;
  }
  return trainable;
}

std::vector<torch::Tensor> trainable_parameters(const torch::nn::Module &module) {
  std::vector<torch::Tensor> trainable;
  for (const auto &parameter : detail::distinctParameters(module))
    if (parameter.value.requires_grad())
      trainable.push_back(parameter.value);
  return trainable;
}

void save_adapters(const torch::nn::Module &module, const std::string &path) {
  std::map<std::string, at::Tensor> adapters;
  for (const auto &entry : module.named_parameters())
    if (isAdapter(entry.key())) {
      requireCurrent(entry.value(), entry.key());
      adapters[entry.key()] = entry.value();
    }
  detail::addScales(module, adapters);
  detail::writeAdapters(adapters, path);
}

void load_adapters(torch::nn::Module &module, const std::string &path) {
  torch::NoGradGuard noGrad;
  requireUnmerged(module);
  torch::serialize::InputArchive archive;
  detail::readArchive(archive, path);
  std::vector<std::pair<torch::Tensor, torch::Tensor>> found; // nothing changes before all is
  for (const auto &entry : module.named_parameters()) {
    if (!isAdapter(entry.key()))
      continue;
    requireHeld(entry.value(), entry.key());
    auto key = entry.key();
    std::replace(key.begin(), key.end(), '.', '/');
    torch::Tensor value;
    if (!archive.try_read(key, value))
      throw Error("'" + path + "' has no adapter '" + entry.key() + "'; it was saved from another model");
    if (value.sizes() != entry.value().sizes())
      throw Error("adapter '" + entry.key() + "' in '" + path + "' has another shape; was its rank another?");
    found.emplace_back(entry.value(), value);
  }
  detail::requireSameScales(module, archive, path);
  for (auto &[adapter, value] : found)
    adapter.copy_(value);
}

} // namespace device_shim
