#include "../cases.h"
#include <torch/torch.h>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>
namespace nn = torch::nn;
using torch::Tensor;

// ---------------- time series: LSTM states, normalisers, teacher forcing
struct ForecasterImpl : nn::Module {
  ForecasterImpl(int64_t in, int64_t hid)
      : hid_(hid),
        lstm_(register_module("lstm", nn::LSTM(nn::LSTMOptions(in, hid).num_layers(1).batch_first(true)))),
        head_(register_module("head", nn::Linear(hid, 1))) {}
  std::tuple<Tensor, Tensor> initHidden(int64_t batch) const {
    return std::make_tuple(torch::zeros({1, batch, hid_}), torch::zeros({1, batch, hid_}));
  }
  std::tuple<Tensor, Tensor> initHiddenOn(int64_t batch) const {
    const auto dev = head_->weight.device();
    return std::make_tuple(torch::zeros({1, batch, hid_}, dev), torch::zeros({1, batch, hid_}, dev));
  }
  Tensor forward(const Tensor& x, std::tuple<Tensor, Tensor> hx) {
    auto [out, state] = lstm_->forward(x, hx); // [[device-mixed-op]]
    return head_(out.select(1, -1));
  }
  int64_t hid_;
  nn::LSTM lstm_;
  nn::Linear head_;
};
TORCH_MODULE(Forecaster);

void lstm_state_bad() {
  Forecaster f(2, 4);
  f->to(torch::kCUDA);
  auto x = torch::randn({3, 5, 2}, torch::kCUDA);
  f(x, f->initHidden(x.size(0)));
}
void lstm_state_ok() {
  Forecaster f(2, 4);
  f->to(torch::kCUDA);
  auto x = torch::randn({3, 5, 2}, torch::kCUDA);
  f(x, f->initHiddenOn(x.size(0)));
}

void gru_tie_bad() {
  const torch::Device device("cuda");
  nn::GRU gru(nn::GRUOptions(3, 4));
  gru->to(device);
  Tensor h = torch::zeros({1, 2, 4}), y;
  for (const auto& chunk : torch::randn({6, 2, 3}, device).split(2, 0)) {
    std::tie(y, h) = gru->forward(chunk, h); // [[device-mixed-op]]
    h = h.detach();
  }
}
void gru_tie_ok() {
  const torch::Device device("cuda");
  nn::GRU gru(nn::GRUOptions(3, 4));
  gru->to(device);
  Tensor h, y;
  for (const auto& chunk : torch::randn({6, 2, 3}, device).split(2, 0)) {
    std::tie(y, h) = gru->forward(chunk, h);
    h = h.detach();
  }
}

// packed sequences: lengths must stay on the host
void packed_lengths_bad() {
  torch::Device device(torch::kCUDA);
  nn::LSTM lstm(nn::LSTMOptions(3, 4).batch_first(true));
  lstm->to(device);
  auto x = torch::randn({2, 5, 3}).to(device);
  auto lengths = torch::tensor({5, 3}, torch::kLong).to(device);
  auto packed = nn::utils::rnn::pack_padded_sequence(x, lengths, true); // [[device-mixed-op]]
  auto out = lstm->forward_with_packed_input(packed);
}
void packed_lengths_ok() {
  torch::Device device(torch::kCUDA);
  nn::LSTM lstm(nn::LSTMOptions(3, 4).batch_first(true));
  lstm->to(device);
  auto x = torch::randn({2, 5, 3}).to(device);
  auto lengths = torch::tensor({5, 3}, torch::kLong);
  auto packed = nn::utils::rnn::pack_padded_sequence(x, lengths, true);
  (void)packed;
}

class StandardScaler {
 public:
  void fit(const Tensor& x) {
    mean_ = x.mean(0);
    std_ = x.std(0) + 1e-6;
  }
  Tensor transform(const Tensor& x) const { return (x - mean_) / std_; }
  Tensor inverse(const Tensor& x) const { return x * std_ + mean_; } // [[device-mixed-op]]
  StandardScaler& to(const torch::Device& d) {
    mean_ = mean_.to(d);
    std_ = std_.to(d);
    return *this;
  }

 private:
  Tensor mean_, std_;
};
void scaler_bad() {
  auto data = torch::randn({20, 2});
  StandardScaler scaler;
  scaler.fit(data);
  nn::Linear model(2, 2);
  model->to(torch::kCUDA);
  auto pred = model(scaler.transform(data).to(torch::kCUDA));
  auto orig = scaler.inverse(pred);
  (void)orig;
}
void scaler_ok() {
  auto data = torch::randn({20, 2});
  StandardScaler scaler;
  scaler.fit(data);
  nn::Linear model(2, 2);
  model->to(torch::kCUDA);
  auto pred = model(scaler.transform(data).to(torch::kCUDA));
  auto orig = scaler.to(torch::kCUDA).inverse(pred);
  (void)orig;
}

