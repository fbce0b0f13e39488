//===- StageChain.h - the stages of a model in order ------------*- C++ -*-===//
//
// The stages of a model in their order, and running those of a Sequential.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <device_shim/Stage.h>

#include <torch/nn/modules/container/sequential.h>

#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace device_shim {

/// The stages of one model, and the hooks that a wrapper has put around them. For wrappers; programs use
/// ShardedDataParallel and dispatch_model. Not for use by several threads at a time.
class StageChain {
public:
  /// One stage, for as long as the chain lives.
  struct Link {
    std::string name;                          ///< path from the root, "" for the root itself
    std::vector<std::string> aliases;          ///< further paths to the same Stage<>
    std::shared_ptr<torch::nn::Module> module; ///< whose parameters belong to the stage
    std::shared_ptr<StageBase> stage;          ///< null for the child of a Sequential
    std::shared_ptr<StageHooks> hooks;         ///< null without
  };

  /// The children of a Sequential, but not of a class derived from it, which may have a forward() of its own;
  /// or else the outermost Stage<> modules below `root`, in the order of their registration. A parameter that
  /// two of them share belongs to the first. A stage that is registered under several names is one stage,
  /// with the first. Children that are added to a Sequential later are not in the chain.
  /// \throws UsageError for a null `root`.
  explicit StageChain(std::shared_ptr<torch::nn::Module> root);
  /// Removes the hooks that install() put on stages.
  ~StageChain();
  StageChain(StageChain &&) noexcept = default;
  StageChain &operator=(StageChain &&) = delete;

  /// In the order of the stages. References to it end with the chain.
  const std::vector<Link> &links() const { return all; }
  /// Of links(), the stage that was registered last, under whichever of its names; 0 without stages.
  size_t last() const { return lastLink; }
  /// \throws UsageError unless there is a stage, and every parameter, and with `buffers` every buffer,
  /// belongs to one; `purpose` begins the sentence.
  void require_complete(const std::string &purpose, bool buffers) const;

  /// \throws UsageError when a stage has hooks, of another wrapper.
  void require_unused() const;

  /// Puts `hooks` around stage `link`, or removes them when null. \throws std::out_of_range unless `link` is
  /// below links().size(); UsageError when the stage has hooks, of another wrapper or of this chain.
  void install(size_t link, std::shared_ptr<StageHooks> hooks);
  /// Whether the stages are the children of a Sequential, which run() runs.
  bool runs_children() const { return sequential != nullptr; }
  /// Runs the children of the Sequential with their hooks: `inputs` go to the first, and what each returns to
  /// the next. Returns the result of the last, of any shape, where it was computed. Only where
  /// runs_children().
  /// \throws UsageError for a child that was added or replaced since the chain was made, and for one whose
  /// result is of a type in which tensors cannot be found;
  /// c10::Error, as Sequential::forward() does, for one that the next child does not take, and when the last
  /// result is not a tensor; what hooks throw.
  template <typename... Inputs> at::Tensor run(Inputs &&...inputs) {
    std::tuple<std::decay_t<Inputs>...> arguments(std::forward<Inputs>(inputs)...);
    std::vector<at::Tensor *> tensors;
    detail::collect(tensors, arguments);
    return runFrom(std::move(tensors), [&arguments](torch::nn::AnyModule &first) {
      return std::apply([&first](auto &...each) { return first.any_forward(each...); }, arguments);
    });
  }

private:
  void requireSameChildren() const;
  at::Tensor runFrom(std::vector<at::Tensor *> tensors,
                     const std::function<torch::nn::AnyValue(torch::nn::AnyModule &)> &first);

  std::shared_ptr<torch::nn::Module> root;
  std::shared_ptr<torch::nn::SequentialImpl> sequential;
  std::vector<Link> all;
  size_t lastLink = 0;
  std::vector<std::string> homelessParameters, homelessBuffers;
};

} // namespace device_shim
