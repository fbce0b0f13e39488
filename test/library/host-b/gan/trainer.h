#pragma once

#include "networks.h"

#include <functional>
#include <map>

namespace gan {

enum class LossKind { Hinge, Logistic, LeastSquares };

class AdversarialLoss {
public:
  AdversarialLoss(LossKind kind, float smoothing) : kind_(kind), real_(torch::full({1}, 1.0f - smoothing)), fake_(torch::zeros({1})) {}
  torch::Tensor discriminator(const torch::Tensor &real, const torch::Tensor &fake) const;
  torch::Tensor generator(const torch::Tensor &fake) const;
  torch::Tensor leastSquares(const torch::Tensor &scores, bool real) const;

private:
  LossKind kind_;
  torch::Tensor real_, fake_;
};

struct TrainerOptions {
  NetworkConfig network;
  torch::Device device = torch::kCPU;
  LossKind loss = LossKind::Logistic;
  double penalty = 10.0;
  double averageDecay = 0.99;
  size_t pool = 4;
};

struct Losses {
  double discriminator = 0, generator = 0, penalty = 0;
};

class Trainer {
public:
  explicit Trainer(TrainerOptions options);

  Losses step(const torch::Tensor &images, const torch::Tensor &labels);
  double discriminatorStep(const torch::Tensor &images, const torch::Tensor &labels);
  double generatorStep(int64_t count);
  torch::Tensor gradientPenalty(const torch::Tensor &real, const torch::Tensor &fake);
  torch::Tensor r1(const torch::Tensor &real);
  double classStep(const torch::Tensor &images, const torch::Tensor &labels);

  torch::Tensor sample(int64_t count);
  torch::Tensor sampleAverage(int64_t count);
  torch::Tensor interpolate(const torch::Tensor &from, const torch::Tensor &to, int64_t steps);
  torch::Tensor blurScore(const torch::Tensor &images) { return networks_.discriminator->blurred(images); }
  std::vector<uint8_t> render(int64_t count);
  std::vector<uint8_t> renderRaw(int64_t count);
  torch::Tensor poolStatistics(const torch::Tensor &images);
  double realism(const torch::Tensor &images);
  void updateAverage();

  void save(const std::string &file);
  void load(const std::string &file);
  void loadLatents(const std::string &file) { torch::load(fixedLatents_, file); }
  torch::Tensor fixedSamples();

private:
  torch::Tensor latents(int64_t count) const {
    return torch::randn({count, options_.network.latent}, torch::TensorOptions().device(options_.device));
  }
  torch::Tensor classes(int64_t count) const {
    return torch::randint(options_.network.classes, {count}, torch::TensorOptions().dtype(torch::kLong).device(options_.device));
  }

  TrainerOptions options_;
  Networks networks_;
  AdversarialLoss loss_;
  ImagePool pool_;
  std::unique_ptr<torch::optim::Adam> generatorOptimizer_, discriminatorOptimizer_;
  torch::Tensor fixedLatents_;
};

} // namespace gan
