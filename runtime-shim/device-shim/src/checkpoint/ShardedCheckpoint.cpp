#include "checkpoint/ShardedCheckpoint.h"

#include "adapters/AdapterFile.h"
#include "base/NormalTensors.h"
#include "checkpoint/CheckpointExtras.h"
#include "checkpoint/OptimizerState.h"
#include "checkpoint/TensorDigest.h"
#include "params/WrapperClaim.h"

#include <device_shim/Error.h>
#include <device_shim/Lora.h>

#include <ATen/ATen.h>
#include <torch/optim/optimizer.h>
#include <torch/serialize/archive.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <sstream>
#include <unistd.h>

namespace device_shim::detail {
namespace {

using torch::serialize::InputArchive;
using torch::serialize::OutputArchive;
using Named = std::map<std::string, at::Tensor>;

// The members of a whole vector by name, on the host.
void addMembers(Named &named, const FlatPartition &partition, const at::Tensor &whole,
                const std::string &prefix) {
  const auto host = whole.cpu();
  for (const auto &member : partition.members())
    named[prefix + member.name] = host.narrow(0, member.offset, member.elements).view(member.sizes).clone();
}

void requireSizes(at::IntArrayRef wanted, const at::Tensor &found, const std::string &name,
                  const std::string &path) {
  if (found.sizes() == wanted)
    return;
  std::ostringstream text;
  text << "'" << path << "' has '" << name << "' with the shape " << found.sizes() << " instead of "
       << wanted;
  throw Error(text.str());
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

// What Module::save() does, with values that are not in the module.
void writeModule(const torch::nn::Module &module, const std::string &path, const Named &values,
                 OutputArchive &archive) {
  for (const auto &entry : module.named_parameters(/*recurse=*/false)) {
    const auto found = values.find(path + entry.key());
    archive.write(entry.key(), found == values.end() ? entry.value() : found->second);
  }
  for (const auto &entry : module.named_buffers(/*recurse=*/false)) {
    const auto found = values.find(path + entry.key());
    archive.write(entry.key(), found == values.end() ? entry.value().cpu() : found->second,
                  /*is_buffer=*/true);
  }
  for (const auto &child : module.named_children()) {
    if (!child.value()->is_serializable())
      continue;
    OutputArchive nested(archive.compilation_unit());
    writeModule(*child.value(), path + child.key() + ".", values, nested);
    archive.write(child.key(), nested);
  }
}

// The file's values by name; those of buffers apart.
void readModule(const torch::nn::Module &module, const std::string &path, InputArchive &archive,
                Named &values, Named &buffers) {
  for (const auto &entry : module.named_parameters(/*recurse=*/false)) {
    at::Tensor value;
    if (archive.try_read(entry.key(), value))
      values[path + entry.key()] = value;
  }
  for (const auto &entry : module.named_buffers(/*recurse=*/false)) {
    at::Tensor value;
    if (archive.try_read(entry.key(), value, /*is_buffer=*/true))
      buffers[path + entry.key()] = value;
  }
  for (const auto &child : module.named_children()) {
    InputArchive nested;
    if (child.value()->is_serializable() && archive.try_read(child.key(), nested))
      readModule(*child.value(), path + child.key() + ".", nested, values, buffers);
  }
}

// A file holds all that torch::load() wants to have; what a module that is not serializable holds is in none.
void requireBuffers(const torch::nn::Module &module, const std::string &prefix, const Named &found,
                    const std::string &path) {
  for (const auto &entry : module.named_buffers(/*recurse=*/false)) {
    const auto name = prefix + entry.key();
    const auto value = found.find(name);
    if (value == found.end())
      throw Error("'" + path + "' has no buffer '" + name + "'; it was saved from another model");
    requireSizes(entry.value().sizes(), value->second, name, path);
  }
  for (const auto &child : module.named_children())
    if (child.value()->is_serializable())
      requireBuffers(*child.value(), prefix + child.key() + ".", found, path);
}

void setBuffers(const torch::nn::Module &module, const Named &values) {
  for (auto &entry : module.named_buffers()) {
    const auto found = values.find(entry.key());
    if (found != values.end())
      entry.value().copy_(found->second);
  }
}

// A merged layer's base holds the correction, and its adapters hold it again.
void requireUnmerged(const torch::nn::Module &module, const std::string &prefix = "") {
  if (const auto *layer = dynamic_cast<const LoraLinearImpl *>(&module); layer && layer->merged())
    throw UsageError("the adapters of '" + prefix +
                     "' are merged into their base, to which save() and load() would add them again; call "
                     "unmerge() first");
  for (const auto &child : module.named_children())
    requireUnmerged(*child.value(), prefix.empty() ? child.key() : prefix + "." + child.key());
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

// Readers see the old file or the new one, never a half.
void writeFile(OutputArchive &archive, const std::string &path) {
  const auto temporary = path + ".writing-" + std::to_string(getpid());
  archive.save_to(temporary);
  if (std::rename(temporary.c_str(), path.c_str()) != 0) {
    std::remove(temporary.c_str());
    throw Error("cannot write '" + path + "'; check the folder and the space on its disk");
  }
}

std::string firstLine(const std::string &text) {
  return text.empty() ? "unknown error" : text.substr(0, text.find('\n'));
}

// Rank 0's failure is everyone's.
void onRankZero(Communicator &ranks, const std::function<void()> &work) {
  std::string problem;
  if (ranks.rank() == 0) {
    try {
      work();
    } catch (const std::exception &error) {
      problem = firstLine(error.what());
    }
  }
  problem = ranks.broadcast_text(problem);
  if (!problem.empty())
    throw Error("rank 0 could not save: " + problem);
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

// Learning rates go by the number of a group.
void requireSameGroups(const std::vector<CheckpointExtras::Group> &saved,
                       const std::vector<CheckpointExtras::Group> &own, const std::string &path) {
  const std::string wanted = "; give the optimizer the groups that it was saved with, in the same order";
  if (saved.size() != own.size())
    throw UsageError("'" + path + "' has the state of an optimizer with " + std::to_string(saved.size()) +
                     " parameter groups, but this one has " + std::to_string(own.size()) + wanted);
  std::map<std::string, size_t> places;
  for (size_t i = 0; i < saved.size(); ++i)
    for (const auto &parameter : saved[i].parameters)
      places[parameter] = i;
  for (size_t i = 0; i < own.size(); ++i)
    for (const auto &parameter : own[i].parameters)
      if (const auto place = places.find(parameter); place != places.end() && place->second != i)
        throw UsageError("'" + path + "' has " + parameter + " in group " + std::to_string(place->second) +
                         " of the optimizer, but here it is in group " + std::to_string(i) + wanted);
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

void openFile(InputArchive &archive, const std::string &path, int rank) {
  if (access(path.c_str(), R_OK) != 0)
    throw Error("rank " + std::to_string(rank) + " cannot read '" + path +
                "'; every rank reads the file, so it must be on a file system they share");
  try {
    archive.load_from(path, torch::Device(at::kCPU));
  } catch (const c10::Error &error) {
    const std::string reason = error.what_without_backtrace();
    throw Error("'" + path + "' is not a complete file of save() or torch::save(): " +
                reason.substr(0, reason.find('\n')));
  }
}

void requireSaved(bool there, const char *what, const std::string &path) {
  if (!there)
    throw Error("'" + path + "' has no state of " + what +
                ", because save() was called without one; call load() "
                "without it");
}

// All that load() takes from the file, found and checked: to take it over cannot fail.
struct Loaded {
  std::vector<at::Tensor> parts; ///< of the partitions
  Named buffers;
  CheckpointExtras extras;
  OwnStates states;
  std::string digest; ///< of the file's values
};

Loaded readCheckpoint(ShardedModel &model, const std::string &path, torch::optim::Optimizer *optimizer,
                      const GradScaler *scaler) {
  model.requireUntouched(/*overwritten=*/true);
  requireUnmerged(model.root());
  if (optimizer)
    requireOwnParameters(model, *optimizer);
  InputArchive archive;
  openFile(archive, path, model.communicator().rank());
  Loaded loaded;
  Named values;
  readModule(model.root(), "", archive, values, loaded.buffers);
  requireBuffers(model.root(), "", loaded.buffers, path);
  loaded.digest = digestOf(values);
  if (optimizer || scaler)
    loaded.extras = readExtras(archive, path);
  requireSaved(!optimizer || !loaded.extras.groups.empty(), "an optimizer", path);
  requireSaved(!scaler || loaded.extras.scaler, "a GradScaler", path);
  for (auto *partition : model.partitions())
    loaded.parts.push_back(ownPartAs(
        *partition, joinMembers(values, *partition, "", partition->ownValues().scalar_type(), path)));
  if (optimizer) {
    requireSameGroups(loaded.extras.groups, groupsOf(model, *optimizer), path);
    loaded.states = ownStates(model, loaded.extras.states, *optimizer, path);
  }
  if (scaler)
    GradScaler(*scaler).load_state(*loaded.extras.scaler);
  return loaded;
}

// What fails on one rank, as where a node lacks the file, is nothing that the others may go on from.
void onAllRanks(Communicator &ranks, const std::function<void()> &work) {
  std::exception_ptr own;
  std::string problem;
  try {
    work();
  } catch (const std::exception &error) {
    own = std::current_exception();
    problem = firstLine(error.what());
  }
  const double first = ranks.reduce_number(own ? ranks.rank() : ranks.size(), Reduction::minimum);
  if (first == ranks.size())
    return;
  problem = ranks.broadcast_text(problem, static_cast<int>(first));
  if (own)
    std::rethrow_exception(own);
  throw Error("rank " + std::to_string(static_cast<int>(first)) +
              " could not load, so no rank has loaded anything: " + problem);
}

// As where nodes have a folder of their own. The model would be one of parts of both.
void requireSameFile(Communicator &ranks, const std::string &digest, const std::string &path) {
  const bool same = digest == ranks.broadcast_text(digest);
  const double first = ranks.reduce_number(same ? ranks.size() : ranks.rank(), Reduction::minimum);
  if (first != ranks.size())
    throw Error("'" + path + "' has other parameters on rank " + std::to_string(static_cast<int>(first)) +
                " than on rank 0, so no rank has loaded anything; give all ranks the same file");
}

void restoreOptimizer(ShardedModel &model, Loaded &loaded, torch::optim::Optimizer &optimizer) {
  const auto partitions = model.partitions();
  for (size_t i = 0; i < partitions.size(); ++i)
    if (partitions[i]->trainable())
      setState(optimizer, partitions[i]->master(), std::move(loaded.states[i]));
  for (size_t i = 0; i < loaded.extras.groups.size(); ++i)
    optimizer.param_groups()[i].options().set_lr(loaded.extras.groups[i].rate);
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
  onRankZero(ranks, [&] {
    OutputArchive archive;
    writeModule(model.root(), "", values, archive);
    writeExtras(archive, extras);
    writeFile(archive, path);
  });
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
  onAllRanks(model.communicator(), [&] { loaded = readCheckpoint(model, path, optimizer, scaler); });
  requireSameFile(model.communicator(), loaded.digest, path);
  if (optimizer)
    restoreOptimizer(model, loaded, *optimizer);
  if (scaler)
    scaler->load_state(*loaded.extras.scaler);
  setBuffers(model.root(), loaded.buffers);
  const auto partitions = model.partitions();
  for (size_t i = 0; i < partitions.size(); ++i)
    partitions[i]->setOwnValues(loaded.parts[i]);
  model.synchronize();
}

} // namespace device_shim::detail
