// Callbacks stored in objects: hooks on a layer's output, collected activations, teacher and student.
#include <torch/torch.h>

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "../cases.h"

namespace editing {

using OutputHook = std::function<torch::Tensor(const torch::Tensor &)>;

class HookedStack {
public:
  explicit HookedStack(int layers) {
    for (int i = 0; i < layers; ++i) {
      layers_.emplace_back(4, 4);
      layers_.back()->to(torch::Device(torch::kCUDA, static_cast<c10::DeviceIndex>(i)));
    }
  }
  void onOutput(size_t layer, OutputHook hook) { hooks_[layer] = std::move(hook); }

  torch::Tensor run(torch::Tensor h) {
    for (size_t i = 0; i < layers_.size(); ++i) {
      h = layers_[i]->forward(h.to(layers_[i]->weight.device()));
      auto found = hooks_.find(i);
      if (found != hooks_.end())
        h = found->second(h);
    }
    return h;
  }

private:
  std::vector<torch::nn::Linear> layers_;
  std::map<size_t, OutputHook> hooks_;
};

void hook_moves_delta_to_the_output_ok() {
  HookedStack model(2);
  auto delta = torch::zeros({4}, torch::Device(torch::kCUDA, 0));
  model.onOutput(1, [&delta](const torch::Tensor &out) { return out + delta.to(out.device()); });
  model.run(torch::rand({2, 4}));
}

// One layer, one hook, no loop: the output is on cuda:1, the delta on cuda:0.
struct HookedLayer {
  explicit HookedLayer(torch::Device device) : layer(4, 4) { layer->to(device); }
  torch::Tensor run(const torch::Tensor &x) {
    auto out = layer->forward(x.to(layer->weight.device()));
    return hook ? hook(out) : out;
  }
  torch::nn::Linear layer;
  OutputHook hook;
};

void hook_adds_delta_of_another_gpu_bad() {
  HookedLayer layer(torch::Device(torch::kCUDA, 1));
  auto delta = torch::zeros({4}, torch::Device(torch::kCUDA, 0));
  layer.hook = [&delta](const torch::Tensor &out) {
    return out + delta; // [[device-mixed-op]]
  };
  layer.run(torch::rand({2, 4}));
}

void hook_adds_delta_of_the_same_gpu_ok() {
  HookedLayer layer(torch::Device(torch::kCUDA, 1));
  auto delta = torch::zeros({4}, torch::Device(torch::kCUDA, 1));
  layer.hook = [&delta](const torch::Tensor &out) {
    return out + delta;
  };
  layer.run(torch::rand({2, 4}));
}

} // namespace editing

// Tensor hooks run in backward.
void gradient_hook_scales_by_number_ok() {
  auto w = torch::rand({3}, torch::TensorOptions(torch::kCUDA).requires_grad(true));
  w.register_hook([](const torch::Tensor &grad) { return grad * 0.5; });
  w.pow(2).sum().backward();
}

// The teacher stays on the CPU on purpose; its output is moved.
void cpu_teacher_output_moved_ok() {
  torch::nn::Linear teacher(4, 3), student(4, 3);
  student->to(torch::kCUDA);
  auto x = torch::rand({2, 4});
  torch::Tensor soft;
  {
    torch::NoGradGuard off;
    soft = torch::softmax(teacher(x), -1).to(torch::kCUDA);
  }
  auto logits = student(x.to(torch::kCUDA));
  torch::kl_div(torch::log_softmax(logits, -1), soft).backward();
}

void cpu_teacher_output_not_moved_bad() {
  torch::nn::Linear teacher(4, 3), student(4, 3);
  student->to(torch::kCUDA);
  auto x = torch::rand({2, 4});
  torch::Tensor soft;
  {
    torch::NoGradGuard off;
    soft = torch::softmax(teacher(x), -1);
  }
  auto logits = student(x.to(torch::kCUDA));
  torch::kl_div(torch::log_softmax(logits, -1), soft).backward(); // [[device-loss-input]]
}

// Activations collected on the host for statistics, then compared with a live one.
void collected_activations_compared_bad() {
  torch::nn::Linear layer(4, 4);
  layer->to(torch::kCUDA);
  std::vector<torch::Tensor> activations;
  for (int i = 0; i < 2; ++i)
    activations.push_back(layer(torch::rand({1, 4}, torch::kCUDA)).detach().cpu());
  auto reference = torch::cat(activations).mean(0);
  auto live = layer(torch::rand({1, 4}, torch::kCUDA));
  auto drift = (live - reference).norm(); // [[device-mixed-op]]
  TORCH_CHECK(drift.defined());
}

void collected_activations_compared_on_host_ok() {
  torch::nn::Linear layer(4, 4);
  layer->to(torch::kCUDA);
  std::vector<torch::Tensor> activations;
  for (int i = 0; i < 2; ++i)
    activations.push_back(layer(torch::rand({1, 4}, torch::kCUDA)).detach().cpu());
  auto reference = torch::cat(activations).mean(0);
  auto live = layer(torch::rand({1, 4}, torch::kCUDA));
  auto drift = (live.detach().cpu() - reference).norm();
  TORCH_CHECK(drift.defined());
}

using namespace editing;
DT_MAIN(hook_moves_delta_to_the_output_ok, hook_adds_delta_of_another_gpu_bad,
        hook_adds_delta_of_the_same_gpu_ok, gradient_hook_scales_by_number_ok, cpu_teacher_output_moved_ok,
        cpu_teacher_output_not_moved_bad, collected_activations_compared_bad,
        collected_activations_compared_on_host_ok)
