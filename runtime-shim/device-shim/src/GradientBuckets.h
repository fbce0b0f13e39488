// The averaging of gradients: buckets in the order in which backward() fills them.
//
// LibTorch's own c10d::Reducer is not used: its header includes one that LibTorch 1.13 does not ship.
#pragma once

#include "DistinctParameters.h"

#include <device_shim/DistributedDataParallel.h>

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/function.h>
#include <torch/nn/module.h>

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
  bool averages() const { return averaging; }
  void setAverages(bool value) { averaging = value; }
  size_t count() const { return buckets.size(); }

private:
  struct Slot {
    std::string name;
    at::Tensor parameter;
    size_t bucket = 0;
    at::Tensor view; ///< this parameter's part of its bucket
    std::shared_ptr<torch::autograd::Node> accumulator;
    uintptr_t hook = 0;
    bool ready = false;       ///< in this backward pass
    bool accumulated = false; ///< in passes without averaging since the last with it
    bool unused = false;
  };
  struct Bucket {
    std::vector<size_t> slots;
    at::Tensor flat; ///< gradients, then with find_unused_parameters one flag per slot
    size_t missing = 0;
    Pending sum;
  };

  void assign();
  void allocate(Bucket &bucket);
  void addHooks();
  void gradientReady(size_t slot);
  void place(Slot &slot);
  void launchReady();
  void launch(Bucket &bucket);
  void finish();
  void fillMissing();
  void settleUnused(Bucket &bucket);
  void reset();

  torch::nn::Module &module;
  std::shared_ptr<Communicator> ranks;
  DataParallelOptions options;
  std::vector<Slot> slots;
  std::vector<DistinctParameter> frozen; ///< when the model was wrapped
  std::vector<Bucket> buckets;
  std::mutex mutex; // the autograd engine has a thread per device
  bool averaging = true;
  bool passActive = false;
  size_t nextBucket = 0;
};

} // namespace device_shim::detail
