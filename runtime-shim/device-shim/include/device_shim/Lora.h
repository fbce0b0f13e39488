//===- Lora.h - low-rank adapters -------------------------------*- C++ -*-===//
//
// Low-rank adapters: a frozen linear layer plus a small trainable correction.
// Source: Hu et al., https://arxiv.org/abs/2106.09685; parameter names are those of the PEFT library.
//
//===----------------------------------------------------------------------===//
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

#include <cstdint>
#include <string>
#include <vector>

namespace device_shim {

struct LoraOptions {
  int64_t rank = 8;  ///< inner dimension of the correction, at least 1
  double alpha = 16; ///< the correction is multiplied by alpha / rank
};

/// y = base(x) + (x A^T) B^T * alpha / rank, with A [rank, in] random (kaiming_uniform with sqrt(5), as in
/// PEFT) and B [out, rank] zero at first, so that the layer begins as its base. A and B are made on the
/// device and in the type of the base's weight. torch::save() and torch::load() know merged layers: files
/// hold the base without the correction.
class LoraLinearImpl : public torch::nn::Module {
public:
  /// With a new random base, frozen, with bias. \throws UsageError for a rank below 1.
  LoraLinearImpl(int64_t in, int64_t out, const LoraOptions &options = {});
  /// Takes an existing layer over and freezes it. \throws UsageError for a rank below 1; c10::Error for an
  /// empty holder.
  explicit LoraLinearImpl(torch::nn::Linear base, const LoraOptions &options = {});

  /// [..., in] to [..., out], of the base's type and on its device, as `input` must be. \throws c10::Error
  /// for another input, as torch::nn::Linear does.
  torch::Tensor forward(const torch::Tensor &input);

  /// Adds the correction to the base's weight, for use without training, or takes that same correction out
  /// again. Both round, so that the base afterwards is what it was but for the last bits of its type.
  /// Meanwhile forward() does not look at A and B: changing them shows after unmerge().
  /// \throws UsageError between passes of ShardedDataParallel with stage 3, which holds the parameters then;
  /// merge() after a backward pass with stage 2, before its synchronize().
  void merge();
  void unmerge();
  bool merged() const { return mergedA.defined(); }

  /// As Module::save(); of a merged layer the base as unmerge() would make it.
  void save(torch::serialize::OutputArchive &archive) const override;
  /// As Module::load(); the layer is not merged afterwards.
  void load(torch::serialize::InputArchive &archive) override;

  torch::nn::Linear base_layer{nullptr};
  torch::Tensor lora_A, lora_B;
  /// By what the correction is multiplied: alpha / rank.
  double scale() const { return scaling; }

private:
  void makeAdapter(const LoraOptions &options);
  torch::Tensor correction(const torch::Tensor &a, const torch::Tensor &b) const;
  void forgetMerge();

  double scaling = 1;
  torch::Tensor mergedA, mergedB; ///< as they were when merged; undefined when it is not
};
TORCH_MODULE(LoraLinear);

/// Freezes everything below `module` except the parameters named lora_A and lora_B, which it makes trainable.
/// Returns the number of trainable elements; those of a tied adapter count once.
int64_t train_only_adapters(torch::nn::Module &module);

/// The parameters that require gradients, for an optimizer, in the order of their registration. A tied
/// parameter, which the module has under several names, is there once.
std::vector<torch::Tensor> trainable_parameters(const torch::nn::Module &module);

/// Writes the adapters alone, by name, on the host. \throws Error when the file cannot be written, and the
/// one before is unchanged; UsageError for a model that ShardedDataParallel shards, with stage 3, or after a
/// backward pass before its synchronize(); it has a save_adapters() of its own.
void save_adapters(const torch::nn::Module &module, const std::string &path);
/// Reads the adapters of `module`; further ones in the file are ignored. Nothing changes when it throws.
/// \throws Error when the file cannot be read or has changed since it was written, lacks one, has another
/// shape, or was written for another alpha; UsageError for adapters that are merged, and for a model that is
/// sharded with stage 3. To be called before ShardedDataParallel is made: see there for stage 2.
void load_adapters(torch::nn::Module &module, const std::string &path);

} // namespace device_shim
