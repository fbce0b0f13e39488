#pragma once
#include <torch/torch.h>

#include <vector>

struct Step {
  torch::Tensor observation, action, value;
};

// Keeps every tensor on the device it was made for.
class StepBuffer {
public:
  explicit StepBuffer(torch::Device device) : device_(device) {}
  void add(const torch::Tensor &observation, const torch::Tensor &action, const torch::Tensor &value);
  Step pop();

private:
  torch::Device device_;
  std::vector<Step> steps_;
};

class Learner {
public:
  Learner(torch::Device device, torch::Device bufferDevice);
  void observe(const torch::Tensor &observation);
  torch::Tensor update(const torch::Tensor &returns);
  torch::Tensor updateOnOwnDevice(const torch::Tensor &returns);

private:
  torch::Device device_;
  StepBuffer buffer_;
  torch::nn::Linear critic_;
};
