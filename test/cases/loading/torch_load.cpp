// torch::save / torch::load: with a device the placement is known, without one it is the archive's.
#include <torch/torch.h>

#include <cstdio>
#include <string>
#include <unistd.h>

#include "../cases.h"

static std::string scratch(const char *name) {
  return "/tmp/dt_case_" + std::to_string(::getpid()) + "_" + name + ".pt";
}

struct Scratch {
  explicit Scratch(const char *name) : path(scratch(name)) {}
  ~Scratch() { std::remove(path.c_str()); }
  std::string path;
};

void tensor_loaded_to_cpu_bad() {
  Scratch file("stats");
  torch::save(torch::ones({3}), file.path);
  torch::Tensor mean;
  torch::load(mean, file.path, torch::kCPU);
  auto x = torch::rand({2, 3}, torch::kCUDA);
  auto y = x - mean; // [[device-mixed-op]]
  TORCH_CHECK(y.defined());
}

void tensor_loaded_to_device_ok() {
  Scratch file("stats");
  torch::save(torch::ones({3}), file.path);
  torch::Tensor mean;
  torch::load(mean, file.path, torch::Device(torch::kCUDA));
  auto x = torch::rand({2, 3}, torch::kCUDA);
  auto y = x - mean;
  TORCH_CHECK(y.defined());
}

// A CUDA checkpoint: the freshly made model moves to the archive's device by loading.
void checkpoint_without_device_is_unknown_ok() {
  Scratch file("model");
  torch::nn::Linear trained(3, 2);
  trained->to(torch::kCUDA);
  torch::save(trained, file.path);
  torch::nn::Linear fresh(3, 2);
  torch::load(fresh, file.path);
  auto y = fresh->forward(torch::rand({1, 3}, torch::kCUDA));
  TORCH_CHECK(y.is_cuda());
}

void checkpoint_then_moved_ok() {
  Scratch file("model");
  torch::nn::Linear trained(3, 2);
  torch::save(trained, file.path);
  torch::nn::Linear fresh(3, 2);
  torch::load(fresh, file.path);
  fresh->to(torch::kCUDA);
  auto y = fresh->forward(torch::rand({1, 3}, torch::kCUDA));
  TORCH_CHECK(y.is_cuda());
}

void checkpoint_then_moved_input_forgotten_bad() {
  Scratch file("model");
  torch::nn::Linear trained(3, 2);
  torch::save(trained, file.path);
  torch::nn::Linear fresh(3, 2);
  torch::load(fresh, file.path);
  fresh->to(torch::kCUDA);
  auto y = fresh->forward(torch::rand({1, 3})); // [[device-mixed-op]]
  TORCH_CHECK(y.defined());
}

// Loading with map-to-CPU undoes the earlier move.
void checkpoint_loaded_to_cpu_after_the_move_bad() {
  Scratch file("model");
  torch::nn::Linear net(3, 2);
  torch::save(net, file.path);
  net->to(torch::kCUDA);
  torch::load(net, file.path, torch::kCPU);
  auto y = net->forward(torch::rand({1, 3}, torch::kCUDA)); // [[device-mixed-op]]
  TORCH_CHECK(y.defined());
}

void checkpoint_loaded_to_cpu_before_the_move_ok() {
  Scratch file("model");
  torch::nn::Linear net(3, 2);
  torch::save(net, file.path);
  torch::load(net, file.path, torch::kCPU);
  net->to(torch::kCUDA);
  auto y = net->forward(torch::rand({1, 3}, torch::kCUDA));
  TORCH_CHECK(y.defined());
}

// Resume training: model, then optimizer, then the move.
void resume_training_ok() {
  Scratch weights("weights"), state("state");
  torch::nn::Linear net(3, 2);
  torch::optim::Adam adam(net->parameters(), 1e-3);
  torch::save(net, weights.path);
  torch::save(adam, state.path);
  torch::Device device(torch::kCUDA);
  torch::load(net, weights.path, device);
  torch::load(adam, state.path, device);
  net->forward(torch::rand({1, 3}, device)).sum().backward();
  adam.step();
}

// Best weights are kept on the host while training goes on; that is deliberate.
void best_weights_snapshot_ok() {
  torch::nn::Linear net(3, 2);
  net->to(torch::kCUDA);
  std::vector<torch::Tensor> best;
  for (const auto &p : net->parameters())
    best.push_back(p.detach().cpu().clone());
  torch::NoGradGuard off;
  auto params = net->parameters();
  for (size_t i = 0; i < params.size(); ++i)
    params[i].copy_(best[i]);
}

void best_weights_compared_bad() {
  torch::nn::Linear net(3, 2);
  net->to(torch::kCUDA);
  std::vector<torch::Tensor> best;
  for (const auto &p : net->parameters())
    best.push_back(p.detach().cpu().clone());
  torch::NoGradGuard off;
  auto params = net->parameters();
  for (size_t i = 0; i < params.size(); ++i) {
    auto drift = (params[i] - best[i]).norm(); // [[device-mixed-op]]
    TORCH_CHECK(drift.defined());
  }
}

DT_MAIN(tensor_loaded_to_cpu_bad, tensor_loaded_to_device_ok, checkpoint_without_device_is_unknown_ok,
        checkpoint_then_moved_ok, checkpoint_then_moved_input_forgotten_bad,
        checkpoint_loaded_to_cpu_after_the_move_bad, checkpoint_loaded_to_cpu_before_the_move_ok,
        resume_training_ok, best_weights_snapshot_ok, best_weights_compared_bad)
