// Members that look unregistered and are not, or are placed by hand; and a few that really are forgotten.
#include <torch/torch.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "../cases.h"

// register_buffer through this-> and under a name made at run time.
struct RunTimeNamesImpl : torch::nn::Module {
  explicit RunTimeNamesImpl(int64_t n) {
    for (int64_t i = 0; i < n; ++i)
      offsets.push_back(this->register_buffer("offset_" + std::to_string(i), torch::zeros({3})));
    this->gain = this->register_parameter("gain", torch::ones({3}));
  }
  torch::Tensor forward(torch::Tensor x) {
    for (auto &offset : offsets)
      x = x + offset;
    return x * gain;
  }
  std::vector<torch::Tensor> offsets;
  torch::Tensor gain;
};
TORCH_MODULE(RunTimeNames);

void buffers_under_run_time_names_ok() {
  RunTimeNames net(2);
  net->to(torch::kCUDA);
  net(torch::rand({3}, torch::kCUDA));
}

// Registered in reset(), as Cloneable modules do.
class WhiteningImpl : public torch::nn::Cloneable<WhiteningImpl> {
public:
  WhiteningImpl() { reset(); }
  void reset() override {
    mean = register_buffer("mean", torch::zeros({3}));
    fc = register_module("fc", torch::nn::Linear(3, 3));
  }
  torch::Tensor forward(const torch::Tensor &x) { return fc(x - mean); }
  torch::Tensor mean;
  torch::nn::Linear fc{nullptr};
};
TORCH_MODULE(Whitening);

void buffers_registered_in_reset_ok() {
  Whitening net;
  net->to(torch::kCUDA);
  net(torch::rand({1, 3}, torch::kCUDA));
}

class ForgetfulWhiteningImpl : public torch::nn::Cloneable<ForgetfulWhiteningImpl> {
public:
  ForgetfulWhiteningImpl() { reset(); }
  void reset() override {
    mean = torch::zeros({3});
    fc = register_module("fc", torch::nn::Linear(3, 3));
  }
  torch::Tensor forward(const torch::Tensor &x) { return fc(x) - mean; } // [[device-unregistered-tensor]]
  torch::Tensor mean;
  torch::nn::Linear fc{nullptr};
};
TORCH_MODULE(ForgetfulWhitening);

void tensor_created_in_reset_bad() {
  ForgetfulWhitening net;
  net->to(torch::kCUDA);
  net(torch::rand({1, 3}, torch::kCUDA));
}

// The plain member is sent along where it is used.
struct MovedAtUseImpl : torch::nn::Module {
  MovedAtUseImpl() : fc(register_module("fc", torch::nn::Linear(3, 3))), anchors(torch::rand({3})) {}
  torch::Tensor forward(const torch::Tensor &x) { return fc(x) * anchors.to(x.device()); }
  torch::nn::Linear fc;
  torch::Tensor anchors;
};
TORCH_MODULE(MovedAtUse);

void plain_member_moved_at_use_ok() {
  MovedAtUse net;
  net->to(torch::kCUDA);
  net(torch::rand({1, 3}, torch::kCUDA));
}

// The module overrides to() and takes its plain tensor along.
struct OwnToImpl : torch::nn::Module {
  using torch::nn::Module::to;
  OwnToImpl() : fc(register_module("fc", torch::nn::Linear(3, 3))), anchors(torch::rand({3})) {}
  void to(torch::Device device, bool non_blocking = false) override {
    torch::nn::Module::to(device, non_blocking);
    anchors = anchors.to(device);
  }
  torch::Tensor forward(const torch::Tensor &x) { return fc(x) * anchors; }
  torch::nn::Linear fc;
  torch::Tensor anchors;
};
TORCH_MODULE(OwnTo);

void module_overrides_to_ok() {
  OwnTo net;
  net->to(torch::Device(torch::kCUDA));
  net(torch::rand({1, 3}, torch::kCUDA));
}

// A zero-dimensional plain member mixes freely.
struct TemperatureImpl : torch::nn::Module {
  TemperatureImpl() : fc(register_module("fc", torch::nn::Linear(3, 3))), temperature(torch::tensor(0.7f)) {}
  torch::Tensor forward(const torch::Tensor &x) { return fc(x) / temperature; }
  torch::nn::Linear fc;
  torch::Tensor temperature;
};
TORCH_MODULE(Temperature);

void zero_dim_plain_member_ok() {
  Temperature net;
  net->to(torch::kCUDA);
  net(torch::rand({1, 3}, torch::kCUDA));
}

// Host-side bookkeeping that never meets a module tensor.
struct CountingImpl : torch::nn::Module {
  CountingImpl() : fc(register_module("fc", torch::nn::Linear(3, 3))), histogram(torch::zeros({8})) {}
  torch::Tensor forward(const torch::Tensor &x) {
    auto y = fc(x);
    histogram += torch::histc(y.detach().cpu(), 8);
    return y;
  }
  torch::nn::Linear fc;
  torch::Tensor histogram;
};
TORCH_MODULE(Counting);

void host_bookkeeping_member_ok() {
  Counting net;
  net->to(torch::kCUDA);
  net(torch::rand({1, 3}, torch::kCUDA));
}

// A buffer assigned again after registration: the registered one moves, the new one stays.
struct ReassignedBufferImpl : torch::nn::Module {
  ReassignedBufferImpl() : fc(register_module("fc", torch::nn::Linear(3, 3))) {
    prior = register_buffer("prior", torch::zeros({3}));
    prior = torch::full({3}, 0.1);
  }
  torch::Tensor forward(const torch::Tensor &x) { return fc(x) + prior; } // [[device-unregistered-tensor]]
  torch::nn::Linear fc;
  torch::Tensor prior;
};
TORCH_MODULE(ReassignedBuffer);

void buffer_member_reassigned_bad() {
  ReassignedBuffer net;
  net->to(torch::kCUDA);
  net(torch::rand({1, 3}, torch::kCUDA));
}

struct FilledBufferImpl : torch::nn::Module {
  FilledBufferImpl() : fc(register_module("fc", torch::nn::Linear(3, 3))) {
    prior = register_buffer("prior", torch::zeros({3}));
    prior.fill_(0.1);
  }
  torch::Tensor forward(const torch::Tensor &x) { return fc(x) + prior; }
  torch::nn::Linear fc;
  torch::Tensor prior;
};
TORCH_MODULE(FilledBuffer);

void buffer_member_filled_ok() {
  FilledBuffer net;
  net->to(torch::kCUDA);
  net(torch::rand({1, 3}, torch::kCUDA));
}

// A default member initialiser, never registered.
struct DefaultInitialisedImpl : torch::nn::Module {
  DefaultInitialisedImpl() { register_module("fc", fc); }
  torch::Tensor forward(const torch::Tensor &x) { return torch::sigmoid(fc(x)) * bins; } // [[device-unregistered-tensor]]
  torch::nn::Linear fc{3, 3};
  torch::Tensor bins = torch::linspace(0, 1, 3);
};
TORCH_MODULE(DefaultInitialised);

void default_member_initialiser_bad() {
  DefaultInitialised net;
  net->to(torch::kCUDA);
  net(torch::rand({1, 3}, torch::kCUDA));
}

DT_MAIN(buffers_under_run_time_names_ok, buffers_registered_in_reset_ok, tensor_created_in_reset_bad,
        plain_member_moved_at_use_ok, module_overrides_to_ok, zero_dim_plain_member_ok,
        host_bookkeeping_member_ok, buffer_member_reassigned_bad, buffer_member_filled_ok,
        default_member_initialiser_bad)
