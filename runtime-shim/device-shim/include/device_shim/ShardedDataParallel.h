// ZeRO: data-parallel training in which every rank keeps only its share of gradients and optimizer state
// (stage 2), and of parameters too (stage 3). Source: Rajbhandari et al., https://arxiv.org/abs/1910.02054
//
//   device_shim::ShardedDataParallel model(net, ranks);
//   torch::optim::AdamW optimizer(model.optimizer_parameters(), 1e-3);
//   loss(model.forward(input), target).backward();
//   model.unscale_and_clip_grads(1.0);
//   optimizer.step();
//   optimizer.zero_grad();
#pragma once

#include <device_shim/Communicator.h>
#include <device_shim/GradScaler.h>
#include <device_shim/StageChain.h>

#include <c10/core/ScalarType.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace torch::optim {
class Optimizer;
}

namespace device_shim {

struct ShardedOptions {
  /// 2: gradients and optimizer state are sharded, any model. 3: parameters too; the model must consist of
  /// stages, see Stage, and each is gathered before use and freed after it.
  int stage = 3;
  /// What the model computes in, kHalf or kBFloat16; the optimizer works on float copies. Unset: as it is.
  /// Floating inputs of forward() and floating buffers are converted.
  std::optional<at::ScalarType> parameter_type;
  /// Keep the optimizer's partitions (float parameters, gradients, state) in host memory, and with it the
  /// work of the optimizer. Below 1, `offload_ratio` is the share of the stages, counted from the first, that
  /// it holds for.
  bool offload_optimizer = false;
  double offload_ratio = 1.0;
  /// Stage 3: keep the partitions of the parameters in host memory too.
  bool offload_parameters = false;
  /// Page-locked host memory for what is offloaded.
  bool pin_memory = true;
  /// Stage 3: begin to gather the next stage while one computes. Costs the memory of one more stage.
  bool prefetch = true;
  /// Stage 2: bytes of parameters that are reduced together.
  int64_t bucket_bytes = int64_t(25) << 20;
  /// Parameters that get different numbers are kept apart, for optimizers with several parameter groups, such
  /// as one without weight decay. Called with name and value of each parameter.
  std::function<int(const std::string &, const at::Tensor &)> group;
};

namespace detail {
class ShardedModel;
}

/// The part of ShardedDataParallel that does not depend on the type of the model.
class ShardedCore {
public:
  ShardedCore(std::shared_ptr<torch::nn::Module> module, std::shared_ptr<Communicator> ranks,
              const ShardedOptions &options);
  ~ShardedCore();
  ShardedCore(ShardedCore &&) noexcept;
  ShardedCore &operator=(ShardedCore &&) = delete;

  /// This rank's partitions, vectors of float that require gradients: what an optimizer is made of.
  /// Optimizers must work element by element, as all of LibTorch do except LBFGS. With `group`, those of one
  /// group.
  std::vector<at::Tensor> optimizer_parameters() const;
  std::vector<at::Tensor> optimizer_parameters(int group) const;

  /// Divides the gradients by the scaler's scale, and scales them down when their norm over all ranks is
  /// above `max_norm`. Returns the norm before clipping. Every partition is scaled by a number of the host,
  /// so that it does not matter on which device it is. An infinite norm is told to the scaler, which then
  /// skips the step; gradients are left as they are then. Collective.
  double unscale_and_clip_grads(double max_norm, GradScaler *scaler = nullptr);
  /// The norm alone.
  double grad_norm();

  /// Lets the parameters follow what optimizers did, as forward() does by itself. With stage 2 the module
  /// then is the trained one on every rank and may be used without the wrapper, until the next step().
  /// Collective.
  void synchronize();

