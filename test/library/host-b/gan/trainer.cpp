#include "trainer.h"

#include <iostream>

namespace F = torch::nn::functional;

namespace gan {

torch::Tensor AdversarialLoss::discriminator(const torch::Tensor &real, const torch::Tensor &fake) const {
  if (kind_ == LossKind::Hinge)
    return torch::relu(1 - real).mean() + torch::relu(1 + fake).mean();
  return F::binary_cross_entropy_with_logits(real, torch::ones_like(real)) +
         F::binary_cross_entropy_with_logits(fake, torch::zeros_like(fake));
}

torch::Tensor AdversarialLoss::generator(const torch::Tensor &fake) const {
  if (kind_ == LossKind::Hinge)
    return -fake.mean();
  return F::binary_cross_entropy_with_logits(fake, torch::ones_like(fake));
}

torch::Tensor AdversarialLoss::leastSquares(const torch::Tensor &scores, bool real) const {
  const auto target = (real ? real_ : fake_).expand_as(scores);
  return F::mse_loss(scores, target); // [[device-loss-input]]
}

Trainer::Trainer(TrainerOptions options)
    : options_(options), networks_(makeNetworks(options.network, options.device)), loss_(options.loss, 0.1f),
      pool_(options.pool, torch::kCPU) {
  const auto adam = torch::optim::AdamOptions(2e-4).betas({0.5, 0.99});
  generatorOptimizer_ = std::make_unique<torch::optim::Adam>(networks_.generator->parameters(), adam);
  discriminatorOptimizer_ = std::make_unique<torch::optim::Adam>(networks_.discriminator->parameters(), adam);
}

Losses Trainer::step(const torch::Tensor &images, const torch::Tensor &labels) {
  Losses losses;
  losses.discriminator = discriminatorStep(images, labels);
  losses.generator = generatorStep(images.size(0));
  return losses;
}

double Trainer::discriminatorStep(const torch::Tensor &images, const torch::Tensor &labels) {
  const auto real = images.to(options_.device), target = labels.to(options_.device);
  torch::Tensor fake;
  {
    torch::NoGradGuard noGrad;
    fake = pool_.exchange(networks_.generator->forward(latents(real.size(0)), target));
  }
  const auto loss = loss_.discriminator(networks_.discriminator->forward(real), networks_.discriminator->forward(fake));
  discriminatorOptimizer_->zero_grad();
  loss.backward();
  discriminatorOptimizer_->step();
  return loss.item<double>();
}

double Trainer::generatorStep(int64_t count) {
  const auto fake = networks_.generator->forward(latents(count), classes(count));
  const auto scores = networks_.discriminator->forward(fake);
  const auto loss = options_.loss == LossKind::LeastSquares ? loss_.leastSquares(scores, true) : loss_.generator(scores);
  generatorOptimizer_->zero_grad();
  loss.backward();
  generatorOptimizer_->step();
  return loss.item<double>();
}

torch::Tensor Trainer::gradientPenalty(const torch::Tensor &real, const torch::Tensor &fake) {
  const auto onDevice = real.to(options_.device);
  const auto alpha = torch::rand({real.size(0), 1, 1, 1});
  auto mixed = alpha * onDevice + (1 - alpha) * fake.to(options_.device); // [[device-mixed-op]]
  mixed.set_requires_grad(true);
  const auto scores = networks_.discriminator->forward(mixed);
  const auto gradient = torch::autograd::grad({scores}, {mixed}, {torch::ones_like(scores)}, true, true)[0];
  return options_.penalty * (gradient.flatten(1).norm(2, 1) - 1).pow(2).mean();
}

torch::Tensor Trainer::r1(const torch::Tensor &real) {
  const auto x = real.to(options_.device).detach().requires_grad_(true);
  const auto scores = networks_.discriminator->forward(x);
  const auto gradient = torch::autograd::grad({scores.sum()}, {x}, {}, true, true)[0];
  return 0.5 * options_.penalty * gradient.flatten(1).pow(2).sum(1).mean();
}

double Trainer::classStep(const torch::Tensor &images, const torch::Tensor &labels) {
  discriminatorOptimizer_->zero_grad();
  const auto logits = networks_.discriminator->classify(images.to(options_.device));
  const auto target = labels.to(torch::kLong);
  const auto loss = F::cross_entropy(logits, target, F::CrossEntropyFuncOptions().label_smoothing(0.1)); // [[device-loss-input]]
  loss.backward();
  discriminatorOptimizer_->step();
  return loss.item<double>();
}

torch::Tensor Trainer::sample(int64_t count) {
  torch::NoGradGuard noGrad;
  networks_.generator->eval();
  auto images = networks_.generator->truncated(torch::randn({count, options_.network.latent}), classes(count), 0.7);
  networks_.generator->train();
  return images.cpu();
}

torch::Tensor Trainer::sampleAverage(int64_t count) {
  torch::NoGradGuard noGrad;
  networks_.average->eval();
  const auto scale = torch::full({count, 1}, 0.8, torch::TensorOptions().device(options_.device));
  return networks_.average->truncated(latents(count) * scale, classes(count), 1.0);
}

torch::Tensor Trainer::interpolate(const torch::Tensor &from, const torch::Tensor &to, int64_t steps) {
  torch::NoGradGuard noGrad;
  const auto a = from.to(options_.device), b = to.to(options_.device);
  const auto t = torch::linspace(0, 1, steps).unsqueeze(1);
  const auto path = torch::lerp(a.expand({steps, -1}), b.expand({steps, -1}), t.expand({steps, a.size(-1)})); // [[device-mixed-op]]
  return networks_.generator->forward(path, classes(steps));
}

std::vector<uint8_t> Trainer::render(int64_t count) {
  const auto pixels = sample(count).add(1).mul(127.5).clamp(0, 255).to(torch::kUInt8).permute({0, 2, 3, 1}).contiguous();
  const auto *first = pixels.data_ptr<uint8_t>();
  return {first, first + pixels.numel()};
}

std::vector<uint8_t> Trainer::renderRaw(int64_t count) {
  torch::NoGradGuard noGrad;
  const auto images = networks_.generator->forward(latents(count), classes(count));
  const auto pixels = images.add(1).mul(127.5).clamp(0, 255).to(torch::kUInt8).contiguous();
  std::vector<uint8_t> bytes(static_cast<size_t>(pixels.numel()));
  std::memcpy(bytes.data(), pixels.data_ptr(), bytes.size()); // [[device-host-access]]
  return bytes;
}

torch::Tensor Trainer::poolStatistics(const torch::Tensor &images) {
  const auto shown = pool_.exchange(images.to(options_.device));
  const auto mean = shown.mean({0, 2, 3}), old = pool_.all().mean({0, 2, 3});
  return (mean - old).abs(); // [[device-mixed-op]]
}

double Trainer::realism(const torch::Tensor &images) {
  torch::NoGradGuard noGrad;
  return torch::sigmoid(networks_.discriminator->forward(pool_.mixedWith(images.to(options_.device)))).mean().item<double>();
}

void Trainer::updateAverage() {
  torch::NoGradGuard noGrad;
  const auto source = networks_.generator->named_parameters();
  for (auto &target : networks_.average->named_parameters()) {
    auto &average = target.value();
    const auto &current = source[target.key()];
    average.mul_(options_.averageDecay).add_(current, 1 - options_.averageDecay); // [[device-mixed-op]]
  }
}

void Trainer::save(const std::string &file) {
  torch::save(networks_.generator, file + ".generator");
  torch::save(networks_.discriminator, file + ".discriminator");
}

void Trainer::load(const std::string &file) {
  torch::load(networks_.generator, file + ".generator", options_.device);
  torch::load(networks_.discriminator, file + ".discriminator", options_.device);
  std::cerr << "continuing from " << file << "\n";
}

torch::Tensor Trainer::fixedSamples() {
  if (!fixedLatents_.defined())
    fixedLatents_ = latents(4);
  torch::NoGradGuard noGrad;
  const auto noise = latents(fixedLatents_.size(0)) * 0.01;
  return networks_.generator->forward(fixedLatents_ + noise, classes(fixedLatents_.size(0))); // [[device-load-placement]]
}

} // namespace gan

