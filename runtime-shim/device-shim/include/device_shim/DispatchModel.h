//===- DispatchModel.h - one model over several devices ---------*- C++ -*-===//
//
// One model over several devices of one process: each stage on its device, tensors moved between them.
//
//   auto model = device_shim::dispatch_model(net, "auto");
//   auto logits = model.forward(ids);                                     // on the last stage's device
//   auto loss = cross_entropy(logits, labels.to(model.output_device()));
//
//===----------------------------------------------------------------------===//
#pragma once

#include <device_shim/StageChain.h>

#include <c10/core/Device.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace device_shim {

/// Which stage goes where: the word "auto", or names with devices. The names and rules are those of
/// https://huggingface.co/docs/accelerate/usage_guides/big_modeling
class DeviceMap {
public:
  /// "auto" (also "balanced"): consecutive stages on each device, so that the device with the most bytes of
  /// parameters and buffers has as few as possible. \throws UsageError for another word.
  DeviceMap(const char *word);        // NOLINT(google-explicit-constructor)
  DeviceMap(const std::string &word); // NOLINT(google-explicit-constructor)
  /// Every stage must be named, by its name or by a prefix of it that ends before a dot; "" means all.
  DeviceMap(std::map<std::string, at::Device> entries); // NOLINT(google-explicit-constructor)

  bool automatic() const { return chooses; }
  const std::map<std::string, at::Device> &entries() const { return listed; }

private:
  bool chooses = false;
  std::map<std::string, at::Device> listed;
};

/// For "auto" alone; a map that lists stages refuses them.
struct DispatchOptions {
  /// Devices for "auto", in the order of the stages. Empty: all visible CUDA devices, or the CPU when there
  /// is none.
  std::vector<at::Device> devices;
  /// Bytes that "auto" may put on each of `devices`; empty: no limit.
  std::vector<int64_t> max_bytes;
};

namespace detail {
class WrapperClaim;
}

/// The part of DispatchedModel that does not depend on the type of the model.
class DispatchCore {
public:
  /// \throws what dispatch_model() throws.
  DispatchCore(const std::shared_ptr<torch::nn::Module> &module, const DeviceMap &map,
               const DispatchOptions &options);
  /// The stages stay on their devices; inputs are not moved any more.
  ~DispatchCore();
  DispatchCore(DispatchCore &&) noexcept;
  DispatchCore &operator=(DispatchCore &&) = delete;

  /// Device of each stage, by its name; of one that has several names, by each.
  const std::map<std::string, at::Device> &device_map() const { return places; }
  /// Of the first stage; forward() moves its arguments there itself.
  at::Device input_device() const { return first; }
  /// Where the last stage leaves its result, and where the targets of the loss belong.
  at::Device output_device() const { return last; }
  /// Whether the model is a Sequential, and running it; see StageChain. Programs call forward().
  bool runs_children() const { return chain.runs_children(); }
  template <typename... Inputs> at::Tensor run(Inputs &&...inputs) {
    return chain.run(std::forward<Inputs>(inputs)...);
  }

private:
  std::unique_ptr<detail::WrapperClaim> claim;
  StageChain chain;
  std::map<std::string, at::Device> places;
  at::Device first = at::kCPU;
  at::Device last = at::kCPU;
  bool counted = false;
};

/// A module, given as its holder (`Net`) or as a std::shared_ptr, with its stages on their devices. It holds
/// the module, whose stages must not be used by another wrapper meanwhile. torch::load() may fill it, given
/// any device: when a stage runs, its parameters and buffers move to its device again.
template <typename ModuleType> class DispatchedModel : public DispatchCore {
public:
  /// \throws what dispatch_model() throws.
  explicit DispatchedModel(ModuleType wrapped, const DeviceMap &map = "auto",
                           const DispatchOptions &options = {})
      : DispatchCore(pointerTo(wrapped), map, options), inner(std::move(wrapped)) {}

  /// The module's forward(), of any shapes. The arguments may be on any device; the result is on
  /// output_device(), where the last stage makes it. \throws what the module throws.
  template <typename... Arguments> auto forward(Arguments &&...arguments) {
    using Impl = std::remove_reference_t<decltype(*inner)>;
    if constexpr (std::is_same_v<torch::nn::SequentialImpl, Impl>)
      return runs_children() ? run(std::forward<Arguments>(arguments)...)
                             : inner->forward(std::forward<Arguments>(arguments)...);
    else
      return inner->forward(std::forward<Arguments>(arguments)...);
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

  ModuleType inner;
};

/// Moves the stages of `module` to their devices, and inputs to each stage's device when it runs. Optimizers
/// may be made before or after: parameters keep their identity. A stage that shares a parameter with an
/// earlier one goes to that one's device.
/// \throws UsageError when the map names several devices and this process is a rank of a distributed job, a
///   stage has no entry, an entry fits no stage, a device does not exist (the message names it and its
///   stage), stages that share a parameter are listed on different devices, stages that share a buffer come
///   to different devices (also with "auto": give each a copy), the model does not fit into max_bytes,
///   options come with a list of stages, the model has parameters or buffers outside stages, or it has a
///   wrapper already. No stage has moved then.
template <typename ModuleType>
DispatchedModel<ModuleType> dispatch_model(ModuleType module, const DeviceMap &map = "auto",
                                           const DispatchOptions &options = {}) {
  return DispatchedModel<ModuleType>(std::move(module), map, options);
}

} // namespace device_shim
