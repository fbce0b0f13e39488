What only a caller can tell is likely where the code around speaks for a mistake, and silent elsewhere.

REQUIRES: torch
RUN: rm -rf %t && split-file %s %t
RUN: not %device-tidy %t/a.cpp %torch | FileCheck %t/a.cpp --implicit-check-not=warning:
RUN: not %device-tidy %t/b.cpp %torch | FileCheck %t/b.cpp --implicit-check-not=warning:
RUN: %device-tidy %t/host/c.cpp %torch

//--- a.cpp
#include <torch/torch.h>

#include <vector>

// One argument is moved, the one beside it is not.
torch::Tensor loss(torch::Tensor logits, torch::Tensor target, torch::Device device) {
  logits = logits.to(device);
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: warning: '-' can get 'logits' on 'device' and 'target' on 'target.device()'
  return (logits - target).square().mean();
}
torch::Tensor bothMoved(torch::Tensor logits, torch::Tensor target, torch::Device device) {
  return (logits.to(device) - target.to(device)).square().mean();
}
torch::Tensor together(torch::Tensor a, torch::Tensor b) { return a.mm(b); }

// A tensor made on the CPU, where the code asks for devices.
torch::Tensor weigh(torch::Tensor x) {
  auto bias = torch::zeros({4}, x.options()), weight = torch::ones({4, 4});
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: warning: 'mm' can get 'x' on 'x.device()' and 'weight' on cpu
  return x.mm(weight) + bias;
}
torch::Tensor beside(torch::Tensor x) {
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: warning: 'mm' can get 'x' on 'x.device()' and 'torch::ones({4, 4})' on cpu
  return x.mm(torch::ones({4, 4}));
}
// Memory of a container, or of a caller, is not page-locked on purpose.
torch::Tensor normalize(torch::Tensor x, std::vector<float> numbers) {
  auto mean = torch::from_blob(numbers.data(), {3, 1, 1});
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: warning: 'sub' can get 'x' on 'x.device()' and 'mean' on cpu
  return x.sub(mean);
}
// CHECK: [[@LINE+1]]:{{[0-9]+}}: warning: 'sub' can get 'x' on 'x.device()' and 'torch::from_blob(numbers, {3, 1, 1})' on cpu
torch::Tensor ofMemory(torch::Tensor x, float *numbers) { return x.sub(torch::from_blob(numbers, {3, 1, 1})); }

// A tensor of the caller, by a handle.
struct Environment {
  long handleOf(void *object);
};
torch::Tensor byHandle(Environment *environment, void *object) {
  auto *x = reinterpret_cast<torch::Tensor *>(environment->handleOf(object));
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: warning: 'sub' can get 'x' on 'environment->handleOf(object).device()' and 'torch::ones({4, 4})' on cpu
  return x->sub(torch::ones({4, 4}));
}
torch::Tensor staged(torch::Tensor x) {
  auto weight = torch::ones({4, 4}, torch::TensorOptions().pinned_memory(true));
  return x.options().device().is_cuda() ? x : x.mm(weight);
}

// A member that only ever holds a tensor on the CPU.
class Scaler {
public:
  explicit Scaler(torch::Device device) : device(device), scale(torch::ones({4, 4})) {}
  void reset() { scale = torch::ones({4, 4}); }
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: warning: 'mm' can get 'x.to(device)' on 'device' and 'scale' on cpu
  torch::Tensor apply(torch::Tensor x) { return x.to(device).mm(scale); }

private:
  torch::Device device;
  torch::Tensor scale;
};

//--- host/c.cpp
#include <torch/torch.h>

#include <vector>

// Nothing in this folder speaks of devices.
torch::Tensor forTheHost(torch::Tensor x) { return x.mm(torch::ones({4, 4})); }
std::vector<float> numbers(const torch::Tensor &x) {
  return std::vector<float>(x.data_ptr<float>(), x.data_ptr<float>() + x.numel());
}

//--- b.cpp
#include <torch/torch.h>

#include <unordered_map>
#include <vector>