#ifdef DT_RUN
#include "../../../cases/cases.h"

namespace {

using namespace gan;

const torch::Device gpu(torch::kCUDA, 3);
Trainer trainer(LossKind kind = LossKind::Logistic) {
  TrainerOptions options;
  options.device = gpu;
  options.loss = kind;
  return Trainer(options);
}
auto images = [] { return torch::rand({5, 3, 8, 8}); };
auto labels = [] { return torch::randint(3, {5}, torch::kLong); };

void step_ok() { trainer().step(images(), labels()); }
void least_squares_bad() { trainer(LossKind::LeastSquares).generatorStep(3); }
void discriminator_step_ok() { trainer(LossKind::Hinge).discriminatorStep(images(), labels()); }
void generator_step_ok() { trainer().generatorStep(3); }
void gradient_penalty_bad() { trainer().gradientPenalty(images(), images()); }
void r1_ok() { trainer().r1(images()); }
void class_step_bad() { trainer().classStep(images(), labels()); }
void sample_ok() { trainer().sample(3); }
void sample_average_ok() { trainer().sampleAverage(3); }
void interpolate_bad() { trainer().interpolate(torch::rand({1, 8}), torch::rand({1, 8}), 4); }
void blur_bad() { trainer().blurScore(images()); }
void render_ok() { trainer().render(2); }
void render_raw_bad() { trainer().renderRaw(2); }
void pool_statistics_bad() { trainer().poolStatistics(images()); }
void realism_ok() { trainer().realism(images()); }
void update_average_bad() { trainer().updateAverage(); }
void save_load_ok() {
  auto t = trainer();
  t.save("gan");
  t.load("gan");
  t.sample(2);
}
void fixed_samples_bad() {
  torch::save(torch::rand({4, 8}), "latents.pt");
  auto t = trainer();
  t.loadLatents("latents.pt");
  t.fixedSamples();
}
void fixed_samples_fresh_ok() { trainer().fixedSamples(); }
void track_latents_ok() {
  auto n = makeNetworks(NetworkConfig(), gpu);
  n.generator->trackLatents(torch::rand({3, 8}));
}
void pool_ok() {
  ImagePool pool(2, torch::kCPU);
  pool.exchange(torch::rand({5, 3, 8, 8}, gpu));
  pool.mixedWith(torch::rand({5, 3, 8, 8}, gpu));
}

} // namespace

DT_MAIN(step_ok, least_squares_bad, discriminator_step_ok, generator_step_ok, gradient_penalty_bad, r1_ok, class_step_bad,
        sample_ok, sample_average_ok, interpolate_bad, blur_bad, render_ok, render_raw_bad, pool_statistics_bad,
        realism_ok, update_average_bad, save_load_ok, fixed_samples_bad, fixed_samples_fresh_ok, track_latents_ok, pool_ok)
#endif
