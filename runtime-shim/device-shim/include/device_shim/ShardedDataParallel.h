//===- ShardedDataParallel.h - ZeRO stages 2 and 3 --------------*- C++ -*-===//
//
// ZeRO: data-parallel training in which every rank keeps only its share of gradients and optimizer state
// (stage 2), and of parameters too (stage 3). Source: Rajbhandari et al., https://arxiv.org/abs/1910.02054
//
//   device_shim::ShardedDataParallel model(net, ranks);
//   torch::optim::AdamW optimizer(model.optimizer_parameters(), 1e-3);
//   loss(model.forward(input), target).backward();
//   model.unscale_and_clip_grads(1.0);
//   optimizer.step();
//   optimizer.zero_grad();
//
//===----------------------------------------------------------------------===//
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

/// Must be equal on all ranks.
struct ShardedOptions {
  /// 2: gradients and optimizer state are sharded, any model. 3: parameters too; the model must consist of
  /// stages, see Stage, and each is gathered before use and freed after it.
  int stage = 3;
  /// What the model computes in, kHalf, kBFloat16 or kFloat; the optimizer works on copies in the type of the
  /// parameters, float for half types. Unset: unchanged. Floating tensors among the arguments of forward()
  /// and floating buffers are converted.
  std::optional<at::ScalarType> parameter_type;
  /// Keep the optimizer's partitions (float parameters, gradients, state) in host memory, and with it the
  /// work of the optimizer. Below 1, `offload_ratio` is the share of the stages, counted from the first, that
  /// it holds for, 0 to 1.
  bool offload_optimizer = false;
  double offload_ratio = 1.0;
  /// Stage 3: keep the partitions of the parameters in host memory too. The copy of a part to the device runs
  /// between the kernels of the model: prefetching overlaps the exchange of parts only.
  bool offload_parameters = false;
  /// Page-locked host memory for what is offloaded.
  bool pin_memory = true;
  /// Stage 3: begin to gather the next stage while one computes. Costs the memory of one more stage.
  bool prefetch = true;
  /// Stage 2: bytes of parameters that are reduced together, at least 1; more than a part in 32 of the model
  /// has no effect, for the sake of memory.
  int64_t bucket_bytes = int64_t(25) << 20;
  /// Parameters that get different numbers are kept apart, for optimizers with several parameter groups, such
  /// as one without weight decay, or where some are frozen later. Called with name and value of each
  /// parameter; on all ranks it must return the same.
  std::function<int(const std::string &, const at::Tensor &)> group;
};

namespace detail {
class ShardedModel;
}

/// The part of ShardedDataParallel that does not depend on the type of the model. What is collective must be
/// called on all ranks, and throws PeerError when another rank fails.
class ShardedCore {
public:
  /// Moves parameters and buffers to this rank's device, those of rank 0, and partitions the parameters.
  /// Gradients that they have are averaged, and are those of the partitions then. Collective.
  /// \throws UsageError when the models of the ranks differ, options are out of range, a parameter is in two
  ///   stages or in none (stage 3) or belongs to another wrapper, or `module` or `ranks` is null; PeerError.
  ShardedCore(std::shared_ptr<torch::nn::Module> module, std::shared_ptr<Communicator> ranks,
              const ShardedOptions &options);
  ~ShardedCore();
  ShardedCore(ShardedCore &&) noexcept;
  ShardedCore &operator=(ShardedCore &&) = delete;

  /// This rank's partitions that learn, leaves of the shape [ceil(n / world)] for n elements, float (double
  /// for parameters of double): what an optimizer is made of. One that is made of the module's parameters
  /// trains nothing; one that outlives the wrapper throws c10::Error. Optimizers must work element by
  /// element, as all of LibTorch do except LBFGS, whose step() is wrong here, and with a line search waits
  /// forever. The state of an optimizer belongs to this rank's partitions: save() it, because torch::save()
  /// of one rank's would give its state to all. With `group`, those of one group; none when no parameter has
  /// that number.
  std::vector<at::Tensor> optimizer_parameters() const;
  std::vector<at::Tensor> optimizer_parameters(int group) const;

