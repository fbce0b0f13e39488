#include "ShardedCheckpoint.h"

#include "OptimizerState.h"

#include <device_shim/Error.h>

#include <ATen/ATen.h>
#include <torch/optim/optimizer.h>
#include <torch/serialize/archive.h>

#include <cstdio>
#include <functional>
#include <map>
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

at::Tensor joinMembers(const Named &named, const FlatPartition &partition, const std::string &prefix,
                       at::ScalarType type, const std::string &path) {
  auto whole = at::zeros({partition.paddedSize()}, at::TensorOptions().dtype(type));
  for (const auto &member : partition.members()) {
    const auto found = named.find(prefix + member.name);
    if (found == named.end())
      throw Error("'" + path + "' has no '" + prefix + member.name +
                  "'; it was saved from another model, or with "
                  "other frozen parameters");
    if (found->second.numel() != member.elements)
      throw Error("'" + path + "' has '" + prefix + member.name + "' with " +
                  std::to_string(found->second.numel()) + " elements instead of " +
                  std::to_string(member.elements));
    whole.narrow(0, member.offset, member.elements).copy_(found->second.reshape({-1}));
  }
  return whole;
}

// What Module::save() does, with values that are not in the module.
void writeModule(const torch::nn::Module &module, const std::string &path, const Named &values,
                 OutputArchive &archive) {
  for (const auto &entry : module.named_parameters(/*recurse=*/false)) {
    const auto found = values.find(path + entry.key());
    archive.write(entry.key(), found == values.end() ? entry.value() : found->second);
  }
  for (const auto &entry : module.named_buffers(/*recurse=*/false))
    archive.write(entry.key(), entry.value().cpu(), /*is_buffer=*/true);
  for (const auto &child : module.named_children()) {
    if (!child.value()->is_serializable())
      continue;
    OutputArchive nested(archive.compilation_unit());
    writeModule(*child.value(), path + child.key() + ".", values, nested);
    archive.write(child.key(), nested);
  }
}

void readModule(const torch::nn::Module &module, const std::string &path, InputArchive &archive,
                Named &values) {
  at::NoGradGuard noGrad;
  for (const auto &entry : module.named_parameters(/*recurse=*/false)) {
    at::Tensor value;
    if (archive.try_read(entry.key(), value))
      values[path + entry.key()] = value;
  }
  for (auto &entry : module.named_buffers(/*recurse=*/false)) {
    at::Tensor value;
    if (archive.try_read(entry.key(), value, /*is_buffer=*/true))
      entry.value().copy_(value);
  }
  for (const auto &child : module.named_children()) {
    InputArchive nested;
    if (child.value()->is_serializable() && archive.try_read(child.key(), nested))
      readModule(*child.value(), path + child.key() + ".", nested, values);
  }
}

struct OptimizerPart {
  Named tensors; ///< "state name/parameter name"
  std::string kind;
  int64_t step = 0;
};

// Collective: the ranks' parts of each state tensor are put together, one after the other.
OptimizerPart collectState(ShardedModel &model, torch::optim::Optimizer &optimizer) {
  OptimizerPart all;
  auto &ranks = model.communicator();
  for (auto *partition : model.partitions()) {
    if (!partition->trainable())
      continue;
    const auto state = stateOf(optimizer, partition->master());
    if (!state)
      continue;
    all.kind = state->kind;
    all.step = state->step;
    for (const auto &[name, tensor] : state->tensors) {
      const auto whole = partition->assemble(tensor, ranks);
      if (ranks.rank() == 0)
        addMembers(all.tensors, *partition, whole, name + "/");
    }
  }
  return all;
}

