// Loops over lists whose elements are known one by one: stages, shards and replicas at their own device.
#include "../cases.h"

#include <array>
#include <torch/torch.h>
#include <vector>

namespace {

torch::Device gpu(int index) { return torch::Device(torch::kCUDA, static_cast<c10::DeviceIndex>(index)); }

// Stages in a ModuleList, moved by number.
struct Stages {
  Stages() {
    list->push_back(torch::nn::Linear(4, 4));
    list->push_back(torch::nn::Sequential(torch::nn::Linear(4, 4), torch::nn::ReLU()));
    for (std::size_t i = 0; i < list->size(); ++i)
      list[i]->to(gpu(static_cast<int>(i)));
  }
  torch::Tensor first(const torch::Tensor &x) { return list[0]->as<torch::nn::Linear>()->forward(x); }
  torch::nn::ModuleList list;
};
void staged_bad() {
  Stages stages;
  auto h = stages.first(torch::rand({2, 4}, gpu(0)));
  stages.list[1]->as<torch::nn::Sequential>()->forward(h); // [[device-mixed-op]]
}
void staged_ok() {
  Stages stages;
  auto h = stages.first(torch::rand({2, 4}, gpu(0)));
  stages.list[1]->as<torch::nn::Sequential>()->forward(h.to(gpu(1)));
}

void same_device_ok() {
  std::vector<torch::nn::Linear> heads;
  heads.push_back(torch::nn::Linear(4, 2));
  heads.push_back(torch::nn::Linear(4, 3));
  for (std::size_t i = 0; i < heads.size(); ++i)
    heads[i]->to(torch::kCUDA);
  auto x = torch::rand({2, 4}, torch::kCUDA);
  heads[0](x);
  heads[1](x);
}

void devices_by_number_bad() {
  const std::array<int, 2> devices{0, 2};
  std::vector<torch::Tensor> shards{torch::rand(3), torch::rand(3)};
  for (std::size_t i = 0; i < devices.size(); ++i)
    shards[i] = shards[i].to(gpu(devices[i]));
  auto sum = shards[0] + shards[1]; // [[device-mixed-op]]
}
void devices_by_number_ok() {
  const std::array<int, 2> devices{0, 2};
  std::vector<torch::Tensor> shards{torch::rand(3), torch::rand(3)};
  for (std::size_t i = 0; i < devices.size(); ++i)
    shards[i] = shards[i].to(gpu(devices[i]));
  auto sum = shards[0] + shards[1].to(gpu(0));
}

// How many pieces chunk() gives is its own affair: each of them is moved all the same.
void pieces_ok() {
  const std::vector<torch::Device> devices{gpu(0), gpu(1)};
  auto pieces = torch::rand({4, 2}).chunk(2);
  std::vector<torch::nn::Linear> replicas{torch::nn::Linear(2, 1), torch::nn::Linear(2, 1)};
  for (std::size_t i = 0; i < devices.size(); ++i) {
    pieces[i] = pieces[i].to(devices[i]);
    replicas[i]->to(devices[i]);
  }
  for (std::size_t i = 0; i < replicas.size(); ++i)
    replicas[i](pieces[i]);
}

void filled_array_bad() {
  std::array<torch::Tensor, 2> states;
  for (auto &state : states)
    state = torch::zeros(3);
  auto next = states[1] + torch::rand(3, torch::kCUDA); // [[device-mixed-op]]
}
void filled_array_ok() {
  std::array<torch::Tensor, 2> states;
  for (auto &state : states)
    state = torch::zeros(3, torch::kCUDA);
  auto next = states[1] + torch::rand(3, torch::kCUDA);
}

} // namespace

DT_MAIN(staged_bad, staged_ok, same_device_ok, devices_by_number_bad, devices_by_number_ok, pieces_ok,
        filled_array_bad, filled_array_ok)
