#include "sharded/ShardedModel.h"

#include "base/NormalTensors.h"
#include "params/ModelAgreement.h"

#include <device_shim/Error.h>

#include <ATen/ATen.h>

#include <algorithm>
#include <exception>
#include <map>
#include <tuple>

namespace device_shim::detail {
namespace {

int64_t bytesOf(const at::Tensor &tensor) {
  return tensor.numel() * static_cast<int64_t>(tensor.element_size());
}

// Gradients that are waited for and sent together take memory: a small part of what the model takes, but not
// so small that the time goes into messages.
int64_t messageBytesOf(const torch::nn::Module &module) {
  constexpr int64_t kLeast = int64_t(64) << 10, kMost = int64_t(25) << 20, kMessages = 16;
  int64_t bytes = 0;
  for (const auto &parameter : distinctParameters(module))
    if (parameter.value.requires_grad())
      bytes += bytesOf(parameter.value);
  return std::clamp(bytes / kMessages, kLeast, kMost);
}

class GatheringHooks final : public StageHooks {
public:
  GatheringHooks(ShardedModel &ofModel, size_t ofUnit) : model(ofModel), unit(ofUnit) {}
  void before_forward(const std::vector<at::Tensor *> &) override { model.beforeStage(unit); }
  void after_forward(const std::vector<at::Tensor *> &outputs) override { model.afterStage(unit, outputs); }

private:
  ShardedModel &model;
  size_t unit;
};

void checkOptions(const ShardedOptions &options) {
  if (options.stage != 2 && options.stage != 3)
    throw UsageError("ShardedOptions::stage is " + std::to_string(options.stage) +
                     "; 2 shards gradients and optimizer state, 3 parameters too");
  if (options.offload_parameters && options.stage != 3)
    throw UsageError(
        "ShardedOptions::offload_parameters needs stage 3; with stage 2 every rank computes with the "
        "whole parameters all the time");
  if (!(options.offload_ratio >= 0 && options.offload_ratio <= 1))
    throw UsageError("ShardedOptions::offload_ratio must be between 0 and 1");
  if (options.bucket_bytes < 1)
    throw UsageError("ShardedOptions::bucket_bytes must be at least 1, not " +
                     std::to_string(options.bucket_bytes));
  const auto type = options.parameter_type.value_or(at::kFloat);
  if (type != at::kHalf && type != at::kBFloat16 && type != at::kFloat)
    throw UsageError(std::string("ShardedOptions::parameter_type is ") + c10::toString(type) +
                     "; models compute in kHalf, kBFloat16 or kFloat");
}

// Before anything else looks at them.
std::shared_ptr<torch::nn::Module> present(std::shared_ptr<torch::nn::Module> module,
                                           const std::shared_ptr<Communicator> &ranks) {
  if (!module)
    throw UsageError("ShardedDataParallel got no module, but a null pointer");
  if (!ranks)
    throw UsageError("ShardedDataParallel got no communicator; pass what init_distributed() returned");
  return module;
}

std::string agreementText(const ShardedOptions &options, const torch::nn::Module &module) {
  std::string text = "stage " + std::to_string(options.stage) + "\nbucket_bytes " +
                     std::to_string(options.bucket_bytes) + "\nprefetch " +
                     (options.prefetch ? "true" : "false") + "\nparameter_type " +
                     (options.parameter_type ? c10::toString(*options.parameter_type) : "unset") + "\n";
  for (const auto &parameter : distinctParameters(module))
    if (options.group)
      text += "group of " + parameter.name + " " +
              std::to_string(options.group(parameter.name, parameter.value)) + "\n";
  return text;
}

// What cannot be sharded is refused before anything is, so that the model stays as it was.
FlatPartition::Member memberOf(const DistinctParameter &parameter) {
  const auto &value = parameter.value;
  if (value.layout() != at::kStrided)
    throw UsageError("parameter " + parameter.name +
                     " is sparse; ShardedDataParallel shards dense parameters only");
  return {parameter.name, parameter.aliases, value, value.sizes().vec(), value.numel(), 0, {}};
}

} // namespace

ShardedModel::ShardedModel(std::shared_ptr<torch::nn::Module> ofModule, std::shared_ptr<Communicator> all,
                           const ShardedOptions &wanted)
    : module(present(std::move(ofModule), all)), ranks(std::move(all)), options(wanted),
      claim(*module, Wrapper::sharded), lagging(*module), known(*module),
      messageBytes(messageBytesOf(*module)) {
  checkOptions(options);
  requireSameModel(*module, agreementText(options, *module), *ranks);
  broadcastModel(*module, *ranks);
  gathers = options.stage == 3 ? ranks->duplicate() : ranks;
  if (options.stage == 3)
    makeStageUnits();
  else
    makeBucketUnits();
  takeEarlierGradients();
  moveBuffers();
  for (auto &unit : units)
    unit->missing = unit->trainable;
  for (const auto &parameter : distinctParameters(*module))
    if (!parameter.value.requires_grad())
      frozen.push_back(parameter);
}

ShardedModel::~ShardedModel() {
  tether.cut();
  for (auto &unit : units)
    unit->hooks.clear();
  // The module lives on with what the last step made of it, unless the ranks go separate ways.
  if (options.stage != 2 || std::uncaught_exceptions() > 0)
    return;
  try {
    synchronize();
  } catch (const std::exception &) {
    // Another rank has failed, which the next collective says.
  }
}

// Floating buffers get the type of the parameters, as with Module::to().
void ShardedModel::moveBuffers() {
  at::NoGradGuard noGrad;
  for (auto &entry : module->named_buffers()) {
    auto &buffer = entry.value();
    if (!buffer.defined())
      continue;
    auto type = buffer.scalar_type();
    if (options.parameter_type && buffer.is_floating_point() && type != *options.parameter_type) {
      convertedBuffers.emplace(entry.key(), type);
      type = *options.parameter_type;
    }
    buffer.set_data(buffer.detach().to(ranks->device(), type));
  }
}

void ShardedModel::makeStageUnits() {
  chain = std::make_unique<StageChain>(module);
  chain->require_complete("ShardedDataParallel with stage 3", /*buffers=*/false);
  std::map<const void *, std::string> owners;
  std::vector<std::pair<std::string, std::vector<FlatPartition::Member>>> lists;
  chain->require_unused();
  for (size_t i = 0; i < chain->links().size(); ++i) {
    const auto &link = chain->links()[i];
    std::vector<FlatPartition::Member> members;
    for (const auto &parameter : distinctParameters(*link.module, link.name, link.aliases)) {
      const auto *identity = parameter.value.unsafeGetTensorImpl();
      if (!owners.emplace(identity, parameter.name).second)
        throw UsageError("parameter " + parameter.name + " is the same as " + owners.at(identity) +
                         " of another stage; a "
                         "parameter that two stages use must be gathered for both: put them into one stage");
      members.push_back(memberOf(parameter));
    }
    lists.emplace_back(link.name, std::move(members));
  }
  addUnits(std::move(lists));
  for (size_t i = 0; i < chain->links().size(); ++i)
    chain->install(i, std::make_shared<GatheringHooks>(*this, i));
}

void ShardedModel::makeBucketUnits() {
  std::vector<std::pair<std::string, std::vector<FlatPartition::Member>>> lists;
  int64_t bytes = 0;
  const int64_t most = std::min(options.bucket_bytes, messageBytes);
  for (const auto &parameter : distinctParameters(*module)) {
    const int64_t more = bytesOf(parameter.value);
    if (lists.empty() || bytes + more > most) {
      lists.emplace_back("bucket " + std::to_string(lists.size()), std::vector<FlatPartition::Member>());
      bytes = 0;
    }
    lists.back().second.push_back(memberOf(parameter));
    bytes += more;
  }
  addUnits(std::move(lists));
}

void ShardedModel::addUnits(std::vector<std::pair<std::string, std::vector<FlatPartition::Member>>> lists) {
  const double offloaded =
      options.offload_optimizer ? options.offload_ratio * static_cast<double>(lists.size()) : 0;
  for (size_t i = 0; i < lists.size(); ++i)
    addUnit(lists[i].first, std::move(lists[i].second), static_cast<double>(i) < offloaded);
}

FlatPartition::Placement ShardedModel::placementOf(bool offloaded, const at::Tensor &parameter) const {
  FlatPartition::Placement placement;
  placement.compute = ranks->device();
  placement.type = parameter.scalar_type();
  if (options.parameter_type && parameter.is_floating_point())
    placement.type = *options.parameter_type;
  placement.optimizer = offloaded ? at::Device(at::kCPU) : placement.compute;
  placement.resting = options.offload_parameters ? at::Device(at::kCPU) : placement.compute;
  placement.pinned = options.pin_memory && placement.compute.is_cuda();
  placement.keepWhole = options.stage == 2;
  placement.messageBytes = messageBytes;
  return placement;
}

// It cannot be sharded.
void ShardedModel::moveEmpty(at::Tensor &parameter) const {
  NormalTensors normal;
  const auto placement = placementOf(/*offloaded=*/false, parameter);
  parameter.set_data(parameter.to(placement.compute, placement.type));
}

// Parameters of one type, group and need for gradients make a partition.
void ShardedModel::addUnit(const std::string &name, std::vector<FlatPartition::Member> members,
                           bool offloaded) {
  using Kind = std::tuple<at::ScalarType, bool, int>;
  std::map<Kind, std::vector<FlatPartition::Member>> kinds;
  auto unit = std::make_unique<Unit>();
  unit->name = name;
  for (auto &member : members) {
    if (member.elements == 0) {
      moveEmpty(member.parameter);
      continue;
    }
    const int group = options.group ? options.group(member.name, member.parameter) : 0;
    kinds[{member.parameter.scalar_type(), member.parameter.requires_grad(), group}].push_back(member);
  }
  for (auto &[kind, list] : kinds) {
    auto placement = placementOf(offloaded, list.front().parameter);
    placement.group = std::get<2>(kind);
    if (std::get<1>(kind))
      unit->trainable += list.size();
    unit->partitions.push_back(std::make_unique<FlatPartition>(std::move(list), placement, ranks, memory));
  }
  units.push_back(std::move(unit));
  addHooks(units.size() - 1);
}

// Made after the partitions, which change type and device of the parameters.
void ShardedModel::addHooks(size_t index) {
  auto &unit = *units[index];
  for (size_t p = 0; p < unit.partitions.size(); ++p) {
    auto &partition = *unit.partitions[p];
    if (!partition.trainable())
      continue;
    // An accumulator remembers the shape of its parameter, so that must have it now.
    partition.startGather(*gathers);
    partition.finishGather();
    for (size_t m = 0; m < partition.members().size(); ++m) {
      const auto &member = partition.members()[m];
      unit.hooks.push_back(std::make_unique<GradientHook>(
          member.parameter, member.name, "ShardedDataParallel",
          [this, index, p, m] { gradientReady(index, p, m); }, [this] { beforeGradient(); }));
    }
    partition.release();
  }
}

std::vector<FlatPartition *> ShardedModel::partitions() const {
  std::vector<FlatPartition *> all;
  for (const auto &unit : units)
    for (const auto &partition : unit->partitions)
      all.push_back(partition.get());
  return all;
}

std::vector<at::Tensor> ShardedModel::masters(std::optional<int> group) const {
  std::vector<at::Tensor> all;
  for (auto *partition : partitions())
    if (partition->trainable() && (!group || partition->group() == *group))
      all.push_back(partition->master());
  return all;
}

void ShardedModel::synchronize() {
  std::lock_guard<std::recursive_mutex> lock(mutex);
  synchronize(stepsTaken);
}

void ShardedModel::synchronize(bool stepped) {
  for (auto *partition : partitions())
    partition->synchronize(*gathers, stepped);
  passedSince = false;
  lagging.set(false);
}

const MemoryCount &ShardedModel::memoryCount() {
  std::lock_guard<std::recursive_mutex> lock(mutex);
  for (auto *partition : partitions())
    partition->countGradient();
  return memory;
}

void ShardedModel::beginForward() {
  std::lock_guard<std::recursive_mutex> lock(mutex);
  if (backwardActive) // an exception ended the last backward pass
    resetBackward();
  requireStillFrozen(frozen, "ShardedDataParallel");
  requireUntouched();
  if (at::GradMode::is_enabled()) {
    known.requireNoneAdded(*module, "ShardedDataParallel");
    followFreezing();
  }
  takeMarks();
  memoryCount();
  synchronize();
  placeMarks();
  begun = true;
  if (!order.empty())
    lastOrder = std::move(order);
  order.clear();
}

void ShardedModel::startGather(Unit &unit) {
  for (auto &partition : unit.partitions)
    partition->startGather(*gathers);
}

void ShardedModel::gather(Unit &unit) {
  startGather(unit);
  for (auto &partition : unit.partitions)
    partition->finishGather();
}

void ShardedModel::release(Unit &unit) {
  for (auto &partition : unit.partitions)
    partition->release();
}

// The order of the last pass tells what comes next.
void ShardedModel::prefetchAfter(size_t unit) {
  if (!options.prefetch)
    return;
  const size_t position = order.size() - 1;
  if (position + 1 < lastOrder.size() && lastOrder[position] == unit)
    startGather(*units[lastOrder[position + 1]]);
}

void ShardedModel::beforeStage(size_t index) {
  std::lock_guard<std::recursive_mutex> lock(mutex);
  if (!begun && !backwardActive) // the module's own forward() was called
    beginForward();
  order.push_back(index);
  gather(*units[index]);
  prefetchAfter(index);
}

void ShardedModel::requireOwnMemory(const Unit &unit, const at::Tensor &output) const {
  for (const auto &partition : unit.partitions)
    if (const auto *member = partition->sharesMemory(output))
      throw UsageError(
          "stage '" + unit.name + "' returned its parameter " + member->name +
          ", or a view of it, whose memory is freed after the stage; return a copy, as clone() makes "
          "it, or take stage 2");
}

void ShardedModel::afterStage(size_t index, const std::vector<at::Tensor *> &outputs) {
  std::lock_guard<std::recursive_mutex> lock(mutex);
  auto &unit = *units[index];
  for (const auto *output : outputs)
    requireOwnMemory(unit, *output);
  release(unit);
  std::shared_ptr<StageUse> use;
  for (auto *output : outputs) {
    // A leaf is not a result, but an input. Autograd reaches it after the operations that made the others.
    if (!output->defined() || !output->requires_grad() || output->is_leaf())
      continue;
    if (!use)
      use = unit.uses.add(++stageUses, order.size() - 1);
    output->register_hook([tether = tether, index, use](const at::Tensor &) {
      if (!tether.reach([&](ShardedModel &model) { model.beforeStageBackward(index, *use); }))
        throw UsageError(
            "the ShardedDataParallel whose forward() made this graph was destroyed before backward(), "
            "and the parameters with it; keep it for as long as its results");
    });
  }
}

} // namespace device_shim::detail
