// A loaded optimizer keeps its state where the archive has it, or on the device that load is given.
#include "../cases.h"

#include <sstream>
#include <torch/torch.h>

namespace {

void train(torch::nn::Linear &model, torch::optim::Optimizer &optimizer, torch::Device device) {
  model->zero_grad();
  model->forward(torch::rand({2, 4}, device)).mean().backward();
  optimizer.step();
}

std::string checkpoint(torch::Device device) {
  torch::nn::Linear model(4, 2);
  model->to(device);
  torch::optim::Adam optimizer(model->parameters(), 0.1);
  train(model, optimizer, device);
  std::ostringstream out;
  torch::save(optimizer, out);
  return out.str();
}

void given_device_bad() {
  torch::nn::Linear model(4, 2);
  model->to(torch::kCUDA);
  torch::optim::Adam optimizer(model->parameters(), 0.1);
  std::istringstream file(checkpoint(torch::kCUDA));
  torch::load(optimizer, file, torch::kCPU);
  model->forward(torch::rand({2, 4}, torch::kCUDA)).mean().backward();
  optimizer.step(); // [[device-mixed-op]]
}
void given_device_ok() {
  torch::nn::Linear model(4, 2);
  model->to(torch::kCUDA);
  torch::optim::Adam optimizer(model->parameters(), 0.1);
  std::istringstream file(checkpoint(torch::kCPU));
  torch::load(optimizer, file, torch::kCUDA);
  model->forward(torch::rand({2, 4}, torch::kCUDA)).mean().backward();
  optimizer.step();
}
// Where the archive has it is not known here.
void archive_device_ok() {
  torch::nn::Linear model(4, 2);
  torch::optim::Adam optimizer(model->parameters(), 0.1);
  train(model, optimizer, torch::kCPU);
  model->to(torch::kCUDA);
  std::istringstream file(checkpoint(torch::kCUDA));
  torch::load(optimizer, file);
  for (auto &parameter : model->parameters())
    parameter.mutable_grad().reset();
  model->forward(torch::rand({2, 4}, torch::kCUDA)).mean().backward();
  optimizer.step();
}
// Plain SGD keeps nothing that could be elsewhere.
void nothing_kept_ok() {
  torch::nn::Linear model(4, 2), other(4, 2);
  torch::optim::SGD optimizer(model->parameters(), 0.1), saved(other->parameters(), 0.1);
  model->to(torch::kCUDA);
  std::stringstream file;
  torch::save(saved, file);
  torch::load(optimizer, file, torch::kCPU);
  model->forward(torch::rand({2, 4}, torch::kCUDA)).mean().backward();
  optimizer.step();
}
// What was saved on the CPU comes back there.
void saved_state_bad() {
  torch::nn::Linear model(4, 2);
  torch::optim::Adam optimizer(model->parameters(), 0.1);
  model->forward(torch::rand({2, 4})).mean().backward();
  optimizer.step();
  std::stringstream file;
  torch::save(optimizer, file);
  model->to(torch::kCUDA);
  torch::optim::Adam fresh(model->parameters(), 0.1);
  torch::load(fresh, file);
  for (auto &parameter : model->parameters())
    parameter.mutable_grad().reset();
  model->forward(torch::rand({2, 4}, torch::kCUDA)).mean().backward();
  fresh.step(); // [[device-mixed-op]]
}

} // namespace

DT_MAIN(given_device_bad, given_device_ok, archive_device_ok, nothing_kept_ok, saved_state_bad)
