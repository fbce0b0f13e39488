// User-defined modules: the failing operation is inside forward.
#include <torch/torch.h>

#include "../cases.h"

struct Net : torch::nn::Module {
  Net() {
    fc1 = register_module("fc1", torch::nn::Linear(8, 16));
    fc2 = register_module("fc2", torch::nn::Linear(16, 3));
  }
  torch::Tensor forward(torch::Tensor x) {
    x = torch::relu(fc1->forward(x)); // [[device-mixed-op]]
    return torch::log_softmax(fc2->forward(x), 1);
  }
  torch::nn::Linear fc1{nullptr}, fc2{nullptr};
};

void input_never_moved_bad() {
  auto net = std::make_shared<Net>();
  net->to(torch::kCUDA);
  auto batch = torch::rand({2, 8});
  auto out = net->forward(batch);
  TORCH_CHECK(out.defined());
}

struct SafeNet : torch::nn::Module {
  SafeNet() {
    fc1 = register_module("fc1", torch::nn::Linear(8, 16));
    fc2 = register_module("fc2", torch::nn::Linear(16, 3));
  }
  torch::Tensor forward(torch::Tensor x) {
    x = torch::relu(fc1->forward(x));
    return torch::log_softmax(fc2->forward(x), 1);
  }
  torch::nn::Linear fc1{nullptr}, fc2{nullptr};
};

void input_moved_ok() {
  auto net = std::make_shared<SafeNet>();
  net->to(torch::kCUDA);
  auto batch = torch::rand({2, 8});
  auto out = net->forward(batch.to(torch::kCUDA));
  TORCH_CHECK(out.defined());
}

// The mask made inside forward has no device.
class MaskedEncoderImpl : public torch::nn::Module {
public:
  explicit MaskedEncoderImpl(int64_t dim)
      : query(register_module("query", torch::nn::Linear(dim, dim))),
        key(register_module("key", torch::nn::Linear(dim, dim))) {}

  torch::Tensor forward(const torch::Tensor &x) {
    auto scores = torch::matmul(query(x), key(x).transpose(-2, -1));
    auto causal = torch::tril(torch::ones({x.size(1), x.size(1)}));
    return torch::softmax(scores * causal, -1); // [[device-mixed-op]]
  }

private:
  torch::nn::Linear query, key;
};
TORCH_MODULE(MaskedEncoder);

void mask_made_in_forward_bad() {
  MaskedEncoder enc(8);
  torch::Device dev(torch::kCUDA, 0);
  enc->to(dev);
  enc->forward(torch::rand({2, 5, 8}, dev));
}

class CausalEncoderImpl : public torch::nn::Module {
public:
  explicit CausalEncoderImpl(int64_t dim)
      : query(register_module("query", torch::nn::Linear(dim, dim))),
        key(register_module("key", torch::nn::Linear(dim, dim))) {}

  torch::Tensor forward(const torch::Tensor &x) {
    auto scores = torch::matmul(query(x), key(x).transpose(-2, -1));
    auto causal = torch::tril(torch::ones({x.size(1), x.size(1)}, x.options()));
    return torch::softmax(scores * causal, -1);
  }

private:
  torch::nn::Linear query, key;
};
TORCH_MODULE(CausalEncoder);

void mask_made_in_forward_ok() {
  CausalEncoder enc(8);
  torch::Device dev(torch::kCUDA, 0);
  enc->to(dev);
  enc->forward(torch::rand({2, 5, 8}, dev));
}

// VAE: eps drawn without the device of the standard deviation.
struct VaeImpl : torch::nn::Module {
  VaeImpl()
      : encode(register_module("encode", torch::nn::Linear(6, 4))),
        decode(register_module("decode", torch::nn::Linear(2, 6))) {}

  torch::Tensor reparameterize(torch::Tensor mu, torch::Tensor logVar) {
    auto std = logVar.div(2).exp();
    auto eps = torch::randn(std.sizes());
    return eps.mul(std).add_(mu); // [[device-mixed-op]]
  }
  torch::Tensor forward(torch::Tensor x) {
    auto parts = encode->forward(x).chunk(2, 1);
    return decode->forward(reparameterize(parts[0], parts[1]));
  }
  torch::nn::Linear encode, decode;
};
TORCH_MODULE(Vae);

void vae_noise_on_host_bad() {
  Vae vae;
  vae->to(torch::kCUDA);
  vae->forward(torch::rand({3, 6}, torch::kCUDA));
}

struct VaeLikeImpl : torch::nn::Module {
  VaeLikeImpl()
      : encode(register_module("encode", torch::nn::Linear(6, 4))),
        decode(register_module("decode", torch::nn::Linear(2, 6))) {}

  torch::Tensor reparameterize(torch::Tensor mu, torch::Tensor logVar) {
    auto std = logVar.div(2).exp();
    auto eps = torch::randn_like(std);
    return eps.mul(std).add_(mu);
  }
  torch::Tensor forward(torch::Tensor x) {
    auto parts = encode->forward(x).chunk(2, 1);
    return decode->forward(reparameterize(parts[0], parts[1]));
  }
  torch::nn::Linear encode, decode;
};
TORCH_MODULE(VaeLike);

void vae_noise_like_std_ok() {
  VaeLike vae;
  vae->to(torch::kCUDA);
  vae->forward(torch::rand({3, 6}, torch::kCUDA));
}

// Model on the GPU, evaluation brings it back first.
void model_brought_back_to_host_ok() {
  torch::nn::Linear net(4, 4);
  net->to(torch::kCUDA);
  auto y = net->forward(torch::rand({1, 4}, torch::kCUDA));
  net->to(torch::kCPU);
  y = net->forward(torch::rand({1, 4}));
  TORCH_CHECK(!y.is_cuda());
}

void weight_alias_moves_with_the_module_ok() {
  torch::nn::Linear net(4, 4);
  auto w = net->weight;
  net->to(torch::kCUDA);
  auto penalty = (w * torch::ones({4, 4}, torch::kCUDA)).sum();
  TORCH_CHECK(penalty.is_cuda());
}

void weight_view_taken_before_the_move_bad() {
  torch::NoGradGuard off;
  torch::nn::Linear net(4, 4);
  auto w = net->weight.t();
  net->to(torch::kCUDA);
  auto y = torch::rand({2, 4}, torch::kCUDA).mm(w); // [[device-mixed-op]]
  TORCH_CHECK(y.defined());
}

DT_MAIN(input_never_moved_bad, input_moved_ok, mask_made_in_forward_bad, mask_made_in_forward_ok,
        vae_noise_on_host_bad, vae_noise_like_std_ok, model_brought_back_to_host_ok,
        weight_alias_moves_with_the_module_ok, weight_view_taken_before_the_move_bad)