// What is given goes to where the module is; not all of it does.
class Head {
public:
  explicit Head(torch::Device device) : device(device) { linear->to(device); }
  torch::Tensor residual(torch::Tensor x) {
    auto y = linear(x.to(device));
    // CHECK: [[@LINE+1]]:{{[0-9]+}}: warning: '+' can get 'x' on 'x.device()' and 'y' on 'device'
    return x + y;
  }
  torch::Tensor loss(torch::Tensor x, const torch::Tensor &target) {
    x = linear(x.to(device));
    // CHECK: [[@LINE+1]]:{{[0-9]+}}: warning: loss 'mse_loss' can get 'x' on 'device' and 'target' on 'target.device()'
    return torch::nn::functional::mse_loss(x, target);
  }

private:
  torch::nn::Linear linear{4, 4};
  torch::Device device;
};

// Stages on several devices: what leaves one is moved to the next.
class Stages {
public:
  explicit Stages(std::vector<torch::Device> devices) : devices(std::move(devices)) {
    for (std::size_t i = 0; i < this->devices.size(); ++i) {
      stages.push_back(torch::nn::Linear(4, 4));
      stages[i]->to(this->devices[i]);
    }
  }
  torch::Tensor forward(torch::Tensor x) {
    for (std::size_t i = 0; i < stages.size(); ++i)
      x = stages[i](x.to(devices[i]));
    return x;
  }
  torch::Tensor added(torch::Tensor x) {
    for (std::size_t i = 0; i < stages.size(); ++i)
      // CHECK: [[@LINE+1]]:{{[0-9]+}}: warning: '+' can get 'x' on 'x.device()' and 'stages[i](x.to(devices[i]))' on 'devices[i]'
      x = x + stages[i](x.to(devices[i]));
    return x;
  }

private:
  std::vector<torch::Device> devices;
  std::vector<torch::nn::Linear> stages;
};

// A move between two devices says that they may differ.
class Limits {
public:
  Limits(torch::Tensor mean, torch::Tensor width) : mean(mean), width(width) {}
  torch::Tensor clip(const torch::Tensor &x) const {
    auto high = (mean + width).to(x.device());
    auto low = mean - width;
    // CHECK: [[@LINE+1]]:{{[0-9]+}}: warning: 'max' can get 'torch::min(x, high)' on 'x.device()' and 'low' on {{.*}}
    return torch::max(torch::min(x, high), low);
  }
  // A tensor that is made for one given tensor may meet another: callers keep those together.
  torch::Tensor correct(const torch::Tensor &x, const torch::Tensor &index) const {
    return torch::arange(8).to(x.device()).index_select(0, index);
  }

private:
  torch::Tensor mean, width;
};

// Made for the tensor of an earlier call, and kept.
class Windows {
public:
  torch::Tensor taper(const torch::Tensor &x) {
    auto at = windows.find(x.size(0));
    if (at == windows.end())
      at = windows.emplace(x.size(0), torch::hann_window(x.size(0), x.options())).first;
    // CHECK: [[@LINE+1]]:{{[0-9]+}}: warning: '*' can get 'x' on 'x.device()' and 'at->second' on 'x.device() of an earlier call'
    return x * at->second;
  }
  torch::Tensor followed(const torch::Tensor &x) {
    if (!window.defined() || window.device() != x.device())
      window = torch::hann_window(x.size(0), x.options());
    return x * window;
  }

private:
  std::unordered_map<std::int64_t, torch::Tensor> windows;
  torch::Tensor window;
};
torch::Tensor blurred(const torch::Tensor &x) {
  static const torch::Tensor window = torch::hann_window(7, x.options());
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: warning: '*' can get 'x' on 'x.device()' and 'window' on 'x.device() of an earlier call'
  return x * window;
}

// What takes tensors out to the host; a kernel for the CPU gives a tensor.
std::vector<float> numbers(const torch::Tensor &x) {
  auto y = x.contiguous();
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: warning: {{.*}} works on memory of cpu and can get that of 'y' on x.device()
  return std::vector<float>(y.data_ptr<float>(), y.data_ptr<float>() + y.numel());
}
torch::Tensor doubled(const torch::Tensor &x) {
  auto y = torch::empty_like(x);
  auto from = x.accessor<float, 1>(), to = y.accessor<float, 1>();
  for (std::int64_t i = 0; i < x.size(0); ++i)
    to[i] = 2 * from[i];
  return y;
}
