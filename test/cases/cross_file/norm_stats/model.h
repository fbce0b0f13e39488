#pragma once
#include <torch/torch.h>

class EncoderImpl : public torch::nn::Module {
public:
  EncoderImpl();
  torch::Tensor forward(const torch::Tensor &x);

private:
  torch::nn::Linear fc_{nullptr};
  torch::Tensor mean_;
};
TORCH_MODULE(Encoder);

class BufferedEncoderImpl : public torch::nn::Module {
public:
  BufferedEncoderImpl();
  torch::Tensor forward(const torch::Tensor &x);

private:
  torch::nn::Linear fc_{nullptr};
  torch::Tensor mean_;
};
TORCH_MODULE(BufferedEncoder);
