#include "checkpoint/DataParallelCheckpoint.h"

#include "base/NormalTensors.h"
#include "checkpoint/AllRanks.h"
#include "checkpoint/CheckpointFile.h"
#include "params/DistinctParameters.h"

#include <device_shim/Error.h>

#include <ATen/ATen.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

namespace device_shim::detail {
namespace {

using torch::optim::Optimizer;
using Parameters = std::vector<DistinctParameter>;

// Names of the parameters in each of the optimizer's groups.
std::vector<CheckpointExtras::Group> groupsOf(const Parameters &parameters, Optimizer &optimizer) {
  std::vector<CheckpointExtras::Group> groups;
  size_t found = 0;
  for (auto &group : optimizer.param_groups()) {
    groups.push_back({group.options().get_lr(), {}});
    const auto &own = group.params();
    for (const auto &parameter : parameters)
      if (std::any_of(own.begin(), own.end(),
                      [&](const at::Tensor &each) { return each.is_same(parameter.value); }))
        groups.back().parameters.push_back(parameter.name);
    found += groups.back().parameters.size();
  }
  if (found == 0)
    throw UsageError(
        "the optimizer works on no parameter of this model; make it of the model's parameters()");
  return groups;
}

CheckpointExtras extrasOf(const Parameters &parameters, Optimizer *optimizer, const GradScaler *scaler) {
  CheckpointExtras extras;
  if (optimizer) {
    extras.groups = groupsOf(parameters, *optimizer);
    for (const auto &parameter : parameters)
      if (auto state = stateOf(*optimizer, parameter.value)) {
        for (auto &[name, tensor] : state->tensors)
          tensor = tensor.cpu();
        extras.states[parameter.name] = std::move(*state);
      }
  }
  if (scaler)
    extras.scaler = scaler->state();
  return extras;
}

Named valuesOf(const Parameters &parameters) {
  Named values;
  for (const auto &parameter : parameters) {
    const auto value = values[parameter.name] = parameter.value.detach().cpu();
    for (const auto &alias : parameter.aliases)
      values[alias] = value;
  }
  return values;
}

void requireAll(const Parameters &parameters, const Named &values, const std::string &path) {
  for (const auto &parameter : parameters) {
    const auto found = values.find(parameter.name);
    if (found == values.end())
      throw Error("'" + path + "' has no '" + parameter.name + "'; it was saved from another model");
    requireSizes(parameter.value.sizes(), found->second, parameter.name, path);
  }
}

// A state tensor is where its parameter is, and has the type that it was saved in.
std::unique_ptr<torch::optim::OptimizerParamState> stateFor(const at::Tensor &parameter, ParameterState saved,
                                                            Optimizer &optimizer) {
  for (auto &[name, tensor] : saved.tensors)
    tensor = tensor.to(parameter.device());
  return makeState(optimizer, parameter, std::move(saved));
}

// All that load() takes from the file, found and checked: to take it over cannot fail.
struct Loaded {
  CheckpointFile file;
  std::vector<std::unique_ptr<torch::optim::OptimizerParamState>> states; ///< of the parameters, in order
};

Loaded find(const torch::nn::Module &module, const Parameters &parameters, const std::string &path,
            Optimizer *optimizer, const GradScaler *scaler, int rank) {
  requireUnmerged(module);
  Loaded loaded;
  loaded.file = readCheckpoint(module, path, {optimizer != nullptr, scaler != nullptr}, rank);
  requireAll(parameters, loaded.file.values.parameters, path);
  auto &extras = loaded.file.extras;
  if (optimizer) {
    requireSameGroups(extras.groups, groupsOf(parameters, *optimizer), path);
    for (const auto &parameter : parameters) {
      const auto saved = extras.states.find(parameter.name);
      loaded.states.push_back(
          saved == extras.states.end() ? nullptr : stateFor(parameter.value, saved->second, *optimizer));
    }
  }
  if (scaler)
    GradScaler(*scaler).load_state(*extras.scaler);
  return loaded;
}

} // namespace

void saveReplica(const torch::nn::Module &module, Communicator &ranks, const std::string &path,
                 Optimizer *optimizer, const GradScaler *scaler) {
  NormalTensors normal;
  requireUnmerged(module);
  const auto parameters = distinctParameters(module);
  const auto extras = extrasOf(parameters, optimizer, scaler);
  onRankZero(ranks, [&] { writeCheckpoint(module, valuesOf(parameters), extras, path); });
}

void loadReplica(torch::nn::Module &module, Communicator &ranks, const std::string &path,
                 Optimizer *optimizer, GradScaler *scaler) {
  NormalTensors normal;
  const auto parameters = distinctParameters(module);
  Loaded loaded;
  onAllRanks(ranks, [&] { loaded = find(module, parameters, path, optimizer, scaler, ranks.rank()); });
  requireSameFile(ranks, loaded.file.digest, path);
  for (const auto &parameter : parameters)
    writable(parameter.value).copy_(loaded.file.values.parameters.at(parameter.name));
  setBuffers(module, loaded.file.values.buffers);
  for (size_t i = 0; i < loaded.states.size(); ++i)
    setState(*optimizer, parameters[i].value, std::move(loaded.states[i]));
  if (optimizer)
    setRates(*optimizer, loaded.file.extras.groups);
  if (scaler)
    scaler->load_state(*loaded.file.extras.scaler);
}

} // namespace device_shim::detail
