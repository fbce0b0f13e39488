#include "../cases.h"
#include <torch/torch.h>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

using torch::Tensor;
namespace nn = torch::nn;

struct Options {
  int64_t z_dim = 8;
  int64_t batch = 4;
  std::string device = "cuda:0";
};

static nn::Sequential makeGenerator(int64_t z) {
  return nn::Sequential(nn::Linear(z, 16), nn::LeakyReLU(nn::LeakyReLUOptions().negative_slope(0.2)), nn::Linear(16, 32),
                        nn::Tanh());
}
static nn::Sequential makeDiscriminator() {
  return nn::Sequential(nn::Linear(32, 16), nn::ReLU(), nn::Linear(16, 1), nn::Sigmoid());
}

void dcgan_labels_bad() {
  Options opt;
  torch::Device dev(opt.device);
  auto G = makeGenerator(opt.z_dim);
  auto D = makeDiscriminator();
  G->to(dev);
  D->to(dev);
  auto real = torch::randn({opt.batch, 32}).to(dev);
  auto ones = torch::empty({opt.batch, 1}, dev).uniform_(0.8, 1.0);
  auto zeros = torch::zeros({opt.batch, 1});
  auto lossReal = torch::binary_cross_entropy(D->forward(real), ones);
  auto fake = G->forward(torch::randn({opt.batch, opt.z_dim}, dev));
  auto lossFake = torch::binary_cross_entropy(D->forward(fake.detach()), zeros); // [[device-loss-input]]
  (lossReal + lossFake).backward();
}
void dcgan_labels_ok() {
  Options opt;
  torch::Device dev(opt.device);
  auto G = makeGenerator(opt.z_dim);
  auto D = makeDiscriminator();
  G->to(dev);
  D->to(dev);
  auto real = torch::randn({opt.batch, 32}).to(dev);
  auto ones = torch::empty({opt.batch, 1}, dev).uniform_(0.8, 1.0);
  auto zeros = torch::zeros_like(ones);
  auto lossReal = torch::binary_cross_entropy(D->forward(real), ones);
  auto fake = G->forward(torch::randn({opt.batch, opt.z_dim}, dev));
  auto lossFake = torch::binary_cross_entropy(D->forward(fake.detach()), zeros);
  (lossReal + lossFake).backward();
}

// WGAN-GP: interpolation coefficients
static Tensor gradientPenalty(nn::Sequential& D, const Tensor& real, const Tensor& fake, const Tensor& alpha) {
  auto mix = (alpha * real + (1 - alpha) * fake).requires_grad_(true); // [[device-mixed-op]]
  auto out = D->forward(mix);
  auto g = torch::autograd::grad({out}, {mix}, {torch::ones_like(out)}, true, true)[0];
  return (g.norm(2, 1) - 1).pow(2).mean();
}
static Tensor gradientPenaltyFixed(nn::Sequential& D, const Tensor& real, const Tensor& fake) {
  auto alpha = torch::rand({real.size(0), 1}, real.options());
  auto mix = (alpha * real + (1 - alpha) * fake).requires_grad_(true);
  auto out = D->forward(mix);
  auto g = torch::autograd::grad({out}, {mix}, {torch::ones_like(out)}, true, true)[0];
  return (g.norm(2, 1) - 1).pow(2).mean();
}
void wgan_gp_bad() {
  auto D = makeDiscriminator();
  D->to(torch::kCUDA);
  auto real = torch::randn({4, 32}, torch::kCUDA), fake = torch::randn({4, 32}, torch::kCUDA);
  gradientPenalty(D, real, fake, torch::rand({4, 1})).backward();
}
void wgan_gp_ok() {
  auto D = makeDiscriminator();
  D->to(torch::kCUDA);
  auto real = torch::randn({4, 32}, torch::kCUDA), fake = torch::randn({4, 32}, torch::kCUDA);
  gradientPenaltyFixed(D, real, fake).backward();
}

// conditional GAN with an embedding of labels, trainer class
class CganTrainer {
 public:
  explicit CganTrainer(const Options& o)
      : opt_(o), device_(o.device), gen_(makeGenerator(o.z_dim)), emb_(nn::EmbeddingOptions(10, o.z_dim)) {
    gen_->to(device_);
    emb_->to(device_);
  }
  Tensor sampleBroken(int64_t n) {
    auto labels = torch::randint(0, 10, {n}, torch::TensorOptions().dtype(torch::kLong));
    auto noise = torch::randn({n, opt_.z_dim}, torch::TensorOptions().device(device_));
    return gen_->forward(noise * emb_(labels)); // [[device-mixed-op]]
  }
  Tensor sample(int64_t n) {
    auto labels = torch::randint(0, 10, {n}, torch::TensorOptions().dtype(torch::kLong).device(device_));
    auto noise = torch::randn({n, opt_.z_dim}, torch::TensorOptions().device(device_));
    return gen_->forward(noise * emb_(labels));
  }

