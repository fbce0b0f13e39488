#pragma once

#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>
#include <torch/torch.h>

#include <deque>
#include <memory>
#include <string>

#include "videopipe.h"

namespace videopipe {

struct Pipeline {
  explicit Pipeline(const vp_config &config);

  void push(torch::Tensor frame);
  torch::Tensor &current();

  vp_config config;
  torch::Device device;
  torch::Tensor staging;     // pinned, NV12 as it comes from the decoder
  torch::Tensor coefficients; // of the conversion to RGB
  torch::Tensor mapped;
  std::deque<torch::Tensor> frames;
  torch::Tensor previous;
};

std::shared_ptr<Pipeline> find(vp_handle handle);

torch::Tensor nv12_to_rgb(const torch::Tensor &nv12, const torch::Tensor &coefficients, int height, int width);
torch::Tensor tone_map(const torch::Tensor &frame, const torch::Tensor &table);
torch::Tensor equalize(const torch::Tensor &frame);

} // namespace videopipe
