#include "buffer.h"

void StepBuffer::add(const torch::Tensor &observation, const torch::Tensor &action,
                     const torch::Tensor &value) {
  Step step;
  step.observation = observation.to(device_);
  step.action = action.to(device_);
  step.value = value.to(device_);
  steps_.push_back(step);
}

Step StepBuffer::pop() {
  Step last = steps_.back();
  steps_.pop_back();
  return last;
}
