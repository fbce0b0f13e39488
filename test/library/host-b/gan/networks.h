#pragma once

#include <torch/torch.h>

#include <deque>
#include <memory>
#include <random>
#include <string>

namespace gan {

struct NetworkConfig {
  int64_t latent = 8;
  int64_t channels = 4;
  int64_t classes = 3;
  bool conditional = true;
};

class GeneratorImpl : public torch::nn::Cloneable<GeneratorImpl> {
public:
  explicit GeneratorImpl(NetworkConfig config) : config_(config) { reset(); }
  void reset() override;
  torch::Tensor forward(const torch::Tensor &latent, const torch::Tensor &labels);
  torch::Tensor truncated(const torch::Tensor &latent, const torch::Tensor &labels, double psi);
  void trackLatents(const torch::Tensor &latent);

private:
  NetworkConfig config_;
  torch::nn::Embedding condition_{nullptr};
  torch::nn::ConvTranspose2d up_{nullptr}, last_{nullptr};
  torch::nn::BatchNorm2d norm_{nullptr};
  torch::Tensor center_;
};
TORCH_MODULE(Generator);

class DiscriminatorImpl : public torch::nn::Module {
public:
  explicit DiscriminatorImpl(NetworkConfig config);
  torch::Tensor forward(const torch::Tensor &image);
  torch::Tensor classify(const torch::Tensor &image);
  torch::Tensor blurred(const torch::Tensor &image);

private:
  torch::Tensor features(const torch::Tensor &image);
  torch::nn::Conv2d first_{nullptr}, second_{nullptr};
  torch::nn::Linear real_{nullptr}, class_{nullptr};
  torch::Tensor blur_;
};
TORCH_MODULE(Discriminator);

struct Networks {
  Generator generator{nullptr};
  Generator average{nullptr};
  Discriminator discriminator{nullptr};
};

// The average starts as a copy of the generator.
Networks makeNetworks(const NetworkConfig &config, torch::Device device);

// Earlier fakes, shown to the discriminator again.
class ImagePool {
public:
  ImagePool(size_t capacity, torch::Device storage) : capacity_(capacity), storage_(storage) {}
  torch::Tensor exchange(const torch::Tensor &images);
  torch::Tensor all() const;
  torch::Tensor mixedWith(const torch::Tensor &images) const;
  size_t size() const { return images_.size(); }

private:
  size_t capacity_;
  torch::Device storage_;
  std::deque<torch::Tensor> images_;
  std::mt19937 random_{7};
};

} // namespace gan
