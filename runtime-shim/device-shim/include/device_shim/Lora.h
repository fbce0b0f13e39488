// Low-rank adapters: a frozen linear layer plus a small trainable correction.
// Source: Hu et al., https://arxiv.org/abs/2106.09685; parameter names are those of the PEFT library.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <string>
#include <vector>

namespace device_shim {

struct LoraOptions {
  int64_t rank = 8;  ///< inner dimension of the correction
  double alpha = 16; ///< the correction is multiplied by alpha / rank
};

/// y = base(x) + (x A^T) B^T * alpha / rank, with A [rank, in] random and B [out, rank] zero at first, so
/// that the layer begins as its base. A and B are made on the device and in the type of the base's weight.
class LoraLinearImpl : public torch::nn::Module {
public:
  LoraLinearImpl(int64_t in, int64_t out, const LoraOptions &options = {});
  /// Takes an existing layer over and freezes it. \throws UsageError for a rank below 1.
  explicit LoraLinearImpl(torch::nn::Linear base, const LoraOptions &options = {});

  /// [..., in] to [..., out]
  torch::Tensor forward(const torch::Tensor &input);

  /// Adds the correction to the base's weight, for use without training, or takes it out again.
  /// \throws UsageError between passes of ShardedDataParallel with stage 3, which holds the parameters then.
  void merge();
  void unmerge();
  bool merged() const { return isMerged; }

  torch::nn::Linear base_layer{nullptr};
  torch::Tensor lora_A, lora_B;

private:
  void makeAdapter(const LoraOptions &options);
  torch::Tensor correction() const;

  double scaling = 1;
  bool isMerged = false;
};
TORCH_MODULE(LoraLinear);

/// Freezes everything below `module` except the adapters. Returns the number of trainable elements.
int64_t train_only_adapters(torch::nn::Module &module);

/// The parameters that require gradients, for an optimizer.
std::vector<torch::Tensor> trainable_parameters(const torch::nn::Module &module);

/// Writes or reads the adapters alone, by name. \throws Error when the file lacks one or has another shape;
/// UsageError for a model that ShardedDataParallel shards with stage 3, which has a save_adapters() of its
/// own.
void save_adapters(const torch::nn::Module &module, const std::string &path);
void load_adapters(torch::nn::Module &module, const std::string &path);

} // namespace device_shim
