// Several GPUs: an index is lost, kCUDA means the current device, lists of devices.
#include <torch/torch.h>

#include <c10/core/DeviceGuard.h>

#include <vector>

#include "../cases.h"

void index_lost_by_cuda_call_bad() {
  torch::Device second(torch::kCUDA, 1);
  auto w = torch::rand({3}, second);
  auto x = torch::rand({3}).cuda();
  auto y = w * x; // [[device-mixed-op]]
  TORCH_CHECK(y.defined());
}

void index_kept_ok() {
  torch::Device second(torch::kCUDA, 1);
  auto w = torch::rand({3}, second);
  auto x = torch::rand({3}).to(second);
  auto y = w * x;
  TORCH_CHECK(y.defined());
}

void output_allocated_on_current_device_bad() {
  auto x = torch::rand({3}, torch::Device(torch::kCUDA, 1));
  auto acc = torch::zeros({3}, x.options().device(torch::kCUDA));
  acc += x; // [[device-mixed-op]]
}

void output_allocated_by_options_ok() {
  auto x = torch::rand({3}, torch::Device(torch::kCUDA, 1));
  auto acc = torch::zeros({3}, x.options());
  acc += x;
}

void current_device_is_zero_ok() {
  auto a = torch::rand({3}, torch::kCUDA);
  auto b = torch::rand({3}, torch::Device(torch::kCUDA, 0));
  auto c = a + b;
  TORCH_CHECK(c.defined());
}

void guard_gives_the_index_ok() {
  c10::DeviceGuard guard(torch::Device(torch::kCUDA, 1));
  auto a = torch::rand({3}, torch::kCUDA);
  auto b = torch::rand({3}, torch::Device(torch::kCUDA, 1));
  auto c = a + b;
  TORCH_CHECK(c.defined());
}

void guard_left_the_scope_bad() {
  torch::Tensor b;
  {
    c10::DeviceGuard guard(torch::Device(torch::kCUDA, 1));
    b = torch::rand({3}, torch::kCUDA);
  }
  auto a = torch::rand({3}, torch::kCUDA);
  auto c = a + b; // [[device-mixed-op]]
  TORCH_CHECK(c.defined());
}

// A guard never changes where a device-less factory allocates.
void guard_does_not_change_the_default_bad() {
  c10::DeviceGuard guard(torch::Device(torch::kCUDA, 1));
  auto a = torch::rand({3}, torch::Device(torch::kCUDA, 1));
  auto b = torch::ones({3});
  auto c = a * b; // [[device-mixed-op]]
  TORCH_CHECK(c.defined());
}

static std::vector<torch::Device> allGpus() {
  std::vector<torch::Device> devices;
  for (size_t i = 0; i < torch::cuda::device_count(); ++i)
    devices.emplace_back(torch::kCUDA, static_cast<torch::DeviceIndex>(i));
  return devices;
}

void first_and_last_of_a_list_bad() {
  auto devices = allGpus();
  torch::nn::Linear embed(4, 4), head(4, 2);
  embed->to(devices.front());
  head->to(devices.back());
  auto h = embed(torch::rand({1, 4}, devices.front()));
  auto y = head(h); // [[device-mixed-op]]
  TORCH_CHECK(y.defined());
}

void first_and_last_of_a_list_ok() {
  auto devices = allGpus();
  torch::nn::Linear embed(4, 4), head(4, 2);
  embed->to(devices.front());
  head->to(devices.back());
  auto h = embed(torch::rand({1, 4}, devices.front()));
  auto y = head(h.to(devices.back()));
  TORCH_CHECK(y.defined());
}

void labels_on_the_input_device_bad() {
  const std::vector<torch::Device> devices = {torch::Device("cuda:0"), torch::Device("cuda:1")};
  torch::nn::Linear embed(4, 4), head(4, 2);
  embed->to(devices[0]);
  head->to(devices[1]);
  auto labels = torch::zeros({3}, torch::kLong).to(devices[0]);
  auto logits = head(embed(torch::rand({3, 4}).to(devices[0])).to(devices[1]));
  auto loss = torch::nll_loss(torch::log_softmax(logits, 1), labels); // [[device-loss-input]]
  loss.backward();
}

void labels_on_the_output_device_ok() {
  const std::vector<torch::Device> devices = {torch::Device("cuda:0"), torch::Device("cuda:1")};
  torch::nn::Linear embed(4, 4), head(4, 2);
  embed->to(devices[0]);
  head->to(devices[1]);
  auto labels = torch::zeros({3}, torch::kLong).to(devices[1]);
  auto logits = head(embed(torch::rand({3, 4}).to(devices[0])).to(devices[1]));
  auto loss = torch::nll_loss(torch::log_softmax(logits, 1), labels);
  loss.backward();
}

// The edit: a delta made once, a layer output that lives where its layer lives.
struct Layers {
  Layers() {
    for (int i = 0; i < 2; ++i) {
      blocks.emplace_back(4, 4);
      blocks.back()->to(torch::Device(torch::kCUDA, i));
    }
  }
  std::vector<torch::nn::Linear> blocks;
};

void delta_added_to_a_layer_output_bad() {
  Layers model;
  auto delta = torch::zeros({4}, torch::Device(torch::kCUDA, 0)).requires_grad_();
  auto hidden = torch::rand({2, 4}, torch::Device(torch::kCUDA, 0));
  auto first = model.blocks[0]->forward(hidden);
  auto second = model.blocks[1]->forward(first.to(torch::Device(torch::kCUDA, 1)));
  second = second + delta; // [[device-mixed-op]]
}

void delta_added_to_a_layer_output_ok() {
  Layers model;
  auto delta = torch::zeros({4}, torch::Device(torch::kCUDA, 0)).requires_grad_();
  auto hidden = torch::rand({2, 4}, torch::Device(torch::kCUDA, 0));
  auto first = model.blocks[0]->forward(hidden);
  auto second = model.blocks[1]->forward(first.to(torch::Device(torch::kCUDA, 1)));
  second = second + delta.to(second.device());
}

DT_MAIN(index_lost_by_cuda_call_bad, index_kept_ok, output_allocated_on_current_device_bad,
        output_allocated_by_options_ok, current_device_is_zero_ok, guard_gives_the_index_ok,
        guard_left_the_scope_bad, guard_does_not_change_the_default_bad, first_and_last_of_a_list_bad,
        first_and_last_of_a_list_ok, labels_on_the_input_device_bad, labels_on_the_output_device_ok,
        delta_added_to_a_layer_output_bad, delta_added_to_a_layer_output_ok)
