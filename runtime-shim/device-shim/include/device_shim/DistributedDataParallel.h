//===- DistributedDataParallel.h - data-parallel training -------*- C++ -*-===//
//
// Data-parallel training: every rank holds the whole model, and gradients are averaged while backward() runs.
//
//   auto ranks = device_shim::init_distributed();
//   Net net;
//   net->to(ranks->device());
//   device_shim::DistributedDataParallel model(net, ranks);
//   loss(model.forward(input), target).backward();   // afterwards the gradients are those of all ranks
//   optimizer.step();
//
// Source: Li et al., https://arxiv.org/abs/2006.15704, and PyTorch's DistributedDataParallel.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <device_shim/Communicator.h>
#include <device_shim/Error.h>
#include <device_shim/GradScaler.h>
#include <device_shim/Stage.h>

#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace device_shim {

/// Must be equal on all ranks.
struct DataParallelOptions {
  /// Bytes of gradients that travel together, at least 1: a bucket is closed by the parameter that fills it.
  /// The first bucket of a backward pass is smaller, so that sending begins early. The rule and the defaults
  /// are those of PyTorch's Reducer.
  int64_t bucket_bytes = int64_t(25) << 20;
  int64_t first_bucket_bytes = int64_t(1) << 20;
  /// Parameters that take no part in a forward pass are allowed. Where another rank used one, all ranks get
  /// its average; where none did, its gradient is left unchanged. Without it such a parameter is an error.
  bool find_unused_parameters = false;
  /// Copy the buffers of rank 0, such as running statistics, to all ranks before each forward pass. Autograd
  /// does not notice, so that several forward passes may come before one backward().
  bool broadcast_buffers = true;
};

namespace detail {
class GradientBuckets;
}

/// The part of DistributedDataParallel that does not depend on the type of the model, for those who call the
/// module themselves.
class DataParallelCore {
public:
  /// Gives all ranks the parameters and buffers of rank 0 and puts hooks on the parameters, which `module`
  /// must have on this rank's device already. Keeps a reference to `module`, which must outlive it.
  /// Collective.
  /// \throws UsageError when the models of the ranks differ, no parameter requires a gradient, a parameter
  /// belongs to
  ///   another wrapper, `ranks` is null or options are out of range; DeviceError when the module is not on
  ///   this rank's device; PeerError when another rank fails.
  DataParallelCore(torch::nn::Module &module, std::shared_ptr<Communicator> ranks,
                   const DataParallelOptions &options);
  /// Gradients keep what they are, and are not averaged from then on: backward() of a result that
  /// after_forward() has seen throws UsageError.
  ~DataParallelCore();
  DataParallelCore(DataParallelCore &&) noexcept;
  DataParallelCore &operator=(DataParallelCore &&) = delete;

  /// What comes before each forward pass: follows parameters that torch::load() has filled. Collective where
  /// it copies buffers: with broadcast_buffers, while gradients are enabled and not within no_sync().
  /// \throws UsageError for a parameter that was frozen when the wrapper was made and is no longer, that has
  /// another type, shape or device since, or, while gradients are enabled, that requires a gradient and came
  /// later, unless another wrapper has it; PeerError.
  void before_forward();

  /// What comes after each forward pass, with the tensors in its result, of any shape; some may be undefined.
  /// It lets gradients that come in a backward pass within another, as with segments that are computed again
  /// (checkpointing), wait for those of the outer one. Without it such a pass must have all of them, unless
  /// find_unused_parameters is set.
  void after_forward(const std::vector<at::Tensor *> &outputs);

  /// While one lives, backward passes add up gradients on this rank only; the next pass after it averages the
  /// sums. It counts when backward() runs; the forward pass may be within or before. Several may live at a
  /// time, and end in any order. They must end before the wrapper, and other threads must not run backward()
  /// of the model while one begins or ends.
  class NoSync {
  public:
    explicit NoSync(detail::GradientBuckets &buckets);
    ~NoSync();
    NoSync(NoSync &&other) noexcept : buckets(std::exchange(other.buckets, nullptr)) {}
    NoSync &operator=(NoSync &&other) noexcept {
      std::swap(buckets, other.buckets); // ends with `other`
      return *this;
    }

  private:
    detail::GradientBuckets *buckets; ///< null when moved from
  };
  /// To be kept in a variable: it has no effect otherwise.
  [[nodiscard]] NoSync no_sync() { return NoSync(*buckets); }

  /// Writes the model and the state of the optimizer to one file, on rank 0, complete or not at all.
  /// torch::load() reads it, load() with any number of ranks, and so does the load() of ShardedDataParallel.
  /// What the save() of a module class writes in addition is not in the file. Collective.
  /// \throws UsageError for an optimizer that works on no parameter of the model or is LBFGS, and for
  /// adapters that are merged (Lora.h); Error on all ranks when rank 0 cannot write the file: the one that
  /// was there is unchanged then; PeerError.
  void save(const std::string &path, torch::optim::Optimizer *optimizer = nullptr,
            const GradScaler *scaler = nullptr);
  /// Reads what save() of this or ShardedDataParallel wrote, or, without optimizer and scaler, torch::save(),
  /// into the module, in place. Every rank reads the file. Of the options of the optimizer's groups the
  /// learning rates are restored. Collective. \throws Error when the file cannot be read, has changed since
  /// it was written, is another one on another rank, or lacks something, which it names; UsageError for an
  /// optimizer of another kind or with other groups, and as save(). When one rank throws all do, and model,
  /// optimizer and scaler are as before on all.
  void load(const std::string &path, torch::optim::Optimizer *optimizer = nullptr,
            GradScaler *scaler = nullptr);

