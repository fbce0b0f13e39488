#pragma once

#include <torch/torch.h>

#include <map>
#include <utility>
#include <vector>

namespace pllm {

// allreduce.cu
int64_t one_shot_init(int64_t world);
void one_shot_free(int64_t handle);
void one_shot_reduce(int64_t handle, const torch::Tensor& in, torch::Tensor& out);
void fused_add_norm(torch::Tensor& x, torch::Tensor& residual, const torch::Tensor& weight, torch::Tensor& scratch);
void copy_blocks(torch::Tensor& cache, const std::vector<std::pair<int64_t, int64_t>>& moves);

struct StageImpl : torch::nn::Module {
  explicit StageImpl(int64_t width) {
    up = register_module("up", torch::nn::Linear(width, 2 * width));
    down = register_module("down", torch::nn::Linear(2 * width, width));
    gain = register_parameter("gain", torch::ones({width}));
  }
  torch::Tensor forward(const torch::Tensor& x) { return x + down(torch::silu(up(x * gain))); }
  torch::nn::Linear up{nullptr}, down{nullptr};
  torch::Tensor gain;
};
TORCH_MODULE(Stage);

// One process, consecutive layers on consecutive GPUs.
class Pipeline {
 public:
  Pipeline(int64_t vocabulary, int64_t width, int64_t layers, std::vector<torch::Device> devices);
  torch::Tensor encode(const torch::Tensor& tokens);
  torch::Tensor encode_rotary(const torch::Tensor& tokens);
  torch::Tensor encode_rotary_cached(const torch::Tensor& tokens);
  torch::Tensor encode_fused(const torch::Tensor& tokens);
  double perplexity(const torch::Tensor& tokens);
  double score(const torch::Tensor& tokens, const torch::Tensor& labels);

 private:
  const torch::Device& device_of_layer(size_t layer) const;
  static std::pair<torch::Tensor, torch::Tensor> angles(int64_t length, int64_t width, torch::Device device);
  std::vector<torch::Device> devices_;
  int64_t width_;
  torch::nn::Embedding embed_;
  std::vector<Stage> stages_;
  torch::nn::Linear head_;
  torch::Tensor cos_, sin_;
  std::map<torch::Device, torch::Tensor, bool (*)(torch::Device, torch::Device)> rotary_;
  std::vector<torch::Tensor> scratch_, norms_;
};

} // namespace pllm
