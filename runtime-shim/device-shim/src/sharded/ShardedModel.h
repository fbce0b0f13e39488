//===- ShardedModel.h - gathers, reduces and frees partitions ---*- C++ -*-===//
//
// The partitions of a model, and when they are gathered, reduced and freed.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "autograd/GradientHook.h"
#include "autograd/ResultsPass.h"
#include "autograd/StageUses.h"
#include "base/Tether.h"
#include "params/DistinctParameters.h"
#include "params/KnownParameters.h"
#include "params/LaggingParameters.h"
#include "params/WrapperClaim.h"
#include "sharded/FlatPartition.h"

#include <device_shim/ShardedDataParallel.h>

#include <map>
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
  /// With the tensors in the result of a forward pass.
  void endForward(const std::vector<at::Tensor *> &outputs);
  void beforeStage(size_t unit);
  void afterStage(size_t unit, const std::vector<at::Tensor *> &outputs);

  /// See BackwardPass.
  void passEnds();
  void passFailed(uint64_t pass) noexcept;

  /// Every partition, in the same order on every rank.
  std::vector<FlatPartition *> partitions() const;
  /// What an optimizer works on, with `group` that of one group.
  std::vector<at::Tensor> masters(std::optional<int> group = std::nullopt) const;
  /// The module's parameters must be what the partitions made of them. \throws UsageError for one that
  /// torch::load() or Module::to() replaced, and, unless it is about to be `overwritten`, for one whose
  /// values were changed where the partitions do not see it.
  void requireUntouched(bool overwritten = false);
  /// Parameters follow what an optimizer did. Collective.
  void synchronize();
  /// Gradients follow what the module's zero_grad() did.
  void followZeroGrad();
  /// Types of buffers that were converted, by name.
  const std::map<std::string, at::ScalarType> &bufferTypes() const { return convertedBuffers; }
  double gradNorm();
  double unscaleAndClip(double maxNorm, GradScaler *scaler);

  torch::nn::Module &root() { return *module; }
  Communicator &communicator() { return *ranks; }
  const ShardedOptions &wanted() const { return options; }
  const MemoryCount &memoryCount();
  StageChain *stageChain() { return chain.get(); }

private:
  /// What is gathered and freed together: a stage, or with ZeRO 2 a bucket.
  struct Unit {
    std::string name;
    std::vector<std::unique_ptr<FlatPartition>> partitions;
    std::vector<std::unique_ptr<GradientHook>> hooks; ///< of the parameters that learn
    size_t trainable = 0;                             ///< parameters that are not frozen now
    size_t missing = 0;                               ///< gradients, in this backward pass
    StageUses uses;
    bool inBackward = false; ///< gathered for it
  };

  void makeStageUnits();
  void makeBucketUnits();
  void addUnits(std::vector<std::pair<std::string, std::vector<FlatPartition::Member>>> lists);
  void addUnit(const std::string &name, std::vector<FlatPartition::Member> members, bool offloaded);
  void addHooks(size_t unit);
  void moveBuffers();
  void moveEmpty(at::Tensor &parameter) const;
  FlatPartition::Placement placementOf(bool offloaded, const at::Tensor &parameter) const;

  void synchronize(bool stepped);
  void followFreezing();
  void takeMarks();
  void placeMarks();
  void takeEarlierGradients();
  void gather(Unit &unit);
  void startGather(Unit &unit);
  void release(Unit &unit);
  void requireOwnMemory(const Unit &unit, const at::Tensor &output) const;
  void prefetchAfter(size_t unit);
  void beforeStageBackward(size_t unit, StageUse &use);
  void leaveBehind(uint64_t use);
  void prefetchBefore(const StageUse &use);
  void beforeGradient();
  void beginBackward();
  void passReachesResults();
  void requireCurrentParameters();
  void orderReductions();
  void agreeOnNext(std::optional<size_t> unit);
  void listOthers();
  void gradientReady(size_t unit, size_t partition, size_t member);
  void reduceReady();
  void reduce(Unit &unit);
  void finishReduce();
  void resetBackward();

  std::shared_ptr<torch::nn::Module> module;
  std::shared_ptr<Communicator> ranks;
  std::shared_ptr<Communicator> gathers; ///< its operations do not queue behind those of `ranks`
  ShardedOptions options;
  WrapperClaim claim;
  LaggingParameters lagging;
  KnownParameters known;
  int64_t messageBytes; ///< of gradients that are sent together
  MemoryCount memory;
  std::unique_ptr<StageChain> chain; ///< stage 3 only
  std::vector<std::unique_ptr<Unit>> units;
  std::vector<size_t> order; ///< of the stages in the last forward pass
  std::vector<size_t> lastOrder;
  std::vector<size_t> reduceOrder; ///< of the units in this backward pass
  bool orderKnown = false;         ///< ZeRO 2: reduceOrder holds for all passes
  bool agreeing = false;           ///< ZeRO 2: the ranks agree on it, in this backward pass
  uint64_t stageUses = 0;
  std::vector<DistinctParameter> frozen; ///< when the model was wrapped
  std::map<std::string, at::ScalarType> convertedBuffers;
  std::recursive_mutex mutex; // the autograd engine has threads of its own
  bool backwardActive = false;
  bool stepsTaken = false;  ///< by an optimizer, perhaps; so after the first backward pass
  bool passedSince = false; ///< a backward pass has ended since the parameters followed the partitions
  bool begun = false;       ///< a forward pass, since the last backward pass
  bool marked = false;      ///< the parameters have the marks of the partitions
  size_t nextToReduce = 0;  ///< in reduceOrder
  uint64_t passes = 0;
  Unit *reducing = nullptr;
  ResultsPass resultsPass{[this] { passReachesResults(); }};
  Tether<ShardedModel> tether{*this};
};

} // namespace device_shim::detail
