// The partitions of a model, and when they are gathered, reduced and freed.
#pragma once

#include "FlatPartition.h"

#include <device_shim/ShardedDataParallel.h>

#include <torch/csrc/autograd/function.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace device_shim::detail {

class ShardedModel {
public:
  ShardedModel(std::shared_ptr<torch::nn::Module> module, std::shared_ptr<Communicator> ranks,
               const ShardedOptions &options);
  ~ShardedModel();
  ShardedModel(const ShardedModel &) = delete;
  ShardedModel &operator=(const ShardedModel &) = delete;

  void beginForward();
  void beforeStage(size_t unit, const std::vector<at::Tensor *> &inputs);
  void afterStage(size_t unit, const std::vector<at::Tensor *> &outputs);

  /// Every partition, in the same order on every rank.
  std::vector<FlatPartition *> partitions() const;
  /// What an optimizer works on, with `group` that of one group.
  std::vector<at::Tensor> masters(std::optional<int> group = std::nullopt) const;
  /// Parameters follow what an optimizer did.
  void synchronize();
  double gradNorm();
  double unscaleAndClip(double maxNorm, GradScaler *scaler);

  torch::nn::Module &root() { return *module; }
  Communicator &communicator() { return *ranks; }
  const ShardedOptions &wanted() const { return options; }
  const MemoryCount &memoryCount() const { return memory; }
  StageChain *stageChain() { return chain.get(); }

private:
  /// What is gathered and freed together: a stage, or with ZeRO 2 a bucket.
  struct Unit {
    std::string name;
    std::vector<std::unique_ptr<FlatPartition>> partitions;
    std::vector<std::shared_ptr<torch::autograd::Node>> accumulators;
    std::vector<uintptr_t> hooks;
    size_t trainable = 0; ///< parameters
    bool hasFrozen = false;
    size_t missing = 0; ///< gradients, in this backward pass
    int64_t openInputs =
        0; ///< gradients of inputs that are still to come; counted where there are frozen parameters
    bool inBackward = false;
  };

  void makeStageUnits();
  void makeBucketUnits();
  void addUnits(std::vector<std::pair<std::string, std::vector<FlatPartition::Member>>> lists);
  void addUnit(const std::string &name, std::vector<FlatPartition::Member> members, bool offloaded);
  void addHooks(size_t unit);
  void moveBuffers();
  FlatPartition::Placement placementOf(bool offloaded, const at::Tensor &parameter) const;

  void gather(Unit &unit);
  void startGather(Unit &unit);
  void release(Unit &unit);
  void prefetchAfter(size_t unit);
  void beforeStageBackward(size_t unit);
  void inputGradientReady(size_t unit);
  void beginBackward();
  void gradientReady(size_t unit, size_t partition, size_t member);
  void releaseWhenDone(Unit &unit);
  void reduceReady();
  void reduce(Unit &unit);
  void finishReduce();
  void finishBackward();
  void resetBackward();

  std::shared_ptr<torch::nn::Module> module;
  std::shared_ptr<Communicator> ranks;
  std::shared_ptr<Communicator> gathers; ///< its operations do not queue behind those of `ranks`
  ShardedOptions options;
  MemoryCount memory;
  std::unique_ptr<StageChain> chain; ///< stage 3 only
  std::vector<std::unique_ptr<Unit>> units;
  std::vector<size_t> order; ///< of the stages in the last forward pass
  std::vector<size_t> lastOrder;
  std::recursive_mutex mutex; // the autograd engine has threads of its own
  bool backwardActive = false;
  bool ranBackward = false; ///< since the last synchronize()
  size_t nextToReduce = 0;  ///< counted from the end
  Unit *reducing = nullptr;
};

} // namespace device_shim::detail
