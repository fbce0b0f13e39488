// Data-parallel training: every rank holds the whole model, and gradients are averaged while backward() runs.
//
//   auto ranks = device_shim::init_distributed();
//   Net net;
//   net->to(ranks->device());
//   device_shim::DistributedDataParallel model(net, ranks);
//   loss(model.forward(input), target).backward();   // afterwards the gradients are those of all ranks
//   optimizer.step();
#pragma once

#include <device_shim/Communicator.h>

#include <torch/nn/module.h>

#include <cstdint>
#include <memory>
#include <utility>

namespace device_shim {

struct DataParallelOptions {
  /// Bytes of gradients that travel together. The first bucket of a backward pass is smaller, so that sending
  /// begins early. The defaults are those of PyTorch's Reducer.
  int64_t bucket_bytes = int64_t(25) << 20;
  int64_t first_bucket_bytes = int64_t(1) << 20;
  /// Parameters that take no part in a forward pass are allowed. Where another rank used one, all ranks get
  /// its average; where none did, its gradient is left as it is. Without it such a parameter is an error.
  bool find_unused_parameters = false;
  /// Copy the buffers of rank 0, such as running statistics, to all ranks before each forward pass.
  bool broadcast_buffers = true;
};

namespace detail {
class GradientBuckets;
}

/// The part of DistributedDataParallel that does not depend on the type of the model.
class DataParallelCore {
public:
  DataParallelCore(torch::nn::Module &module, std::shared_ptr<Communicator> ranks,
                   const DataParallelOptions &options);
  ~DataParallelCore();
  DataParallelCore(DataParallelCore &&) noexcept;
  DataParallelCore &operator=(DataParallelCore &&) = delete;

  void before_forward();

  /// While it lives, backward passes add up gradients on this rank only; the next pass after it averages the
  /// sums.
  class NoSync {
  public:
    explicit NoSync(detail::GradientBuckets &buckets);
    ~NoSync();
    NoSync(const NoSync &) = delete;
    NoSync &operator=(const NoSync &) = delete;

  private:
    detail::GradientBuckets &buckets;
    bool before;
  };
  NoSync no_sync() { return NoSync(*buckets); }

  /// Number of messages of a backward pass.
  size_t bucket_count() const;

private:
  std::unique_ptr<detail::GradientBuckets> buckets;
};

/// Wraps a module, given as its holder (`Net`) or as a std::shared_ptr.
///
/// The constructor gives all ranks the parameters and buffers of rank 0. Gradients are averaged in buckets,
/// each as soon as its gradients are there, overlapped with the rest of backward(). The gradients of the
/// parameters are views of the buckets. The result is that of one process with the concatenated batch when
/// all ranks have equally many samples and the loss is a mean.
///
/// A tied parameter, which the module has under several names, is averaged once.
///
/// Every rank must run backward() equally often. Optimizers may be made before or after.
template <typename ModuleType> class DistributedDataParallel {
public:
  /// \throws UsageError when the models of the ranks differ or a parameter is sparse; DeviceError when the
  /// module is
  ///   not on this rank's device.
  explicit DistributedDataParallel(ModuleType wrapped, std::shared_ptr<Communicator> ranks,
                                   const DataParallelOptions &options = {})
      : inner(std::move(wrapped)), core(*inner, std::move(ranks), options) {}

  /// The module's forward(). Errors of the averaging come from backward(): PeerError; UsageError for a
  /// parameter without gradient, see find_unused_parameters.
  /// \throws UsageError for a parameter that was frozen when the wrapper was made and is no longer.
  template <typename... Arguments> auto forward(Arguments &&...arguments) {
    core.before_forward();
    return inner->forward(std::forward<Arguments>(arguments)...);
  }
  template <typename... Arguments> auto operator()(Arguments &&...arguments) {
    return forward(std::forward<Arguments>(arguments)...);
  }

  DataParallelCore::NoSync no_sync() { return core.no_sync(); }
  ModuleType &module() { return inner; }
  auto operator->() { return inner.operator->(); }
  size_t bucket_count() const { return core.bucket_count(); }

private:
  ModuleType inner;
  DataParallelCore core;
};

} // namespace device_shim
