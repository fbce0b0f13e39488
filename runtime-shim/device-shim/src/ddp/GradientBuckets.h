//===- GradientBuckets.h - averages gradients in buckets --------*- C++ -*-===//
//
// The averaging of gradients: buckets in the order in which backward() fills them.
//
// LibTorch's own c10d::Reducer is not used: its header includes one that LibTorch 1.13 does not ship.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "autograd/GradientHook.h"
#include "base/Tether.h"
#include "params/DistinctParameters.h"
#include "params/KnownParameters.h"
#include "params/WrapperClaim.h"

#include <device_shim/DistributedDataParallel.h>

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace device_shim::detail {

class GradientBuckets {
public:
  GradientBuckets(torch::nn::Module &module, std::shared_ptr<Communicator> ranks,
                  const DataParallelOptions &options);
  ~GradientBuckets();
  GradientBuckets(const GradientBuckets &) = delete;
  GradientBuckets &operator=(const GradientBuckets &) = delete;

  void beforeForward();
  void afterForward(const std::vector<at::Tensor *> &outputs);
  /// As often as resumeAveraging(): backward passes average again after the last.
  void pauseAveraging() { ++pauses; }
  void resumeAveraging() { --pauses; }
  size_t count() const { return buckets.size(); }
  torch::nn::Module &root() { return module; }
  Communicator &communicator() { return *ranks; }

  /// See BackwardPass.
  void passEnds();
  void passFailed(uint64_t pass) noexcept;

private:
  struct Slot {
    std::string name;
    at::Tensor parameter;
    size_t bucket = 0;
    int64_t offset = 0; ///< in the bucket, in elements
    at::Tensor view;    ///< this parameter's part of its bucket
    std::unique_ptr<GradientHook> hook;
    bool ready = false;       ///< in this backward pass
    bool accumulated = false; ///< in passes without averaging since the last with it
    bool unused = false;
  };
  struct Bucket {
    std::vector<size_t> slots;
    at::Tensor flat; ///< gradients, then with find_unused_parameters one flag per slot
    at::Tensor sent; ///< all of it, complex elements as pairs of real ones
    size_t missing = 0;
    Pending sum;
    bool spoilt = false;  ///< by a pass that failed after it was sent
    bool checked = false; ///< in this backward pass, for others that hold its memory
  };

  void assign();
  void allocate(Bucket &bucket);
  static bool isPart(const at::Tensor &gradient, const at::Tensor &view);
  void spareKept(Slot &slot);
  bool heldElsewhere(const Bucket &bucket) const;
  void leaveToOthers(Bucket &bucket);
  void addHooks();
  void passReachesOutputs();
  bool isNested() const;
  void followReplaced();
  void compareModule();
  void gradientReady(size_t slot);
  void place(Slot &slot);
  void launchReady();
  void setFlags(Bucket &bucket);
  at::Tensor flagsOf(const Bucket &bucket) const;
  void launch(Bucket &bucket);
  void fillMissing();
  void settleUnused();
  void reset();
  void abandon() noexcept;
  void dropSpoilt();
  void waitForSums() noexcept;

  torch::nn::Module &module;
  std::shared_ptr<Communicator> ranks;
  DataParallelOptions options;
  WrapperClaim claim;
  KnownParameters known;
  std::vector<Slot> slots;
  std::vector<DistinctParameter> frozen; ///< when the model was wrapped
  std::vector<Bucket> buckets;
  std::recursive_mutex mutex; // the autograd engine has a thread per device
  int pauses = 0;
  bool passActive = false;
  bool waiting = false;     ///< in this backward pass nothing is sent before its end
  size_t forwardPasses = 0; ///< since the last backward pass, with which gradients come again in nested ones
  bool comparedModule = false;       ///< with what is known, since the last backward pass
  uint64_t passes = 0;               ///< that were followed
  uint64_t activePass = 0;           ///< with whose end the averaging ends
  uint64_t outputsPass = 0;          ///< the one that came through the results of the model; 0: has ended
  const void *outputsTask = nullptr; ///< autograd's, of that
  size_t nextBucket = 0;
  std::shared_ptr<const std::vector<at::Tensor>> trained; ///< for graphs that outlive the buckets
  Tether<GradientBuckets> tether{*this};
};

} // namespace device_shim::detail
