// Models moved between backward() and step(): Module::to moves parameters, their gradients stay.
#include "../cases.h"

#include <memory>
#include <torch/torch.h>

namespace {

torch::nn::Sequential classifier() {
  return torch::nn::Sequential(torch::nn::Linear(4, 3), torch::nn::ReLU(), torch::nn::Linear(3, 2));
}

void late_move_bad() {
  auto model = classifier();
  torch::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(0.1));
  model->forward(torch::rand({2, 4})).sum().backward();
  model->to(torch::kCUDA);
  optimizer.step(); // [[device-mixed-op]]
}
void late_move_ok() {
  auto model = classifier();
  torch::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(0.1));
  model->to(torch::kCUDA);
  model->forward(torch::rand({2, 4}, torch::kCUDA)).sum().backward();
  optimizer.step();
}

// The copy for the checkpoint goes by way of the CPU and back.
void train_with_checkpoints(torch::nn::Sequential &model, torch::optim::Optimizer &optimizer, int epochs) {
  for (int epoch = 0; epoch < epochs; ++epoch) {
    optimizer.zero_grad();
    model->forward(torch::rand({2, 4}, torch::kCUDA)).sum().backward();
    model->to(torch::kCPU);
    model->to(torch::kCUDA);
    optimizer.step();
  }
}
void there_and_back_ok() {
  auto model = classifier();
  model->to(torch::kCUDA);
  torch::optim::Adam optimizer(model->parameters(), torch::optim::AdamOptions(0.1));
  train_with_checkpoints(model, optimizer, 2);
}
void there_only_bad() {
  auto model = classifier();
  model->to(torch::kCUDA);
  auto optimizer = std::make_unique<torch::optim::Adam>(model->parameters(), torch::optim::AdamOptions(0.1));
  model->forward(torch::rand({2, 4}, torch::kCUDA)).sum().backward();
  model->to(torch::kCPU);
  optimizer->step(); // [[device-mixed-op]]
}

// Moved between two trainings; the second one starts with gradients of its own.
void two_phases_ok() {
  auto model = classifier();
  model->forward(torch::rand({2, 4})).sum().backward();
  model->to(torch::kCUDA);
  for (auto &parameter : model->parameters())
    parameter.mutable_grad() = torch::Tensor();
  torch::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(0.1));
  model->forward(torch::rand({2, 4}, torch::kCUDA)).sum().backward();
  optimizer.step();
}

// Another model's gradients.
void other_model_ok() {
  auto critic = classifier(), actor = classifier();
  torch::optim::SGD optimizer(critic->parameters(), torch::optim::SGDOptions(0.1));
  critic->forward(torch::rand({2, 4})).sum().backward();
  actor->to(torch::kCUDA);
  optimizer.step();
}

} // namespace

DT_MAIN(late_move_bad, late_move_ok, there_and_back_ok, there_only_bad, two_phases_ok, other_model_ok)
