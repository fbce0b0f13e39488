#include "../../cases.h"
#include "buffer.h"

void buffer_on_host_learner_on_gpu_bad() {
  Learner learner(torch::kCUDA, torch::kCPU);
  learner.observe(torch::rand({1, 3}));
  learner.update(torch::rand({1, 1}));
}

void buffer_on_host_moved_back_ok() {
  Learner learner(torch::kCUDA, torch::kCPU);
  learner.observe(torch::rand({1, 3}));
  learner.updateOnOwnDevice(torch::rand({1, 1}));
}

void everything_on_host_ok() {
  Learner learner(torch::kCPU, torch::kCPU);
  learner.observe(torch::rand({1, 3}));
  learner.update(torch::rand({1, 1}));
}

DT_MAIN(buffer_on_host_learner_on_gpu_bad, buffer_on_host_moved_back_ok, everything_on_host_ok)
