#include <device_shim/DispatchModel.h>

#include "base/ModelsOverDevices.h"
#include "base/NormalTensors.h"
#include "dispatch/BalancedSplit.h"
#include "params/WrapperClaim.h"

#include <device_shim/Distributed.h>
#include <device_shim/Error.h>

#include <ATen/ATen.h>
#include <torch/cuda.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>
#include <utility>

namespace device_shim {
namespace {

std::vector<at::Tensor> tensorsOf(const torch::nn::Module &module) {
  auto tensors = module.parameters();
  for (const auto &buffer : module.buffers())
    tensors.push_back(buffer);
  return tensors;
}

// Module::to() leaves them where they are, and autograd adds to them there.
void moveGradients(const torch::nn::Module &module, at::Device device) {
  for (auto &parameter : module.parameters())
    if (auto &gradient = parameter.mutable_grad(); gradient.defined())
      gradient = gradient.to(device);
}

class MovingHooks final : public StageHooks {
public:
  MovingHooks(const torch::nn::Module &stage, at::Device ofStage)
      : device(ofStage), belonging(tensorsOf(stage)) {}
  void before_forward(const std::vector<at::Tensor *> &inputs) override {
    followReplaced();
    std::vector<std::pair<at::Tensor, at::Tensor>> moved; // one that comes twice stays one
    for (auto *input : inputs) {
      if (!input->defined() || input->device() == device)
        continue;
      auto known = std::find_if(moved.begin(), moved.end(),
                                [&](const auto &each) { return each.first.is_same(*input); });
      if (known == moved.end())
        known = moved.insert(known, {*input, copyOf(*input)});
      *input = known->second;
    }
  }
  void after_forward(const std::vector<at::Tensor *> &) override {}

private:
  // torch::load() puts them where the file says, or its caller.
  void followReplaced() {
    for (auto &tensor : belonging)
      if (tensor.defined() && tensor.device() != device) {
        detail::NormalTensors normal;
        tensor.set_data(tensor.detach().to(device));
      }
  }

  // In InferenceMode, too, one that counts what is written into it, see StageCall.
  at::Tensor copyOf(const at::Tensor &input) const {
    if (!c10::InferenceMode::is_enabled())
      return input.to(device);
    detail::NormalTensors normal;
    return input.to(device);
  }

