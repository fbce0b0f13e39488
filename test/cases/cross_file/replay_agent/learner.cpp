#include "buffer.h"

Learner::Learner(torch::Device device, torch::Device bufferDevice)
    : device_(device), buffer_(bufferDevice), critic_(3, 1) {
  critic_->to(device_);
}

void Learner::observe(const torch::Tensor &observation) {
  auto value = critic_->forward(observation.to(device_)).detach();
  buffer_.add(observation, torch::zeros({1}), value);
}

torch::Tensor Learner::update(const torch::Tensor &returns) {
  Step step = buffer_.pop();
  return returns.to(device_) - step.value; // [[device-mixed-op]]
}

torch::Tensor Learner::updateOnOwnDevice(const torch::Tensor &returns) {
  Step step = buffer_.pop();
  return returns.to(device_) - step.value.to(device_);
}
