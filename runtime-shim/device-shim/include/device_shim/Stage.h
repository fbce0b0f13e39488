//===- Stage.h - parts of a model -------------------------------*- C++ -*-===//
//
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
//
//===----------------------------------------------------------------------===//
#pragma once

#include <device_shim/StageCall.h>

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <array>
#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

namespace device_shim {

/// What a wrapper does around a stage. Each forward() calls before_forward(), the module and after_forward(),
/// on the thread that called it. What one of the three throws comes out of forward(), and the rest is left
/// out: after_forward() does not come for a stage that failed.
class StageHooks {
public:
  virtual ~StageHooks();
  /// `inputs`: the tensors among the arguments in their order, also within containers, of any shape; some may
  /// be undefined. They may be replaced, for example by copies on another device; the pointers end with the
  /// call.
  virtual void before_forward(const std::vector<at::Tensor *> &inputs) = 0;
  /// The same for the tensors in the result, which may be replaced, too; after them come those that the
  /// module put into arguments it takes by reference, or wrote in place into its arguments.
  virtual void after_forward(const std::vector<at::Tensor *> &outputs) = 0;
};

/// What all stages have in common.
class StageBase {
public:
  virtual ~StageBase();
  /// One wrapper at a time; null removes it. \throws UsageError when there are hooks already.
  void set_hooks(std::shared_ptr<StageHooks> newHooks);
  /// Null without a wrapper.
  const std::shared_ptr<StageHooks> &hooks() const { return installed; }

private:
  std::shared_ptr<StageHooks> installed;
};

namespace detail {

// How a type holds tensors. What is `other` is taken to hold none.
enum class Form { tensor, list, map, tuple, optional, other };

// c10::optional was a class of its own before it became std::optional.
template <typename T, typename = void> struct OptionalLike : std::false_type {};
template <typename T>
struct OptionalLike<T, std::void_t<decltype(std::declval<T &>().has_value()), decltype(*std::declval<T &>())>>
    : std::true_type {};

template <typename T> inline constexpr Form formOf = OptionalLike<T>::value ? Form::optional : Form::other;
template <> inline constexpr Form formOf<at::Tensor> = Form::tensor;
template <typename T, typename... More> inline constexpr Form formOf<std::vector<T, More...>> = Form::list;
template <typename T, size_t n> inline constexpr Form formOf<std::array<T, n>> = Form::list;
template <typename K, typename T, typename... More>
inline constexpr Form formOf<std::map<K, T, More...>> = Form::map;
template <typename K, typename T, typename... More>
inline constexpr Form formOf<std::unordered_map<K, T, More...>> = Form::map;
template <typename... T> inline constexpr Form formOf<std::tuple<T...>> = Form::tuple;
template <typename A, typename B> inline constexpr Form formOf<std::pair<A, B>> = Form::tuple;

// The tensors in arguments and results, also within containers.
template <typename T> void collect(std::vector<at::Tensor *> &found, T &value) {
  constexpr Form form = formOf<T>;
  if constexpr (form == Form::tensor) {
    found.push_back(&value);
  } else if constexpr (form == Form::list) {
    if constexpr (!std::is_same_v<typename T::value_type, bool>)
      for (auto &element : value)
        collect(found, element);
  } else if constexpr (form == Form::map) {
    for (auto &entry : value)
      collect(found, entry.second);
  } else if constexpr (form == Form::tuple) {
    std::apply([&](auto &...each) { (collect(found, each), ...); }, value);
  } else if constexpr (form == Form::optional) {
    if (value)
      collect(found, *value);
  }
}

template <typename T> std::vector<at::Tensor *> collected(T &value) {
  std::vector<at::Tensor *> found;
  collect(found, value);
  return found;
}

// Whether the forward() of a module, given as its holder, takes arguments of these types.
template <typename Holder, typename, typename... Arguments> inline constexpr bool takes = false;
template <typename Holder, typename... Arguments>
inline constexpr bool
    takes<Holder, std::void_t<decltype(std::declval<Holder &>()->forward(std::declval<Arguments>()...))>,
          Arguments...> = true;

// Whether forward() takes the argument at `position` by reference to non-const, and the caller's is a
// variable.
template <typename Holder, size_t position, typename Indices, typename... Arguments>
inline constexpr bool writesArgument = false;
template <typename Holder, size_t position, size_t... index, typename... Arguments>
inline constexpr bool writesArgument<Holder, position, std::index_sequence<index...>, Arguments...> =
    std::is_lvalue_reference_v<std::tuple_element_t<position, std::tuple<Arguments...>>> &&
    !std::is_const_v<std::remove_reference_t<std::tuple_element_t<position, std::tuple<Arguments...>>>> &&
    !takes<
        Holder, void,
        std::conditional_t<index == position, const std::decay_t<Arguments> &, std::decay_t<Arguments> &>...>;

// See StageCall::restore(); also after an exception.
template <typename Inputs> struct Restoring {
  const StageCall &call;
  Inputs &inputs;
  bool wanted;
  ~Restoring() {
    if (wanted)
      call.restore(collected(inputs));
  }
};

// Whether collect() finds all tensors in a T.
template <typename T> struct Transparent {
  static constexpr bool check() {
    constexpr Form form = formOf<T>;
    if constexpr (form == Form::list)
      return Transparent<typename T::value_type>::check();
    else if constexpr (form == Form::map)
      return Transparent<typename T::mapped_type>::check();
    else if constexpr (form == Form::optional)
      return Transparent<std::decay_t<decltype(*std::declval<T &>())>>::check();
    else
      return form == Form::tensor || std::is_arithmetic_v<T> || std::is_enum_v<T> ||
             std::is_convertible_v<T, std::string>;
  }
};
template <typename... T> struct Transparent<std::tuple<T...>> {
  static constexpr bool check() { return (Transparent<T>::check() && ...); }
};
template <typename A, typename B> struct Transparent<std::pair<A, B>> {
  static constexpr bool check() { return Transparent<A>::check() && Transparent<B>::check(); }
};

} // namespace detail

/// See Stage. The wrapped module is registered as "module", which is part of the names of its parameters.
template <typename ModuleType> class StageImpl : public torch::nn::Module, public StageBase {
public:
  /// Takes what the constructor of `ModuleType` takes, or a ModuleType.
  template <typename... Arguments>
  explicit StageImpl(Arguments &&...arguments)
      : module(register_module("module", ModuleType(std::forward<Arguments>(arguments)...))) {}

  /// What the module's forward() takes and returns. Tensors are found in vectors, arrays, maps, tuples, pairs
  /// and optionals, nested too; a result may hold nothing but these, numbers and text, because a tensor that
  /// the wrapper does not find would be one of which it does not know that autograd comes to it. What the
  /// module writes into arguments it takes by reference, or in place, is the caller's, as without a wrapper.
  template <typename... Arguments> auto forward(Arguments &&...arguments) {
    using Output = std::decay_t<decltype(module->forward(std::declval<std::decay_t<Arguments> &>()...))>;
    static_assert(detail::Transparent<Output>::check(),
                  "a stage returns tensors, or vectors, arrays, maps, tuples, pairs or optionals of them: in "
                  "other types, such as a struct, its wrapper does not find the tensors");
    if (!hooks())
      return Output(module->forward(std::forward<Arguments>(arguments)...));
    return withHooks<Output>(std::index_sequence_for<Arguments...>(), std::forward<Arguments>(arguments)...);
  }

  ModuleType module{nullptr};

private:
  // Copies of the arguments, since hooks replace tensors among them, and the caller's own where the module
  // may write into it.
  template <typename Output, size_t... index, typename... Arguments>
  Output withHooks(std::index_sequence<index...>, Arguments &&...arguments) {
    constexpr bool byReference =
        (detail::writesArgument<ModuleType, index, std::index_sequence<index...>, Arguments...> || ...);
    std::tuple<std::conditional_t<
        detail::writesArgument<ModuleType, index, std::index_sequence<index...>, Arguments...>, Arguments,
        std::decay_t<Arguments>>...>
    inputs(std::forward<Arguments>(arguments)...);
    detail::StageCall call(*hooks(), detail::collected(inputs), byReference);
    const detail::Restoring<decltype(inputs)> restoring{call, inputs, byReference};
    Output output = std::apply([this](auto &...each) { return module->forward(each...); }, inputs);
    call.end(detail::collected(output),
             byReference ? detail::collected(inputs) : std::vector<at::Tensor *>());
    return output;
  }
};

/// Holder of a StageImpl; `ModuleType` is the holder of a module, such as torch::nn::Linear.
template <typename ModuleType> class Stage : public torch::nn::ModuleHolder<StageImpl<ModuleType>> {
public:
  using torch::nn::ModuleHolder<StageImpl<ModuleType>>::ModuleHolder;
  using Impl = StageImpl<ModuleType>;
};

} // namespace device_shim