  at::Device device;
  std::vector<at::Tensor> belonging; // parameters and buffers
};

std::vector<at::Device> visibleDevices() {
  std::vector<at::Device> devices;
  const auto count = static_cast<size_t>(torch::cuda::device_count());
  for (size_t i = 0; i < count; ++i)
    devices.emplace_back(at::kCUDA, static_cast<c10::DeviceIndex>(i));
  if (devices.empty())
    devices.emplace_back(at::kCPU);
  return devices;
}

// CUDA's own error names neither the stage nor the device.
void requireVisible(const StageChain &chain, const std::vector<at::Device> &places, const char *chooser) {
  const auto count = static_cast<size_t>(torch::cuda::device_count());
  for (size_t i = 0; i < places.size(); ++i) {
    if (!places[i].is_cuda())
      continue;
    const std::string puts = std::string(chooser) + " put stage '" + chain.links()[i].name + "' on ";
    if (!places[i].has_index())
      throw UsageError(puts + "cuda without a number; name one, such as cuda:0");
    if (static_cast<size_t>(places[i].index()) >= count)
      throw UsageError(puts + places[i].str() + ", but this process sees " +
                       (count == 1 ? "1 GPU" : std::to_string(count) + " GPUs") +
                       "; name devices that are there, or make more visible");
  }
}

// They say where "auto" puts stages; entries say it themselves.
void requireNoOptions(const DispatchOptions &options) {
  if (!options.devices.empty() || !options.max_bytes.empty())
    throw UsageError("DispatchOptions::devices and max_bytes are for device_map \"auto\"; a map that lists "
                     "stages says itself where they go. Leave one of the two out");
}

bool covers(const std::string &entry, const std::string &stage) {
  return entry.empty() || entry == stage ||
         (stage.size() > entry.size() && stage.compare(0, entry.size(), entry) == 0 &&
          stage[entry.size()] == '.');
}

// The entry with the longest name wins.
const std::pair<const std::string, at::Device> &entryFor(const std::string &stage, const DeviceMap &map) {
  const std::pair<const std::string, at::Device> *best = nullptr;
  for (const auto &entry : map.entries())
    if (covers(entry.first, stage) && (!best || entry.first.size() > best->first.size()))
      best = &entry;
  if (!best)
    throw UsageError("the device_map has no entry for stage '" + stage +
                     "'; add one, or one named \"\" for all "
                     "others");
  return *best;
}

std::vector<at::Device> listedPlaces(const StageChain &chain, const DeviceMap &map) {
  std::vector<at::Device> places;
  std::set<std::string> used;
  for (const auto &link : chain.links()) {
    const auto &[name, place] = entryFor(link.name, map);
    used.insert(name);
    places.push_back(place);
    for (const auto &alias : link.aliases) {
      const auto &[other, otherPlace] = entryFor(alias, map);
      used.insert(other);
      if (otherPlace != place)
        throw UsageError("'" + link.name + "' and '" + alias +
                         "' are one stage, but the device_map puts them on " + place.str() + " and " +
                         otherPlace.str() + "; give both the same device");
    }
  }
  for (const auto &entry : map.entries())
    if (!entry.first.empty() && !used.count(entry.first))
      throw UsageError("the device_map has an entry '" + entry.first +
                       "', but the model has no such stage; the first "
                       "is named '" +
                       chain.links().front().name + "'");
  return places;
}

// For each stage the first of those that must be on one device with it, because they share parameters with it
// or with one another; itself where there is none.
std::vector<size_t> sharedWith(const StageChain &chain) {
  std::map<const void *, size_t> owners;
  std::vector<size_t> first;
  for (size_t i = 0; i < chain.links().size(); ++i) {
    first.push_back(i);
    for (const auto &parameter : chain.links()[i].module->parameters()) {
      const auto other = first[owners.emplace(parameter.unsafeGetTensorImpl(), i).first->second];
      const auto [low, high] = std::minmax(other, first[i]);
      std::replace(first.begin(), first.end(), size_t(high), size_t(low));
    }
  }
  return first;
}

// Bytes by stage; those of stages that share parameters are put down to the first of them.
std::vector<int64_t> weightsOf(const StageChain &chain, const std::vector<size_t> &shared) {
  std::vector<int64_t> weights(shared.size(), 0);
  std::set<const void *> counted;
  for (size_t i = 0; i < shared.size(); ++i)
    for (const auto &tensor : tensorsOf(*chain.links()[i].module))
      if (counted.insert(tensor.unsafeGetTensorImpl()).second)
        weights[shared[i]] += tensor.numel() * static_cast<int64_t>(tensor.element_size());
  return weights;
}

std::vector<at::Device> balancedPlaces(const StageChain &chain, const DispatchOptions &options) {
  const auto devices = options.devices.empty() ? visibleDevices() : options.devices;
  auto limits = options.max_bytes;
  if (limits.empty())
    limits.assign(devices.size(), std::numeric_limits<int64_t>::max());
  if (limits.size() != devices.size())
    throw UsageError("DispatchOptions::max_bytes has " + std::to_string(limits.size()) + " numbers for " +
                     std::to_string(devices.size()) + " devices");
  const auto shared = sharedWith(chain);
  const auto weights = weightsOf(chain, shared);
  const auto total = std::accumulate(weights.begin(), weights.end(), int64_t(0));
  const auto parts = detail::balancedSplit(weights, limits);
  if (parts.empty())
    throw UsageError("the model, " + std::to_string(total) +
                     " bytes, does not fit into "
                     "DispatchOptions::max_bytes with consecutive stages; allow more, or add devices");
  std::vector<at::Device> places;
  for (size_t i = 0; i < parts.size(); ++i)
    places.push_back(devices[parts[shared[i]]]);
  return places;
}

void requireSharedTogether(const StageChain &chain, const std::vector<at::Device> &places) {
  const auto shared = sharedWith(chain);
  for (size_t i = 0; i < shared.size(); ++i)
    if (places[i] != places[shared[i]])
      throw UsageError("stages '" + chain.links()[shared[i]].name + "' and '" + chain.links()[i].name +
                       "' share a parameter, but the device_map puts them on " + places[shared[i]].str() +
                       " and " + places[i].str() + "; give both the same device");
}

// Which tensor of its module a stage computes with is known to the module alone, so that no stage can be
// given a copy here. Constants, such as tables of positions, are copied easily where the model is made.
void requireBuffersTogether(const StageChain &chain, const std::vector<at::Device> &places) {
  std::map<const void *, size_t> owners;
  for (size_t i = 0; i < places.size(); ++i)
    for (const auto &buffer : chain.links()[i].module->named_buffers()) {
      const auto owner = owners.emplace(buffer.value().unsafeGetTensorImpl(), i).first->second;
      if (buffer.value().defined() && places[i] != places[owner])
        throw UsageError("stages '" + chain.links()[owner].name + "' and '" + chain.links()[i].name +
                         "' share the buffer '" + buffer.key() + "', but are to be on " +
                         places[owner].str() + " and " + places[i].str() +
                         "; give each stage a copy of its own (buffer.clone()), or list both for one device");
    }
}

} // namespace

DeviceMap::DeviceMap(const char *word) : DeviceMap(std::string(word)) {}
DeviceMap::DeviceMap(const std::string &word) : chooses(true) {
  if (word != "auto" && word != "balanced")
    throw UsageError("device_map '" + word + "' is unknown; use \"auto\", or list stages and their devices");
}
DeviceMap::DeviceMap(std::map<std::string, at::Device> entries) : listed(std::move(entries)) {}

DispatchCore::DispatchCore(const std::shared_ptr<torch::nn::Module> &module, const DeviceMap &map,
                           const DispatchOptions &options)
    : chain(module) {
  chain.require_complete("dispatch_model", /*buffers=*/true);
  chain.require_unused();
  if (!map.automatic())
    requireNoOptions(options);
  claim = std::make_unique<detail::WrapperClaim>(*module, detail::Wrapper::dispatched);
  const auto devices = map.automatic() ? balancedPlaces(chain, options) : listedPlaces(chain, map);
  requireVisible(chain, devices,
                 map.automatic() ? "DispatchOptions::devices" : "the entries of the device_map");
  requireSharedTogether(chain, devices);
  requireBuffersTogether(chain, devices);
  std::set<std::string> distinct;
  std::string names;
  for (const auto &device : devices)
    if (distinct.insert(device.str()).second)
      names += (names.empty() ? "" : ", ") + device.str();
  if (distinct.size() > 1 && is_distributed())
    throw UsageError(
        "a device_map that spreads the model over several devices (" + names +
        "), such as "
        "device_map=\"auto\", cannot be combined with distributed training: every rank would put layers "
        "on the GPUs of the others. Drop the device_map and move the whole model to this rank's device, "
        "or start a single process");
  for (size_t i = 0; i < devices.size(); ++i) {
    const auto &link = chain.links()[i];
    link.module->to(devices[i]);
    moveGradients(*link.module, devices[i]);
    places.emplace(link.name, devices[i]);
    for (const auto &alias : link.aliases)
      places.emplace(alias, devices[i]);
    chain.install(i, std::make_shared<MovingHooks>(*link.module, devices[i]));
  }
  first = devices.front();
  last = devices[chain.last()];
  counted = distinct.size() > 1;
  if (counted)
    ++detail::modelsOverSeveralDevices();
}

DispatchCore::~DispatchCore() {
  if (counted)
    --detail::modelsOverSeveralDevices();
}

DispatchCore::DispatchCore(DispatchCore &&other) noexcept
    : claim(std::move(other.claim)), chain(std::move(other.chain)), places(std::move(other.places)),
      first(other.first), last(other.last), counted(std::exchange(other.counted, false)) {}

} // namespace device_shim
