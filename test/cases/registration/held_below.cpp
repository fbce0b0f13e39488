// Members that were never registered, found where something below them is used; a member that took another's place.
#include "../cases.h"

#include <torch/torch.h>

namespace {

struct HeadImpl : torch::nn::Module {
  HeadImpl() { fc = register_module("fc", torch::nn::Linear(4, 2)); }
  torch::Tensor forward(torch::Tensor x) { return fc(x); } // [[device-unregistered-tensor]]
  torch::nn::Linear fc{nullptr};
};
TORCH_MODULE(Head);

struct Forgotten : torch::nn::Module {
  Forgotten() {
    body = register_module("body", torch::nn::Linear(4, 4));
    head = Head();
  }
  torch::Tensor forward(torch::Tensor x) { return head->forward(torch::relu(body(x))); }
  torch::nn::Linear body{nullptr};
  Head head{nullptr};
};

struct Registered : torch::nn::Module {
  Registered() {
    body = register_module("body", torch::nn::Linear(4, 4));
    head = register_module("head", Head());
  }
  torch::Tensor forward(torch::Tensor x) { return head->forward(torch::relu(body(x))); }
  torch::nn::Linear body{nullptr};
  Head head{nullptr};
};

struct Replaced : torch::nn::Module {
  Replaced() { head = register_module("head", torch::nn::Linear(8, 1000)); }
  void resetHead(int64_t classes) {
    head = torch::nn::Linear(8, classes);
  }
  torch::Tensor forward(torch::Tensor x) { return head(x); } // [[device-unregistered-tensor]]
  torch::nn::Linear head{nullptr};
};

class WithStatistics : public torch::nn::Module {
protected:
  WithStatistics() {
    mean = torch::zeros({3});
    variance = register_buffer("variance", torch::ones({3}));
  }
  torch::Tensor normalised(const torch::Tensor &x) const { return (x - mean) / variance.sqrt(); } // [[device-unregistered-tensor]]
  torch::Tensor mean, variance;
};

class Student : public WithStatistics {
public:
  Student() { fc = register_module("fc", torch::nn::Linear(3, 2)); }
  torch::Tensor forward(const torch::Tensor &x) { return fc(normalised(x)); }

private:
  torch::nn::Linear fc{nullptr};
};

struct Masked : torch::nn::Module {
  Masked() {
    torch::nn::Conv2d conv(torch::nn::Conv2dOptions(3, 8, 3).bias(false));
    weight = register_parameter("weight", conv->weight.detach().clone());
    mask = torch::ones_like(weight);
  }
  torch::Tensor forward(torch::Tensor x) { return torch::conv2d(x, weight * mask); } // [[device-unregistered-tensor]]
  torch::Tensor weight, mask;
};

void below_bad() {
  Forgotten model;
  model.to(torch::kCUDA);
  auto y = model.forward(torch::ones({1, 4}, torch::kCUDA));
}

void below_ok() {
  Registered model;
  model.to(torch::kCUDA);
  auto y = model.forward(torch::ones({1, 4}, torch::kCUDA));
}

void replaced_bad() {
  Replaced model;
  model.resetHead(10);
  model.to(torch::kCUDA);
  auto y = model.forward(torch::ones({2, 8}, torch::kCUDA));
}

void in_base_bad() {
  Student model;
  model.to(torch::kCUDA);
  auto y = model.forward(torch::ones({2, 3}, torch::kCUDA));
}

void like_a_weight_bad() {
  Masked model;
  model.to(torch::kCUDA);
  auto y = model.forward(torch::randn({2, 3, 16, 16}, torch::kCUDA));
}

} // namespace

DT_MAIN(below_bad, below_ok, replaced_bad, in_base_bad, like_a_weight_bad)
