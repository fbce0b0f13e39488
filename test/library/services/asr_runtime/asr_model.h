#pragma once

#include "tensor_util.h"

#include <torch/script.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace asr {

using Frames = std::vector<std::vector<float>>;

// Log mel features of raw audio, for the throughput build that has one GPU per process.
class GpuFbank {
 public:
  GpuFbank(int num_bins, int frame_length);
  torch::Tensor Compute(const std::vector<float>& pcm) const;
  std::vector<float> ComputeHost(const std::vector<float>& pcm) const;
  std::vector<float> Energies(const std::vector<float>& pcm) const;

 private:
  const torch::Device device_{torch::kCUDA};
  int frame_length_;
  torch::Tensor mel_, window_;
};

class AsrModel {
 public:
  void Read(const std::string& dir, int gpu);
  void Reset();

  torch::Tensor ForwardEncoder(const Frames& chunk);
  torch::Tensor ForwardBatch(const std::vector<Frames>& utterances);
  torch::Tensor CtcActivation(const torch::Tensor& encoder_out);
  torch::Tensor Rescore(const std::vector<std::vector<int64_t>>& hyps);
  torch::Tensor MaskedScores(const torch::Tensor& encoder_out, const std::vector<int64_t>& lengths);
  torch::Tensor MaskedMean(const torch::Tensor& encoder_out, const std::vector<int64_t>& lengths);
  void ReadCmvn(const std::string& file);
  torch::Tensor Normalise(const torch::Tensor& feats) const;
  const torch::Device& device() const { return device_; }
  int64_t offset() const { return offset_; }

 private:
  torch::Tensor Pack(const Frames& chunk) const;
  torch::Device device_{torch::kCPU};
  std::map<std::string, torch::jit::Module> modules_;
  std::vector<torch::Tensor> encoder_outs_;
  torch::Tensor cmvn_;
  int64_t offset_ = 0;
};

// The language model shares the host with the scheduler.
class LanguageModel {
 public:
  explicit LanguageModel(const std::string& file) : module_(torch::jit::load(file, torch::kCPU)) {}
  torch::Tensor Score(const torch::Tensor& tokens);

 private:
  torch::jit::Module module_;
};

class BeamSearch {
 public:
  BeamSearch(int beam, torch::Device device) : beam_(beam), device_(device) {}
  void Start(int64_t layers, int64_t width);
  void Append(const torch::Tensor& keys);
  void Reorder(const std::vector<int64_t>& parents);
  void Truncate(const std::vector<int64_t>& alive);
  std::vector<int64_t> Step(const torch::Tensor& log_probs);
  torch::Tensor ShallowFusion(const torch::Tensor& am, LanguageModel& lm, const torch::Tensor& tokens, double weight);
  torch::Tensor RescoreFinal(const torch::Tensor& am, LanguageModel& lm, const torch::Tensor& tokens, double weight);
  int64_t cached() const { return cache_.size(1); }

 private:
  int beam_;
  torch::Device device_;
  torch::Tensor cache_;  // [beam, time, width]
  torch::Tensor scores_; // [beam]
};

} // namespace asr
