// Members that Module::to does not reach, and the many look-alikes that it does.
#include "../cases.h"
#include <torch/torch.h>

#include <cmath>
#include <vector>

namespace {

struct PositionalEncodingImpl : torch::nn::Module {
  PositionalEncodingImpl(int64_t len, int64_t dim) {
    project = register_module("project", torch::nn::Linear(dim, dim));
    pe = torch::zeros({len, dim});
  }
  torch::Tensor forward(torch::Tensor x) {
    return project(x) + pe.slice(0, 0, x.size(0)); // [[device-unregistered-tensor]]
  }
  torch::nn::Linear project{nullptr};
  torch::Tensor pe;
};
TORCH_MODULE(PositionalEncoding);

void positional_encoding_plain_member_bad() {
  PositionalEncoding m(16, 4);
  m->to(torch::kCUDA);
  m->forward(torch::rand({8, 4}, torch::kCUDA));
}

struct BufferedEncodingImpl : torch::nn::Module {
  BufferedEncodingImpl(int64_t len, int64_t dim) {
    project = register_module("project", torch::nn::Linear(dim, dim));
    pe = register_buffer("pe", torch::zeros({len, dim}));
  }
  torch::Tensor forward(torch::Tensor x) {
    return project(x) + pe.slice(0, 0, x.size(0));
  }
  torch::nn::Linear project{nullptr};
  torch::Tensor pe;
};
TORCH_MODULE(BufferedEncoding);

void positional_encoding_buffer_ok() {
  BufferedEncoding m(16, 4);
  m->to(torch::kCUDA);
  m->forward(torch::rand({8, 4}, torch::kCUDA));
}

// Normaliser statistics in the initialiser list.
class NormalizerImpl : public torch::nn::Module {
public:
  NormalizerImpl()
      : mean_(torch::tensor({0.485, 0.456, 0.406})),
        scale_(register_parameter("scale", torch::ones({3}))) {}
  torch::Tensor forward(const torch::Tensor &x) { return (x * scale_) - mean_; } // [[device-unregistered-tensor]]

private:
  torch::Tensor mean_, scale_;
};
TORCH_MODULE(Normalizer);

void normaliser_mean_in_init_list_bad() {
  Normalizer n;
  n->to(torch::kCUDA);
  n->forward(torch::rand({2, 3}, torch::kCUDA));
}

class BufferNormalizerImpl : public torch::nn::Module {
public:
  BufferNormalizerImpl()
      : mean_(register_buffer("mean", torch::tensor({0.485, 0.456, 0.406}))),
        scale_(register_parameter("scale", torch::ones({3}))) {}
  torch::Tensor forward(const torch::Tensor &x) { return (x * scale_) - mean_; }

private:
  torch::Tensor mean_, scale_;
};
TORCH_MODULE(BufferNormalizer);

void normaliser_mean_as_buffer_ok() {
  BufferNormalizer n;
  n->to(torch::kCUDA);
  n->forward(torch::rand({2, 3}, torch::kCUDA));
}

// A submodule that nobody registered.
struct TwoLayerImpl : torch::nn::Module {
  TwoLayerImpl() {
    first = register_module("first", torch::nn::Linear(4, 4));
    second = torch::nn::Linear(4, 2);
  }
  torch::Tensor forward(torch::Tensor x) { return second(torch::tanh(first(x))); } // [[device-unregistered-tensor]]
  torch::nn::Linear first{nullptr}, second{nullptr};
};
TORCH_MODULE(TwoLayer);

void submodule_not_registered_bad() {
  TwoLayer net;
  net->to(torch::kCUDA);
  net->forward(torch::rand({1, 4}, torch::kCUDA));
}

// Registered later in the same constructor, through the member.
struct LateRegisteredImpl : torch::nn::Module {
  LateRegisteredImpl() : first(4, 4), second(4, 2) {
    register_module("first", first);
    register_module("second", second);
  }
  torch::Tensor forward(torch::Tensor x) { return second(torch::tanh(first(x))); }
  torch::nn::Linear first, second;
};
TORCH_MODULE(LateRegistered);

void submodules_registered_in_body_ok() {
  LateRegistered net;
  net->to(torch::kCUDA);
  net->forward(torch::rand({1, 4}, torch::kCUDA));
}

// A member that is reassigned from the input on every call is no missing buffer.
struct CachingImpl : torch::nn::Module {
  CachingImpl() : fc(register_module("fc", torch::nn::Linear(3, 3))) { last = torch::zeros({1, 3}); }
  torch::Tensor forward(torch::Tensor x) {
    last = fc(x);
    return last + x;
  }
  torch::nn::Linear fc;
  torch::Tensor last;
};
TORCH_MODULE(Caching);

void member_reassigned_per_call_ok() {
  Caching net;
  net->to(torch::kCUDA);
  net->forward(torch::rand({1, 3}, torch::kCUDA));
}

// Built on the constructor's device: placed already.
struct AnchorsImpl : torch::nn::Module {
  explicit AnchorsImpl(torch::Device device) : fc(register_module("fc", torch::nn::Linear(3, 3))) {
    anchors = torch::rand({1, 3}, device);
    this->to(device);
  }
  torch::Tensor forward(torch::Tensor x) { return fc(x) * anchors; }
  torch::nn::Linear fc;
  torch::Tensor anchors;
};
TORCH_MODULE(Anchors);

void member_on_constructor_device_ok() {
  Anchors net(torch::kCUDA);
  net->forward(torch::rand({1, 3}, torch::kCUDA));
}

// Never moved: the class runs on the CPU only.
struct CpuOnlyImpl : torch::nn::Module {
  CpuOnlyImpl() : fc(register_module("fc", torch::nn::Linear(3, 3))), shift(torch::zeros({3})) {}
  torch::Tensor forward(torch::Tensor x) { return fc(x) + shift; }
  torch::nn::Linear fc;
  torch::Tensor shift;
};
TORCH_MODULE(CpuOnly);

void class_never_moved_ok() {
  CpuOnly net;
  net->forward(torch::rand({1, 3}));
}

} // namespace

DT_MAIN(positional_encoding_plain_member_bad, positional_encoding_buffer_ok,
        normaliser_mean_in_init_list_bad, normaliser_mean_as_buffer_ok, submodule_not_registered_bad,
        submodules_registered_in_body_ok, member_reassigned_per_call_ok, member_on_constructor_device_ok,
        class_never_moved_ok)