  /// Divides the gradients by the scaler's scale, and scales them down when their norm over all ranks is
  /// above `max_norm`, at least 0: 0 clears them. Returns the 2-norm of the averaged, unscaled gradients
  /// before clipping. Every partition is scaled by a number of the host, so that it does not matter on which
  /// device it is. An infinite norm, or one that is not a number, is passed to the scaler, which then skips
  /// the step; gradients are unchanged then, and without a scaler the caller must skip the step.
  /// Collective.
  /// \throws UsageError when the scaler has unscaled them already, and for a `max_norm` below 0 or NaN.
  double unscale_and_clip_grads(double max_norm, GradScaler *scaler = nullptr);
  /// The norm alone, of what the last backward pass left: times the scale where the loss was scaled.
  /// Collective.
  double grad_norm();

  /// Lets the parameters follow what optimizers did, as forward() does by itself. With stage 2 the module
  /// then is the trained one on every rank and may be used without the wrapper, until the next step().
  /// Collective. \throws UsageError for replaced or overwritten parameters, see below.
  void synchronize();

  /// Writes the whole model, float, and the state of the optimizer to one file, on rank 0. torch::load()
  /// reads it into an unsharded model of the same class; load() reads it with any number of ranks. Frozen
  /// parameters have the precision of parameter_type, and buffers are those of rank 0. Collective.
  /// torch::save() of the module cannot replace it: with stage 3 the module's parameters are empty. What
  /// the save() of a module class writes in addition is not in the file.
  /// \throws UsageError for an optimizer with a state that cannot be taken apart (LBFGS) or that does not
  /// work on partitions of this model, for adapters that are merged (Lora.h) and for replaced or overwritten
  /// parameters, see below; Error on all ranks when rank 0 cannot write the file.
  void save(const std::string &path, torch::optim::Optimizer *optimizer = nullptr,
            const GradScaler *scaler = nullptr);
  /// Writes the parameters of low-rank adapters alone, float, on rank 0, for load_adapters() of an unsharded
  /// model; see Lora.h. Collective. \throws Error on all ranks when rank 0 cannot write the file.
  void save_adapters(const std::string &path);
  /// Reads what save() wrote, or, without optimizer and scaler, what torch::save() wrote for the unsharded
  /// model. Every rank reads the file. Each parameter gets the state that the file has for it, or none; what
  /// the optimizer's options need in addition, such as amsgrad, begins at zero. Of the options of the
  /// optimizer's groups the learning rates are restored. Other contents of the file are ignored. Collective.
  /// \throws Error when the ranks read files with other parameters; naming the parameter or buffer that is
  /// missing in it, or has another shape; when it has no
  /// state for the `optimizer` or `scaler`; when it cannot be read. UsageError as save(), except for
  /// overwritten parameters, and when the optimizer has another number of groups than that in the file, or a
  /// parameter in another one of them. When one rank throws all do, the others an Error that says why, and on
  /// all of them the model, the optimizer and the scaler are as before.
  void load(const std::string &path, torch::optim::Optimizer *optimizer = nullptr,
            GradScaler *scaler = nullptr);

  /// Bytes of parameters, gradients and buffers for gathering that this rank holds now, and the most it ever
  /// held, on all devices, without the optimizer's state and what backends use inside.
  int64_t bytes_held() const;
  int64_t peak_bytes_held() const;

  /// What forward() does before it runs the module, for callers that run it themselves: parameters follow the
  /// optimizer. Collective, with stage 2 after a backward pass. \throws UsageError for a parameter that was
  /// frozen when the model was wrapped and is no longer, that was frozen since and shares a partition with
  /// one that was not, or that was added since; for replaced or overwritten parameters and changed gradients,
  /// see below; PeerError.
  void begin_forward();
  /// What forward() does after it, with the tensors in the result, of any shape; some may be undefined. With
  /// stage 2 their backward() then begins with the parameters of all ranks after a step() that came between:
  /// collective there, when another backward pass ended since the last forward pass.
  void end_forward(const std::vector<at::Tensor *> &outputs);
  /// A floating tensor in parameter_type, of the same shape and on the same device; others unchanged.
  at::Tensor converted(const at::Tensor &input) const;
  /// The stages; null with stage 2. It ends with the wrapper.
  StageChain *chain();

private:
  std::unique_ptr<detail::ShardedModel> model;
};

