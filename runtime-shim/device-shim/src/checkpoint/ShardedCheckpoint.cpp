#include "checkpoint/ShardedCheckpoint.h"

#include "adapters/AdapterFile.h"
#include "base/NormalTensors.h"
#include "checkpoint/AllRanks.h"
#include "checkpoint/CheckpointFile.h"
#include "params/WrapperClaim.h"

#include <device_shim/Error.h>

#include <ATen/ATen.h>
#include <torch/optim/optimizer.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>

namespace device_shim::detail {
namespace {

// The members of a whole vector by name, on the host.
void addMembers(Named &named, const FlatPartition &partition, const at::Tensor &whole,
                const std::string &prefix) {
  const auto host = whole.cpu();
  for (const auto &member : partition.members())
    named[prefix + member.name] = host.narrow(0, member.offset, member.elements).view(member.sizes).clone();
}

at::Tensor joinMembers(const Named &named, const FlatPartition &partition, const std::string &prefix,
                       at::ScalarType type, const std::string &path) {
  auto whole = at::zeros({partition.paddedSize()}, at::TensorOptions().dtype(type));
  for (const auto &member : partition.members()) {
    const auto found = named.find(prefix + member.name);
    if (found == named.end())
      throw Error("'" + path + "' has no '" + prefix + member.name +
                  "'; it was saved from another model, or with "
                  "other frozen parameters");
    requireSizes(member.sizes, found->second, found->first, path);
    whole.narrow(0, member.offset, member.elements).copy_(found->second.reshape({-1}));
  }
  return whole;
}

// The values of all parameters under all their names, on rank 0. Collective.
Named collectValues(ShardedModel &model, const std::function<bool(const FlatPartition::Member &)> &wanted) {
  Named values;
  auto &ranks = model.communicator();
  for (auto *partition : model.partitions()) {
    const auto &members = partition->members();
    if (std::none_of(members.begin(), members.end(), wanted))
      continue;
    const auto whole = partition->assemble(partition->ownValues(), ranks);
    if (ranks.rank() != 0)
      continue;
    addMembers(values, *partition, whole, "");
    for (const auto &member : members)
      for (const auto &alias : member.aliases)
        values[alias] = values.at(member.name);
  }
  return values;
}

// Of partitions, all or some.
void requireOwnParameters(const ShardedModel &model, torch::optim::Optimizer &optimizer) {
  std::vector<at::Tensor> parameters;
  for (auto &group : optimizer.param_groups())
    parameters.insert(parameters.end(), group.params().begin(), group.params().end());
  requireNotSharded(parameters);
  const auto masters = model.masters();
  const auto isMaster = [&masters](const at::Tensor &parameter) {
    return std::any_of(masters.begin(), masters.end(),
                       [&](const at::Tensor &own) { return own.is_same(parameter); });
  };
  if (!masters.empty() && std::none_of(parameters.begin(), parameters.end(), isMaster))
    throw UsageError("the optimizer works on no partition of this model; make it of optimizer_parameters()");
}

using OptimizerStates = std::map<std::string, ParameterState>;

// Collective: the ranks' parts of each state tensor are put together, one after the other.
OptimizerStates collectStates(ShardedModel &model, torch::optim::Optimizer &optimizer) {
  OptimizerStates all;
  auto &ranks = model.communicator();
  for (auto *partition : model.partitions()) {
    if (!partition->trainable())
      continue;
    const auto state = stateOf(optimizer, partition->master());
    if (!state)
      continue;
    for (const auto &member : partition->members())
      all[member.name] = {state->kind, state->step, {}};
    for (const auto &[name, tensor] : state->tensors) {
      const auto whole = partition->assemble(tensor, ranks);
      Named members;
      if (ranks.rank() == 0)
        addMembers(members, *partition, whole, "");
      for (const auto &[member, value] : members)
        all[member].tensors[name] = value;
    }
  }
  return all;
}

// The parameters of each of the optimizer's groups, of which there are parts in it.
std::vector<CheckpointExtras::Group> groupsOf(const ShardedModel &model, torch::optim::Optimizer &optimizer) {
  std::vector<CheckpointExtras::Group> groups;
  for (auto &group : optimizer.param_groups()) {
    groups.push_back({group.options().get_lr(), {}});
    for (auto *partition : model.partitions()) {
      const auto isMaster = [&](const at::Tensor &own) { return own.is_same(partition->master()); };
      if (partition->trainable() && std::any_of(group.params().begin(), group.params().end(), isMaster))
        for (const auto &member : partition->members())
          groups.back().parameters.push_back(member.name);
    }
  }
  return groups;
}

at::Tensor ownPartAs(const FlatPartition &partition, const at::Tensor &whole) {
  return partition.ownPart(whole).to(partition.ownValues().options()).clone();
}

bool alike(const ParameterState *a, const ParameterState *b) {
  if (!a || !b)
    return a == b;
  const auto sameName = [](const auto &left, const auto &right) { return left.first == right.first; };
  return a->kind == b->kind && a->step == b->step && a->tensors.size() == b->tensors.size() &&
         std::equal(a->tensors.begin(), a->tensors.end(), b->tensors.begin(), sameName);
}

// What the file has for the members of a partition, which have one state in the optimizer; null: nothing.
const ParameterState *commonState(const OptimizerStates &states, const FlatPartition &partition,
                                  const std::string &path) {
  const auto find = [&](const FlatPartition::Member &member) {
    const auto found = states.find(member.name);
    return found == states.end() ? nullptr : &found->second;
  };
  const auto &first = partition.members().front();
  for (const auto &member : partition.members())
    if (!alike(find(first), find(member)))
      throw Error("'" + path + "' has other optimizer state for " + member.name + " than for " + first.name +
                  "; keep them apart with ShardedOptions::group, as when it was saved");
  return find(first);
}

using OwnStates = std::vector<std::unique_ptr<torch::optim::OptimizerParamState>>;

// This rank's part of the file's states, partition by partition; null: nothing.
OwnStates ownStates(const ShardedModel &model, const OptimizerStates &states,
                    torch::optim::Optimizer &optimizer, const std::string &path) {
  OwnStates all;
  for (auto *partition : model.partitions()) {
    all.emplace_back();
    const auto *common = partition->trainable() ? commonState(states, *partition, path) : nullptr;
    if (!common)
      continue;
    ParameterState own{common->kind, common->step, {}};
    for (const auto &kind : common->tensors) {
      Named members;
      for (const auto &member : partition->members())
        members[member.name] = states.at(member.name).tensors.at(kind.first);
      own.tensors[kind.first] = ownPartAs(
          *partition, joinMembers(members, *partition, "", partition->master().scalar_type(), path));
    }
    all.back() = makeState(optimizer, partition->master(), std::move(own));
  }
  return all;
}

// All that load() takes from the file, found and checked: to take it over cannot fail.
struct Loaded {
  std::vector<at::Tensor> parts; ///< of the partitions
  OwnStates states;
  CheckpointFile file;
};

Loaded findParts(ShardedModel &model, const std::string &path, torch::optim::Optimizer *optimizer,
                 const GradScaler *scaler) {
  model.requireUntouched(/*overwritten=*/true);
  requireUnmerged(model.root());
  if (optimizer)
    requireOwnParameters(model, *optimizer);
  Loaded loaded;
  loaded.file = readCheckpoint(model.root(), path, {optimizer != nullptr, scaler != nullptr},
                               model.communicator().rank());
  for (auto *partition : model.partitions())
    loaded.parts.push_back(ownPartAs(*partition, joinMembers(loaded.file.values.parameters, *partition, "",
                                                             partition->ownValues().scalar_type(), path)));
  if (optimizer) {
    requireSameGroups(loaded.file.extras.groups, groupsOf(model, *optimizer), path);
    loaded.states = ownStates(model, loaded.file.extras.states, *optimizer, path);
  }
  if (scaler)
    GradScaler(*scaler).load_state(*loaded.file.extras.scaler);
  return loaded;
}

void restoreOptimizer(ShardedModel &model, Loaded &loaded, torch::optim::Optimizer &optimizer) {
  const auto partitions = model.partitions();
  for (size_t i = 0; i < partitions.size(); ++i)
    if (partitions[i]->trainable())
      setState(optimizer, partitions[i]->master(), std::move(loaded.states[i]));
  setRates(optimizer, loaded.file.extras.groups);
}

} // namespace

void saveCheckpoint(ShardedModel &model, const std::string &path, torch::optim::Optimizer *optimizer,
                    const GradScaler *scaler) {
  NormalTensors normal;
  requireUnmerged(model.root());
  if (optimizer)
    requireOwnParameters(model, *optimizer);
  auto &ranks = model.communicator();
  auto values = collectValues(model, [](const auto &) { return true; });
  for (const auto &entry : model.root().named_buffers()) {
    const auto converted = model.bufferTypes().find(entry.key());
    if (converted != model.bufferTypes().end())
      values[entry.key()] = entry.value().cpu().to(converted->second);
  }
  CheckpointExtras extras;
  if (optimizer) {
    extras.states = collectStates(model, *optimizer);
    extras.groups = groupsOf(model, *optimizer);
  }
  if (scaler)
    extras.scaler = scaler->state();
  onRankZero(ranks, [&] { writeCheckpoint(model.root(), values, extras, path); });
}

void saveAdapters(ShardedModel &model, const std::string &path) {
  const auto adapters = [](const FlatPartition::Member &member) { return isAdapter(member.name); };
  auto values = collectValues(model, adapters);
  for (auto entry = values.begin(); entry != values.end();)
    entry = isAdapter(entry->first) ? std::next(entry) : values.erase(entry);
  addScales(model.root(), values);
  onRankZero(model.communicator(), [&] { writeAdapters(values, path); });
}

void loadCheckpoint(ShardedModel &model, const std::string &path, torch::optim::Optimizer *optimizer,
                    GradScaler *scaler) {
  NormalTensors normal;
  Loaded loaded;
  onAllRanks(model.communicator(), [&] { loaded = findParts(model, path, optimizer, scaler); });
  requireSameFile(model.communicator(), loaded.file.digest, path);
  if (optimizer)
    restoreOptimizer(model, loaded, *optimizer);
  if (scaler)
    scaler->load_state(*loaded.file.extras.scaler);
  setBuffers(model.root(), loaded.file.values.buffers);
  const auto partitions = model.partitions();
  for (size_t i = 0; i < partitions.size(); ++i)
    partitions[i]->setOwnValues(loaded.parts[i]);
  model.synchronize();
}

} // namespace device_shim::detail