  /// Number of messages of a backward pass; does not change.
  size_t bucket_count() const;

private:
  std::unique_ptr<detail::GradientBuckets> buckets;
};

/// Wraps a module, given as its holder (`Net`) or as a std::shared_ptr.
///
/// The constructor gives all ranks the parameters and buffers of rank 0. Gradients are averaged in buckets,
/// each as soon as its gradients are there, overlapped with the rest of backward(). The gradients of the
/// parameters are views of the buckets; one that a program takes out of its parameter and keeps stays what it
/// is, and a view of it keeps the memory of its bucket. The result is that of one process with the
/// concatenated batch when all ranks have equally many samples and the loss is a mean.
///
/// A tied parameter, which the module has under several names, is averaged once. Complex parameters may be.
///
/// torch::load() may fill the module after it was wrapped, with the same file on every rank, given the rank's
/// device; the next forward() follows. Module::to() of another type or device is refused there, and when the
/// module's own forward() comes first instead, backward() throws UsageError.
///
/// What torch::autograd::grad() returns for the parameters are this rank's gradients: only those that
/// backward passes leave in the parameters are averaged. With create_graph these have no graph: backward() of
/// a loss that uses them throws UsageError. Gradients by inputs have theirs.
///
/// Every rank must run backward() equally often. Several models may have theirs in different order, except
/// with NCCL. Segments of the model may be computed again in backward(), by a torch::autograd::Function whose
/// backward() calls backward(): the averaging ends with the outer pass. Optimizers may be made before or
/// after. A parameter that is frozen meanwhile counts as one that a pass does not use. Code that catches an
/// exception of backward() must do so on all ranks, and drop the gradients, of which some are averaged
/// already; the next pass is not affected.
///
/// A module has one wrapper, except that one which dispatch_model put on this rank's device may be wrapped,
/// and that several may share parameters which are frozen. The wrapper must live until the backward() of what
/// its forward() returned, which throws UsageError else. On devices, models of several threads must not share
/// one: autograd has one thread for each, which waits for the averaging of one model at a time.
template <typename ModuleType> class DistributedDataParallel {
public:
  /// Collective. `wrapped` keeps the module; it must be on this rank's device.
  /// \throws UsageError, DeviceError and PeerError as DataParallelCore; UsageError for a null pointer,
  /// c10::Error for an
  ///   empty holder.
  explicit DistributedDataParallel(ModuleType wrapped, std::shared_ptr<Communicator> ranks,
                                   const DataParallelOptions &options = {})
      : inner(std::move(wrapped)), core(moduleOf(inner), std::move(ranks), options) {}

  /// The module's forward(), between before_forward() and after_forward(), so it may be collective. Inputs
  /// are not moved to the device. Errors of the averaging come from backward(): PeerError; UsageError for a
  /// parameter without gradient, see find_unused_parameters, for one that gets two, and for a sparse
  /// gradient.
  /// \throws UsageError and PeerError as DataParallelCore::before_forward().
  template <typename... Arguments> auto forward(Arguments &&...arguments) {
    core.before_forward();
    if constexpr (std::is_void_v<decltype(inner->forward(std::forward<Arguments>(arguments)...))>) {
      inner->forward(std::forward<Arguments>(arguments)...);
    } else {
      auto output = inner->forward(std::forward<Arguments>(arguments)...);
      std::vector<at::Tensor *> tensors;
      detail::collect(tensors, output);
      core.after_forward(tensors);
      return output;
    }
  }
  template <typename... Arguments> auto operator()(Arguments &&...arguments) {
    return forward(std::forward<Arguments>(arguments)...);
  }

  /// See DataParallelCore::NoSync. \code auto local = model.no_sync(); \endcode
  [[nodiscard]] DataParallelCore::NoSync no_sync() { return core.no_sync(); }
  /// The wrapped module. Gradients are averaged also when its forward() is called instead of the wrapper's:
  /// that leaves out before_forward() and after_forward() only. The first must come after torch::load().
  ModuleType &module() { return inner; }
  auto operator->() { return inner.operator->(); }
  /// See DataParallelCore.
  void save(const std::string &path, torch::optim::Optimizer *optimizer = nullptr,
            const GradScaler *scaler = nullptr) {
    core.save(path, optimizer, scaler);
  }
  void load(const std::string &path, torch::optim::Optimizer *optimizer = nullptr,
            GradScaler *scaler = nullptr) {
    core.load(path, optimizer, scaler);
  }
  size_t bucket_count() const { return core.bucket_count(); }

private:
  static torch::nn::Module &moduleOf(ModuleType &wrapped) {
    if constexpr (std::is_convertible_v<ModuleType, std::shared_ptr<torch::nn::Module>>)
      if (!wrapped)
        throw UsageError("DistributedDataParallel got no module, but a null pointer");
    return *wrapped;
  }

  ModuleType inner;
  DataParallelCore core;
};

} // namespace device_shim
