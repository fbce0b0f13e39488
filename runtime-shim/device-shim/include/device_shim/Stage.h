// Parts of a model that can be worked on one at a time.
//
// Modules of LibTorch's C++ frontend have no forward hooks, so a wrapper cannot step in between the layers of
// any model. It can where a model is a torch::nn::Sequential, whose children it runs itself, or where the
// layers are held as Stage<Layer>:
//
//   struct NetImpl : torch::nn::Module {
//     NetImpl() { for (int i = 0; i < 8; ++i)
//         blocks.push_back(register_module("h" + std::to_string(i), device_shim::Stage<Block>(512))); }
//     torch::Tensor forward(torch::Tensor x) { for (auto &block : blocks) x = block->forward(x); return x; }
//     std::vector<device_shim::Stage<Block>> blocks;
//   };
//
// Without a wrapper a stage only calls its module.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace device_shim {

/// What a wrapper does around a stage.
class StageHooks {
public:
  virtual ~StageHooks();
  /// May replace the tensors among the arguments, for example by copies on another device.
  virtual void before_forward(const std::vector<at::Tensor *> &inputs) = 0;
  virtual void after_forward(const std::vector<at::Tensor *> &outputs) = 0;
};

/// What all stages have in common.
class StageBase {
public:
  virtual ~StageBase();
  /// One wrapper at a time; null removes it.
  void set_hooks(std::shared_ptr<StageHooks> newHooks);
  const std::shared_ptr<StageHooks> &hooks() const { return installed; }

private:
  std::shared_ptr<StageHooks> installed;
};

namespace detail {

// The tensors in arguments and results, also within tuples, pairs, vectors and optionals; others are left
// alone.
inline void collect(std::vector<at::Tensor *> &found, at::Tensor &tensor) { found.push_back(&tensor); }
template <typename T> void collect(std::vector<at::Tensor *> &found, std::vector<T> &list);
template <typename T> void collect(std::vector<at::Tensor *> &found, std::optional<T> &value);
template <typename... T> void collect(std::vector<at::Tensor *> &found, std::tuple<T...> &values);
template <typename A, typename B> void collect(std::vector<at::Tensor *> &found, std::pair<A, B> &values);
template <typename T> void collect(std::vector<at::Tensor *> &, T &) {}

template <typename T> void collect(std::vector<at::Tensor *> &found, std::vector<T> &list) {
  if constexpr (!std::is_same_v<T, bool>)
    for (auto &value : list)
      collect(found, value);
}
template <typename T> void collect(std::vector<at::Tensor *> &found, std::optional<T> &value) {
  if (value)
    collect(found, *value);
}
template <typename... T> void collect(std::vector<at::Tensor *> &found, std::tuple<T...> &values) {
  std::apply([&](auto &...each) { (collect(found, each), ...); }, values);
}
template <typename A, typename B> void collect(std::vector<at::Tensor *> &found, std::pair<A, B> &values) {
  collect(found, values.first);
  collect(found, values.second);
}

} // namespace detail

/// See Stage. The wrapped module is registered as "module", which is part of the names of its parameters.
template <typename ModuleType> class StageImpl : public torch::nn::Module, public StageBase {
public:
  /// Takes what the constructor of `ModuleType` takes, or a ModuleType.
  template <typename... Arguments>
  explicit StageImpl(Arguments &&...arguments)
      : module(register_module("module", ModuleType(std::forward<Arguments>(arguments)...))) {}

  template <typename... Arguments> auto forward(Arguments &&...arguments) {
    if (!hooks())
      return module->forward(std::forward<Arguments>(arguments)...);
    std::tuple<std::decay_t<Arguments>...> inputs(std::forward<Arguments>(arguments)...);
    std::vector<at::Tensor *> tensors;
    detail::collect(tensors, inputs);
    hooks()->before_forward(tensors);
    auto output = std::apply([this](auto &...each) { return module->forward(each...); }, inputs);
    tensors.clear();
    detail::collect(tensors, output);
    hooks()->after_forward(tensors);
    return output;
  }

  ModuleType module{nullptr};
};

/// Holder of a StageImpl; `ModuleType` is the holder of a module, such as torch::nn::Linear.
template <typename ModuleType> class Stage : public torch::nn::ModuleHolder<StageImpl<ModuleType>> {
public:
  using torch::nn::ModuleHolder<StageImpl<ModuleType>>::ModuleHolder;
  using Impl = StageImpl<ModuleType>;
};

} // namespace device_shim
