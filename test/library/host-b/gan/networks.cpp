#include "networks.h"

namespace F = torch::nn::functional;

namespace gan {

void GeneratorImpl::reset() {
  condition_ = register_module("condition", torch::nn::Embedding(config_.classes, config_.latent));
  up_ = register_module("up", torch::nn::ConvTranspose2d(torch::nn::ConvTranspose2dOptions(config_.latent, config_.channels, 4)));
  norm_ = register_module("norm", torch::nn::BatchNorm2d(config_.channels));
  last_ = register_module("last", torch::nn::ConvTranspose2d(
                                      torch::nn::ConvTranspose2dOptions(config_.channels, 3, 4).stride(2).padding(1)));
  center_ = register_buffer("center", torch::zeros({config_.latent}));
}

torch::Tensor GeneratorImpl::forward(const torch::Tensor &latent, const torch::Tensor &labels) {
  auto x = latent;
  if (config_.conditional)
    x = x + condition_->forward(labels);
  x = up_->forward(x.unsqueeze(-1).unsqueeze(-1));
  return torch::tanh(last_->forward(torch::relu(norm_->forward(x))));
}

torch::Tensor GeneratorImpl::truncated(const torch::Tensor &latent, const torch::Tensor &labels, double psi) {
  const auto pulled = center_ + psi * (latent.to(center_.device()) - center_);
  return forward(pulled, labels.to(center_.device()));
}

void GeneratorImpl::trackLatents(const torch::Tensor &latent) {
  torch::NoGradGuard noGrad;
  center_.lerp_(latent.mean(0).to(center_.device()), 0.01);
}

DiscriminatorImpl::DiscriminatorImpl(NetworkConfig config) {
  first_ = register_module("first", torch::nn::Conv2d(torch::nn::Conv2dOptions(3, config.channels, 4).stride(2).padding(1)));
  second_ = register_module("second", torch::nn::Conv2d(torch::nn::Conv2dOptions(config.channels, config.channels, 4)));
  real_ = register_module("real", torch::nn::Linear(config.channels, 1));
  class_ = register_module("category", torch::nn::Linear(config.channels, config.classes));
  const auto row = torch::tensor({1.0f, 2.0f, 1.0f});
  blur_ = (row.unsqueeze(0) * row.unsqueeze(1) / 16.0).expand({3, 1, 3, 3}).contiguous();
}

torch::Tensor DiscriminatorImpl::features(const torch::Tensor &image) {
  const auto x = torch::leaky_relu(first_->forward(image), 0.2);
  return torch::leaky_relu(second_->forward(x), 0.2).flatten(1);
}

torch::Tensor DiscriminatorImpl::forward(const torch::Tensor &image) { return real_->forward(features(image)).squeeze(1); }

torch::Tensor DiscriminatorImpl::classify(const torch::Tensor &image) { return class_->forward(features(image)); }

torch::Tensor DiscriminatorImpl::blurred(const torch::Tensor &image) {
  const auto input = image.to(real_->weight.device());
  const auto smooth = F::conv2d(input, blur_, F::Conv2dFuncOptions().padding(1).groups(3)); // [[device-unregistered-tensor]]
  return forward(smooth);
}

Networks makeNetworks(const NetworkConfig &config, torch::Device device) {
  Networks networks;
  networks.generator = Generator(config);
  networks.average = Generator(std::dynamic_pointer_cast<GeneratorImpl>(networks.generator->clone()));
  networks.discriminator = Discriminator(config);
  networks.generator->to(device);
  networks.discriminator->to(device);
  for (auto &parameter : networks.average->parameters())
    parameter.set_requires_grad(false);
  return networks;
}

torch::Tensor ImagePool::exchange(const torch::Tensor &images) {
  if (capacity_ == 0)
    return images;
  std::vector<torch::Tensor> shown;
  for (const auto &image : images.detach().unbind(0)) {
    if (images_.size() < capacity_) {
      images_.push_back(image.to(storage_));
      shown.push_back(image);
    } else if (std::uniform_real_distribution<double>()(random_) < 0.5) {
      auto &slot = images_[random_() % images_.size()];
      shown.push_back(slot.to(image.device()));
      slot = image.to(storage_);
    } else {
      shown.push_back(image);
    }
  }
  return torch::stack(shown);
}

torch::Tensor ImagePool::all() const {
  TORCH_CHECK(!images_.empty(), "the pool is empty");
  return torch::stack(std::vector<torch::Tensor>(images_.begin(), images_.end()));
}

torch::Tensor ImagePool::mixedWith(const torch::Tensor &images) const {
  if (images_.empty())
    return images;
  const auto old = all().slice(0, 0, images.size(0));
  return torch::cat({images.slice(0, 0, 1), old.to(images.device())});
}

} // namespace gan