void writeOwn(OutputArchive &archive, const OptimizerPart &state, torch::optim::Optimizer *optimizer,
              const GradScaler *scaler) {
  archive.write("kind", c10::IValue(state.kind));
  archive.write("step", c10::IValue(state.step));
  std::string names;
  size_t index = 0;
  for (const auto &[name, tensor] : state.tensors) {
    archive.write("tensor" + std::to_string(index++), tensor);
    names += name + "\n";
  }
  archive.write("names", c10::IValue(names));
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

OptimizerPart readOwn(InputArchive &archive) {
  OptimizerPart state;
  c10::IValue value;
  archive.read("kind", value);
  state.kind = value.toStringRef();
  archive.read("step", value);
  state.step = value.toInt();
  archive.read("names", value);
  const std::string names = value.toStringRef();
  size_t index = 0;
  for (size_t begin = 0; begin < names.size();) {
    const auto end = names.find('\n', begin);
    archive.read("tensor" + std::to_string(index++), state.tensors[names.substr(begin, end - begin)]);
    begin = end + 1;
  }
  return state;
}

void restoreState(ShardedModel &model, const OptimizerPart &state, torch::optim::Optimizer &optimizer,
                  const std::string &path) {
  std::map<std::string, bool> kinds;
  for (const auto &entry : state.tensors)
    kinds[entry.first.substr(0, entry.first.find('/'))] = true;
  if (state.kind.empty())
    return; // saved before the first step
  for (auto *partition : model.partitions()) {
    if (!partition->trainable())
      continue;
    ParameterState own{state.kind, state.step, {}};
    for (const auto &kind : kinds)
      own.tensors[kind.first] = ownPartAs(*partition, joinMembers(state.tensors, *partition, kind.first + "/",
                                                                  partition->master().scalar_type(), path));
    setState(optimizer, partition->master(), own);
  }
}

void restoreRates(InputArchive &archive, torch::optim::Optimizer &optimizer) {
  c10::IValue value;
  archive.read("rates", value);
  const auto rates = value.toDoubleVector();
  for (size_t i = 0; i < rates.size() && i < optimizer.param_groups().size(); ++i)
    optimizer.param_groups()[i].options().set_lr(rates[i]);
}

} // namespace

void saveCheckpoint(ShardedModel &model, const std::string &path, torch::optim::Optimizer *optimizer,
                    const GradScaler *scaler) {
  at::NoGradGuard noGrad;
  auto &ranks = model.communicator();
  Named values;
  for (auto *partition : model.partitions()) {
    const auto whole = partition->assemble(partition->ownValues(), ranks);
    if (ranks.rank() == 0)
      addMembers(values, *partition, whole, "");
  }
  OptimizerPart state;
  if (optimizer)
    state = collectState(model, *optimizer);
  onRankZero(ranks, [&] {
    OutputArchive archive, own(archive.compilation_unit());
    writeModule(model.root(), "", values, archive);
    writeOwn(own, state, optimizer, scaler);
    archive.write(kOwnArchive, own);
    writeFile(archive, path);
  });
}

void loadCheckpoint(ShardedModel &model, const std::string &path, torch::optim::Optimizer *optimizer,
                    GradScaler *scaler) {
  at::NoGradGuard noGrad;
  InputArchive archive, own;
  if (access(path.c_str(), R_OK) != 0)
    throw Error("rank " + std::to_string(model.communicator().rank()) + " cannot read '" + path +
                "'; every rank reads the file, so it must be on a file system they share");
  archive.load_from(path, torch::Device(at::kCPU));
  Named values;
  readModule(model.root(), "", archive, values);
  for (auto *partition : model.partitions())
    partition->setOwnValues(
        partition->ownPart(joinMembers(values, *partition, "", partition->ownValues().scalar_type(), path)));
  if (optimizer || scaler) {
    if (!archive.try_read(kOwnArchive, own))
      throw Error("'" + path +
                  "' holds a model without optimizer; it was not written by ShardedDataParallel");
    if (optimizer) {
      restoreState(model, readOwn(own), *optimizer, path);
      restoreRates(own, *optimizer);
    }
    c10::IValue scale, steps;
    if (scaler && own.try_read("scale", scale)) {
      own.read("good_steps", steps);
      scaler->load_state({scale.toDouble(), steps.toInt()});
    }
  }
  model.synchronize();
}

} // namespace device_shim::detail