 private:
  Options opt_;
  torch::Device device_;
  nn::Sequential gen_;
  nn::Embedding emb_;
};
void cgan_sample_bad() {
  CganTrainer t(Options{});
  t.sampleBroken(4);
}
void cgan_sample_ok() {
  CganTrainer t(Options{});
  t.sample(4);
}

// losses chosen by name from a map of std::function
using LossFn = std::function<Tensor(const Tensor&, const Tensor&)>;
static const std::map<std::string, LossFn>& lossTable() {
  static const std::map<std::string, LossFn> table = {
      {"lsgan", [](const Tensor& p, const Tensor& t) { return torch::mse_loss(p, t); }}, // [[device-loss-input]]
      {"hinge", [](const Tensor& p, const Tensor& t) { return torch::relu(1.0 - p * t.to(p.device())).mean(); }},
  };
  return table;
}
void loss_table_bad() {
  auto D = makeDiscriminator();
  D->to(torch::Device("cuda"));
  auto out = D->forward(torch::randn({4, 32}, torch::kCUDA));
  lossTable().at("lsgan")(out, torch::ones({4, 1})).backward();
}
void loss_table_ok() {
  auto D = makeDiscriminator();
  D->to(torch::Device("cuda"));
  auto out = D->forward(torch::randn({4, 32}, torch::kCUDA));
  lossTable().at("hinge")(out, torch::ones({4, 1})).backward();
  lossTable().at("lsgan")(out.detach().cpu(), torch::ones({4, 1}));
}

// image pool of past fakes kept on the host to save memory
class ImagePool {
 public:
  explicit ImagePool(size_t cap) : cap_(cap) {}
  Tensor query(const Tensor& images) {
    for (int64_t i = 0; i < images.size(0); ++i) {
      if (pool_.size() < cap_) pool_.push_back(images[i].detach().cpu());
    }
    return torch::stack(pool_);
  }

 private:
  size_t cap_;
  std::vector<Tensor> pool_;
};
void image_pool_bad() {
  auto D = makeDiscriminator();
  D->to(torch::Device(torch::kCUDA, 0));
  ImagePool pool(4);
  auto fake = torch::randn({4, 32}, torch::Device(torch::kCUDA, 0));
  auto old = pool.query(fake);
  auto score = D->forward(old); // [[device-mixed-op]]
  score.mean().backward();
}
void image_pool_ok() {
  auto D = makeDiscriminator();
  D->to(torch::Device(torch::kCUDA, 0));
  ImagePool pool(4);
  auto fake = torch::randn({4, 32}, torch::Device(torch::kCUDA, 0));
  auto old = pool.query(fake).to(fake.device());
  auto score = D->forward(old);
  score.mean().backward();
}

// feature matching across all blocks
struct CriticImpl : nn::Module {
  CriticImpl() {
    for (int i = 0; i < 3; ++i) blocks->push_back(nn::Linear(8, 8));
    register_module("blocks", blocks);
  }
  std::vector<Tensor> features(Tensor x) {
    std::vector<Tensor> out;
    for (const auto& b : *blocks) {
      x = torch::relu(b->as<nn::Linear>()->forward(x));
      out.push_back(x);
    }
    return out;
  }
  nn::ModuleList blocks;
};
TORCH_MODULE(Critic);
void feature_matching_bad() {
  Critic c;
  c->to(torch::kCUDA);
  auto fr = c->features(torch::randn({2, 8}, torch::kCUDA));
  std::vector<Tensor> ff;
  for (auto& f : c->features(torch::randn({2, 8}, torch::kCUDA))) ff.emplace_back(f.to(torch::kCPU));
  Tensor total = torch::zeros({}, torch::kCUDA);
  for (size_t i = 0; i < fr.size(); ++i) total = total + torch::l1_loss(ff[i], fr[i].detach()); // [[device-loss-input]]
  total.backward();
}
void feature_matching_ok() {
  Critic c;
  c->to(torch::kCUDA);
  auto fr = c->features(torch::randn({2, 8}, torch::kCUDA));
  std::vector<Tensor> ff;
  for (auto& f : c->features(torch::randn({2, 8}, torch::kCUDA))) ff.emplace_back(f.to(torch::kFloat));
  Tensor total = torch::zeros({}, torch::kCUDA);
  for (size_t i = 0; i < fr.size(); ++i) total = total + torch::l1_loss(ff[i], fr[i].detach());
  total.backward();
}

DT_MAIN(dcgan_labels_bad, dcgan_labels_ok, wgan_gp_bad, wgan_gp_ok, cgan_sample_bad, cgan_sample_ok,
        loss_table_bad, loss_table_ok, image_pool_bad, image_pool_ok, feature_matching_bad,
        feature_matching_ok)