  /// Writes the whole model, float, and the state of the optimizer to one file, on rank 0. torch::load()
  /// reads it into an unsharded model of the same class; load() reads it with any number of ranks. Frozen
  /// parameters have the precision of parameter_type. Collective. torch::save() of the module cannot take its
  /// place: with stage 3 the module's parameters are empty.
  /// \throws UsageError for an optimizer with a state that cannot be taken apart (LBFGS).
  void save(const std::string &path, torch::optim::Optimizer *optimizer = nullptr,
            const GradScaler *scaler = nullptr);
  /// Writes the parameters of low-rank adapters alone, float, on rank 0, for load_adapters() of an unsharded
  /// model; see Lora.h. Collective.
  void save_adapters(const std::string &path);
  /// Reads what save() wrote, or, without optimizer, what torch::save() wrote for the unsharded model. Every
  /// rank reads the file. Each parameter gets the state that the file has for it, or none. \throws Error
  /// naming what is missing in it, or has another shape.
  void load(const std::string &path, torch::optim::Optimizer *optimizer = nullptr,
            GradScaler *scaler = nullptr);

  /// Bytes of parameters, gradients and buffers for gathering that this rank holds now, and the most it ever
  /// held, on all devices, without the optimizer's state and what backends use inside.
  int64_t bytes_held() const;
  int64_t peak_bytes_held() const;

  void begin_forward();
  at::Tensor converted(const at::Tensor &input) const;
  StageChain *chain();

private:
  std::unique_ptr<detail::ShardedModel> model;
};

/// Wraps a module, given as its holder or as a std::shared_ptr. Its parameters and buffers move to this
/// rank's device as they are sharded, so a model that is larger than the device is made on the CPU. The
/// module's own parameters() are empty tensors (stage 3) between forward and backward passes: use
/// optimizer_parameters().
///
/// Every rank must execute the same stages in the same order, and call forward() equally often, also for
/// evaluation. A parameter without gradient in a pass counts as one with a gradient of zeros. Unfreezing a
/// parameter after wrapping is refused by the next forward().
///
/// With stage 2 the destructor lets the module follow the last step(), so all ranks must destroy the wrapper;
/// not while an exception is on its way. With stage 3 the module is left without parameters: save() it first.
template <typename ModuleType> class ShardedDataParallel : public ShardedCore {
public:
  /// \throws UsageError for a model that cannot be sharded, naming what has to change.
  explicit ShardedDataParallel(ModuleType wrapped, std::shared_ptr<Communicator> ranks,
                               const ShardedOptions &options = {})
      : ShardedCore(pointerTo(wrapped), std::move(ranks), options), inner(std::move(wrapped)) {}

  template <typename... Arguments> auto forward(Arguments &&...arguments) {
    begin_forward();
    using Impl = std::remove_reference_t<decltype(*inner)>;
    if constexpr (std::is_same_v<torch::nn::SequentialImpl, Impl>) {
      return runSequential(convert(std::forward<Arguments>(arguments))...);
    } else {
      return inner->forward(convert(std::forward<Arguments>(arguments))...);
    }
  }
  template <typename... Arguments> auto operator()(Arguments &&...arguments) {
    return forward(std::forward<Arguments>(arguments)...);
  }
  ModuleType &module() { return inner; }

private:
  static std::shared_ptr<torch::nn::Module> pointerTo(const ModuleType &module) {
    if constexpr (std::is_convertible_v<ModuleType, std::shared_ptr<torch::nn::Module>>)
      return module;
    else
      return module.ptr();
  }
  template <typename T> decltype(auto) convert(T &&value) const {
    if constexpr (std::is_same_v<std::decay_t<T>, at::Tensor>)
      return converted(value);
    else
      return std::forward<T>(value);
  }
  template <typename... Inputs> at::Tensor runSequential(Inputs &&...inputs) {
    auto *stages = chain();
    return stages && stages->runs_children() ? stages->run(std::forward<Inputs>(inputs)...)
                                             : inner->forward(std::forward<Inputs>(inputs)...);
  }

  ModuleType inner;
};

} // namespace device_shim
