// The stages of a model in their order, and running those of a Sequential.
#pragma once

#include <device_shim/Stage.h>

#include <torch/nn/modules/container/sequential.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace device_shim {

class StageChain {
public:
  struct Link {
    std::string name;                          ///< path from the root, "" for the root itself
    std::shared_ptr<torch::nn::Module> module; ///< whose parameters belong to the stage
    std::shared_ptr<StageBase> stage;          ///< null for the child of a Sequential
    std::shared_ptr<StageHooks> hooks;
  };

  /// The children of a Sequential, or else the outermost Stage<> modules below `root`. A parameter that two
  /// of them share belongs to the first.
  explicit StageChain(std::shared_ptr<torch::nn::Module> root);
  ~StageChain();
  StageChain(StageChain &&) noexcept = default;
  StageChain &operator=(StageChain &&) = delete;

  const std::vector<Link> &links() const { return all; }
  /// \throws UsageError unless every parameter, and with `buffers` every buffer, belongs to a stage;
  /// `purpose` begins the sentence.
  void require_complete(const std::string &purpose, bool buffers) const;

  void install(size_t link, std::shared_ptr<StageHooks> hooks);
  /// Runs the children of the Sequential, with their hooks.
  at::Tensor run(at::Tensor input);

private:
  std::shared_ptr<torch::nn::Module> root;
  std::shared_ptr<torch::nn::SequentialImpl> sequential;
  std::vector<Link> all;
  std::vector<std::string> homelessParameters, homelessBuffers;
};

} // namespace device_shim