/// Wraps a module, given as its holder or as a std::shared_ptr. Its parameters and buffers move to this
/// rank's device as they are sharded, so a model that is larger than the device is made on the CPU. The
/// module's own parameters() are empty tensors (stage 3) between forward and backward passes: use
/// optimizer_parameters(). A penalty on them in the loss fails in backward(), because their shapes differ;
/// use the weight_decay of the optimizer, or compute it within the stages.
///
/// Every rank must execute the same stages in the same order, and call forward() equally often, also for
/// evaluation. A parameter without gradient in a pass counts as one with a gradient of zeros. Unfreezing a
/// parameter after wrapping is an error at the next forward(). Freezing is fine for all parameters of a
/// partition: those of one stage, or with stage 2 bucket, with one type and ShardedOptions::group. While they
/// are frozen, gradients of the partition are unchanged; drop them (`mutable_grad() = {}`) so that the
/// optimizer leaves it alone.
///
/// The values of the parameters are those of the partitions from then on: initialise the module before it is
/// wrapped, and load files with load(). What torch::load() or Module::to() replaced afterwards is an
/// error at the next forward(). So are operations in place on a parameter, such as copy_() in
/// load_adapters() or the max_norm of an embedding, but for those that hold: with stage 2, on frozen
/// parameters, and on all when parameter_type and offload_optimizer are unset; every rank must then do the
/// same. Writes through data() are not detected.
///
/// Gradients come to optimizer_parameters(). Those of the module's parameters are marks in their place, with
/// a NaN, for Module::zero_grad(), which clears the gradients of the partitions by the next forward pass or
/// gradient; other changes of them are errors there. A loss that uses what a pass with create_graph = true
/// leaves throws UsageError in backward(). torch::autograd::grad() with respect to parameters gives this
/// rank's gradients.
///
/// A forward pass that calls the module instead of the wrapper is allowed with stage 3 for models of Stage
/// members; nothing is converted then. With stage 2 its backward() throws UsageError after a step(), because
/// the parameters were not gathered: begin_forward() does that. A step() between forward() and its backward()
/// lets autograd go on with the new parameters, as LibTorch's optimizers do it in one process, unless
/// forward() came after the last backward pass of the model before the step: each rank then sees its own part
/// of the step only. Step before forward() then.
///
/// Modules that are added, or put in the place of others, after wrapping are errors at the next forward(),
/// unless they are frozen or another wrapper has them.
///
/// Buffers, such as running statistics, are those of rank 0 at first; then every rank's follow its own
/// batches, and save() writes those of rank 0. Code that catches an exception of backward() must do so on all
/// ranks, and drop the gradients; the next pass is not affected. The wrapper must outlive the
/// graphs that forward() makes: otherwise their backward() throws UsageError. A module has one wrapper.
///
/// With stage 2 the destructor lets the module follow the last step(), so all ranks must destroy the wrapper;
/// not while an exception is on its way. With stage 3 the module is left without parameters: save() it first.
template <typename ModuleType> class ShardedDataParallel : public ShardedCore {
public:
  /// Collective. \throws UsageError for a model that cannot be sharded, naming what has to change; PeerError.
  explicit ShardedDataParallel(ModuleType wrapped, std::shared_ptr<Communicator> ranks,
                               const ShardedOptions &options = {})
      : ShardedCore(pointerTo(wrapped), std::move(ranks), options), inner(std::move(wrapped)) {}

  /// The module's forward(), after begin_forward(), on inputs that are converted(), which are not moved to
  /// the device, then end_forward(). Tensors within containers are not converted. With stage 3 collective:
  /// stages are gathered, and a stage that returns its parameter, which is freed after it, throws UsageError.
  /// Errors of the averaging come from backward(): PeerError; UsageError for gradients that come twice, past
  /// their stage, for frozen parameters, or are sparse.
  /// \throws UsageError and PeerError as begin_forward(), and as StageChain::run().
  template <typename... Arguments> auto forward(Arguments &&...arguments) {
    begin_forward();
    if constexpr (std::is_void_v<decltype(run(convert(std::forward<Arguments>(arguments))...))>) {
      run(convert(std::forward<Arguments>(arguments))...);
    } else {
      auto output = run(convert(std::forward<Arguments>(arguments))...);
      std::vector<at::Tensor *> tensors;
      detail::collect(tensors, output);
      end_forward(tensors);
      return output;
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
  template <typename... Inputs> auto run(Inputs &&...inputs) {
    using Impl = std::remove_reference_t<decltype(*inner)>;
    if constexpr (std::is_same_v<torch::nn::SequentialImpl, Impl>) {
      auto *stages = chain();
      return stages && stages->runs_children() ? stages->run(std::forward<Inputs>(inputs)...)
                                               : inner->forward(std::forward<Inputs>(inputs)...);
    } else {
      return inner->forward(std::forward<Inputs>(inputs)...);
    }
  }

  ModuleType inner;
};

} // namespace device_shim
