#include "ShardedCheckpoint.h"

#include "AdapterFile.h"
#include "OptimizerState.h"
#include "WrapperClaim.h"

#include <device_shim/Error.h>
#include <device_shim/Lora.h>

#include <ATen/ATen.h>
#include <torch/optim/optimizer.h>
#include <torch/serialize/archive.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <optional>
#include <sstream>
#include <unistd.h>

namespace device_shim::detail {
namespace {

using torch::serialize::InputArchive;
using torch::serialize::OutputArchive;
using Named = std::map<std::string, at::Tensor>;

const char *const kOwnArchive = "device_shim";

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

// What the optimizer keeps, by parameter; tensors have the parameter's shape.
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

// Entry by entry: "parameter", its "kind" and "step", and the "names" of its tensors, a line each.
void writeStates(OutputArchive &archive, const OptimizerStates &states) {
  size_t index = 0;
  for (const auto &[parameter, state] : states) {
    OutputArchive entry(archive.compilation_unit());
    entry.write("parameter", c10::IValue(parameter));
    entry.write("kind", c10::IValue(state.kind));
    entry.write("step", c10::IValue(state.step));
    std::string names;
    for (const auto &[name, tensor] : state.tensors) {
      entry.write(name, tensor);
      names += name + "\n";
    }
    entry.write("names", c10::IValue(names));
    archive.write("state" + std::to_string(index++), entry);
  }
}

void writeOwn(OutputArchive &archive, const OptimizerStates &states, torch::optim::Optimizer *optimizer,
              const GradScaler *scaler) {
  writeStates(archive, states);
  std::vector<double> rates;
  if (optimizer)
    for (auto &group : optimizer->param_groups())
      rates.push_back(group.options().get_lr());
  archive.write("rates", c10::IValue(rates));
  if (scaler) {
    archive.write("scale", c10::IValue(scaler->state().scale));
    archive.write("good_steps", c10::IValue(scaler->state().good_steps));
  }
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

// Rank 0's failure is everyone's.
void onRankZero(Communicator &ranks, const std::function<void()> &work) {
  std::string problem;
  if (ranks.rank() == 0) {
    try {
      work();
    } catch (const std::exception &error) {
      problem = error.what();
      problem = problem.empty() ? "unknown error" : problem.substr(0, problem.find('\n'));
    }
  }
  problem = ranks.broadcast_text(problem);
  if (!problem.empty())
    throw Error("rank 0 could not save: " + problem);
}

at::Tensor ownPartAs(const FlatPartition &partition, const at::Tensor &whole) {
  return partition.ownPart(whole).to(partition.ownValues().options()).clone();
}

OptimizerStates readStates(InputArchive &archive) {
  OptimizerStates states;
  InputArchive entry;
  c10::IValue value;
  for (size_t index = 0; archive.try_read("state" + std::to_string(index), entry); ++index) {
    entry.read("parameter", value);
    auto &state = states[value.toStringRef()];
    entry.read("kind", value);
    state.kind = value.toStringRef();
    entry.read("step", value);
    state.step = value.toInt();
    entry.read("names", value);
    std::istringstream names(value.toStringRef());
    for (std::string name; std::getline(names, name);)
      entry.read(name, state.tensors[name]);
  }
  return states;
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

void restoreStates(ShardedModel &model, const OptimizerStates &states, torch::optim::Optimizer &optimizer,
                   const std::string &path) {
  for (auto *partition : model.partitions()) {
    if (!partition->trainable())
      continue;
    const auto *common = commonState(states, *partition, path);
    if (!common) {
      forgetState(optimizer, partition->master());
      continue;
    }
    ParameterState own{common->kind, common->step, {}};
    for (const auto &kind : common->tensors) {
      Named members;
      for (const auto &member : partition->members())
        members[member.name] = states.at(member.name).tensors.at(kind.first);
      own.tensors[kind.first] = ownPartAs(
          *partition, joinMembers(members, *partition, "", partition->master().scalar_type(), path));
    }
    setState(optimizer, partition->master(), own);
  }
}

void openFile(InputArchive &archive, const std::string &path, int rank) {
  if (access(path.c_str(), R_OK) != 0)
    throw Error("rank " + std::to_string(rank) + " cannot read '" + path +
                "'; every rank reads the file, so it must be on a file system they share");
  try {
    archive.load_from(path, torch::Device(at::kCPU));
  } catch (const c10::Error &error) {
    const std::string reason = error.what_without_backtrace();
    throw Error("'" + path + "' is no file that save() or torch::save() wrote, or a part of one: " +
                reason.substr(0, reason.find('\n')));
  }
}

// What the file has besides the module.
struct OwnArchive {
  OptimizerStates states;
  std::vector<double> rates;
  std::optional<GradScaler::State> scaler;
};

OwnArchive readOwn(InputArchive &archive, const std::string &path) {
  InputArchive own;
  if (!archive.try_read(kOwnArchive, own))
    throw Error("'" + path + "' holds a model without optimizer; it was not written by ShardedDataParallel");
  OwnArchive all;
  c10::IValue value, steps;
  all.states = readStates(own);
  own.read("rates", value);
  all.rates = value.toDoubleVector();
  if (own.try_read("scale", value)) {
    own.read("good_steps", steps);
    all.scaler = GradScaler::State{value.toDouble(), steps.toInt()};
  }
  return all;
}

void requireSaved(bool there, const char *what, const std::string &path) {
  if (!there)
    throw Error("'" + path + "' has no state of " + what +
                ", because save() was called without one; call load() "
                "without it");
}

void restoreOptimizer(ShardedModel &model, const OwnArchive &own, torch::optim::Optimizer &optimizer,
                      const std::string &path) {
  restoreStates(model, own.states, optimizer, path);
  for (size_t i = 0; i < own.rates.size() && i < optimizer.param_groups().size(); ++i)
    optimizer.param_groups()[i].options().set_lr(own.rates[i]);
}

} // namespace

void saveCheckpoint(ShardedModel &model, const std::string &path, torch::optim::Optimizer *optimizer,
                    const GradScaler *scaler) {
  at::NoGradGuard noGrad;
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
  OptimizerStates states;
  if (optimizer)
    states = collectStates(model, *optimizer);
  onRankZero(ranks, [&] {
    OutputArchive archive, own(archive.compilation_unit());
    writeModule(model.root(), "", values, archive);
    writeOwn(own, states, optimizer, scaler);
    archive.write(kOwnArchive, own);
    writeFile(archive, path);
  });
}

void saveAdapters(ShardedModel &model, const std::string &path) {
  const auto adapters = [](const FlatPartition::Member &member) { return isAdapter(member.name); };
  auto values = collectValues(model, adapters);
  for (auto entry = values.begin(); entry != values.end();)
    entry = isAdapter(entry->first) ? std::next(entry) : values.erase(entry);
  onRankZero(model.communicator(), [&] { writeAdapters(values, path); });
}

void loadCheckpoint(ShardedModel &model, const std::string &path, torch::optim::Optimizer *optimizer,
                    GradScaler *scaler) {
  at::NoGradGuard noGrad;
  requireUnmerged(model.root());
  if (optimizer)
    requireOwnParameters(model, *optimizer);
  InputArchive archive;
  openFile(archive, path, model.communicator().rank());
  Named values, buffers;
  readModule(model.root(), "", archive, values, buffers);
  requireBuffers(model.root(), "", buffers, path);
  OwnArchive own;
  if (optimizer || scaler)
    own = readOwn(archive, path);
  requireSaved(!optimizer || !own.rates.empty(), "an optimizer", path);
  requireSaved(!scaler || own.scaler, "a GradScaler", path);
  std::vector<at::Tensor> parts; // nothing changes before all is found
  for (auto *partition : model.partitions())
    parts.push_back(ownPartAs(
        *partition, joinMembers(values, *partition, "", partition->ownValues().scalar_type(), path)));
  if (optimizer)
    restoreOptimizer(model, own, *optimizer, path);
  if (scaler)
    scaler->load_state(*own.scaler);
  setBuffers(model.root(), buffers);
  const auto partitions = model.partitions();
  for (size_t i = 0; i < parts.size(); ++i)
    partitions[i]->setOwnValues(parts[i]);
  model.synchronize();
}

} // namespace device_shim::detail