// teacher forcing
void teacher_forcing_bad() {
  auto dev = torch::Device("cuda:0");
  nn::GRUCell cell(1, 4);
  nn::Linear out(4, 1);
  cell->to(dev);
  out->to(dev);
  auto target = torch::randn({2, 3, 1});
  Tensor h = torch::zeros({2, 4}, dev), inp = torch::zeros({2, 1}, dev);
  Tensor loss = torch::zeros({1}, dev);
  for (int64_t t = 0; t < target.size(1); ++t) {
    h = cell(inp, h);
    auto y = out(h);
    loss += torch::mse_loss(y, target.select(1, t)); // [[device-loss-input]]
    inp = y.detach();
  }
}
void teacher_forcing_ok() {
  auto dev = torch::Device("cuda:0");
  nn::GRUCell cell(1, 4);
  nn::Linear out(4, 1);
  cell->to(dev);
  out->to(dev);
  auto target = torch::randn({2, 3, 1}).to(dev, /*non_blocking=*/true);
  Tensor h = torch::zeros({2, 4}, dev), inp = torch::zeros({2, 1}, dev);
  Tensor loss = torch::zeros({1}, dev);
  for (int64_t t = 0; t < target.size(1); ++t) {
    h = cell(inp, h);
    auto y = out(h);
    loss += torch::mse_loss(y, target.select(1, t));
    inp = (t % 2 ? target.select(1, t) : y).detach();
  }
}

// ---------------- VAEs
struct VaeOutput {
  Tensor recon, mu, logvar;
};
struct VaeImpl : nn::Module {
  explicit VaeImpl(bool hostNoise) : hostNoise(hostNoise) {
    enc = register_module("enc", nn::Linear(6, 4));
    mu = register_module("mu", nn::Linear(4, 2));
    lv = register_module("lv", nn::Linear(4, 2));
    dec = register_module("dec", nn::Linear(2, 6));
  }
  Tensor reparameterize(const Tensor& m, const Tensor& l) {
    auto std = l.div(2).exp_();
    auto eps = hostNoise ? torch::randn(std.sizes()) : torch::randn_like(std);
    return eps.mul(std).add_(m); // [[device-mixed-op]]
  }
  VaeOutput forward(Tensor x) {
    auto h = torch::relu(enc(x));
    auto m = mu(h), l = lv(h);
    return {torch::sigmoid(dec(reparameterize(m, l))), m, l};
  }
  nn::Linear enc{nullptr}, mu{nullptr}, lv{nullptr}, dec{nullptr};
  bool hostNoise;
};
TORCH_MODULE(Vae);
void vae_noise_bad() {
  Vae vae(true);
  vae->to(torch::kCUDA);
  vae->forward(torch::rand({2, 6}, torch::kCUDA));
}
void vae_noise_ok() {
  Vae vae(false);
  vae->to(torch::kCUDA);
  vae->forward(torch::rand({2, 6}, torch::kCUDA));
}

static Tensor elbo(const VaeOutput& o, const Tensor& x, float beta = 1.0f) {
  auto bce = nn::functional::binary_cross_entropy( // [[device-loss-input]]
      o.recon, x, nn::functional::BinaryCrossEntropyFuncOptions().reduction(torch::kSum));
  auto kld = -0.5 * torch::sum(1 + o.logvar - o.mu.pow(2) - o.logvar.exp());
  return bce + beta * kld;
}
void vae_elbo_bad() {
  Vae vae(false);
  vae->to(torch::Device(torch::kCUDA, 2));
  auto x = torch::rand({2, 6});
  auto out = vae(x.to(torch::Device(torch::kCUDA, 2)));
  elbo(out, x).backward();
}
void vae_elbo_ok() {
  Vae vae(false);
  vae->to(torch::Device(torch::kCUDA, 2));
  auto x = torch::rand({2, 6}).to(torch::Device(torch::kCUDA, 2));
  auto out = vae(x);
  elbo(out, x).backward();
}

// VQ-VAE: codebook as raw member, EMA counts
struct QuantizerImpl : nn::Module {
  QuantizerImpl(int64_t k, int64_t d, bool registered) {
    codebook = register_parameter("codebook", torch::randn({k, d}));
    if (registered) counts = register_buffer("counts", torch::ones({k}));
  }
  Tensor forward(const Tensor& z) {
    auto dist = torch::cdist(z, codebook);
    auto idx = dist.argmin(1);
    auto onehot = torch::one_hot(idx, codebook.size(0)).to(torch::kFloat);
    {
      torch::NoGradGuard g;
      counts.mul_(0.99).add_(onehot.sum(0), 0.01);
    }
    return z + (codebook.index({idx}) - z).detach();
  }
  Tensor codebook, counts;
};
TORCH_MODULE(Quantizer);
struct LooseQuantizerImpl : nn::Module {
  LooseQuantizerImpl(int64_t k, int64_t d) : counts(torch::ones({k})) {
    codebook = register_parameter("codebook", torch::randn({k, d}));
  }
  Tensor forward(const Tensor& z) {
    auto idx = torch::cdist(z, codebook).argmin(1);
    auto onehot = torch::one_hot(idx, codebook.size(0)).to(torch::kFloat);
    torch::NoGradGuard g;
    counts.mul_(0.99).add_(onehot.sum(0), 0.01); // [[device-unregistered-tensor]]
    return codebook.index_select(0, idx);
  }
  Tensor codebook, counts;
};
TORCH_MODULE(LooseQuantizer);
void vq_counts_bad() {
  LooseQuantizer q(4, 2);
  q->to(torch::kCUDA);
  q(torch::randn({3, 2}, torch::kCUDA));
}
void vq_counts_ok() {
  Quantizer q(4, 2, true);
  q->to(torch::kCUDA);
  q(torch::randn({3, 2}, torch::kCUDA));
}

DT_MAIN(lstm_state_bad, lstm_state_ok, gru_tie_bad, gru_tie_ok, packed_lengths_bad, packed_lengths_ok,
        scaler_bad, scaler_ok, teacher_forcing_bad, teacher_forcing_ok, vae_noise_bad, vae_noise_ok,
        vae_elbo_bad, vae_elbo_ok, vq_counts_bad, vq_counts_ok)
