// GAN steps, checkpoint loops, evaluation metrics.
#include "../cases.h"
#include <torch/torch.h>

#include <utility>
#include <vector>

struct GeneratorImpl : torch::nn::Module {
  explicit GeneratorImpl(int64_t z) : fc(register_module("fc", torch::nn::Linear(z, 6))) {}
  torch::Tensor forward(const torch::Tensor &noise) { return torch::tanh(fc(noise)); }
  torch::nn::Linear fc;
};
TORCH_MODULE(Generator);

static torch::nn::Sequential makeDiscriminator() {
  return torch::nn::Sequential(torch::nn::Linear(6, 1), torch::nn::Sigmoid());
}

static void gan_real_labels_on_host_bad() {
  const bool cuda = torch::cuda::is_available();
  torch::Device device = cuda ? torch::Device(torch::kCUDA) : torch::Device(torch::kCPU);
  auto d = makeDiscriminator();
  d->to(device);
  auto real_images = torch::rand({4, 6}).to(device);
  auto real_labels = torch::empty({4, 1}).uniform_(0.8, 1.0);
  auto real_output = d->forward(real_images);
  auto d_loss_real = torch::binary_cross_entropy(real_output, real_labels); // [[device-loss-input]]
  d_loss_real.backward();
}

static void gan_real_labels_on_device_ok() {
  const bool cuda = torch::cuda::is_available();
  torch::Device device = cuda ? torch::Device(torch::kCUDA) : torch::Device(torch::kCPU);
  auto d = makeDiscriminator();
  d->to(device);
  auto real_images = torch::rand({4, 6}).to(device);
  auto real_labels = torch::empty({4, 1}, device).uniform_(0.8, 1.0);
  auto real_output = d->forward(real_images);
  auto d_loss_real = torch::binary_cross_entropy(real_output, real_labels);
  d_loss_real.backward();
}

static void gan_full_step_ok() {
  torch::Device device(torch::kCUDA);
  Generator g(2);
  auto d = makeDiscriminator();
  g->to(device);
  d->to(device);
  torch::optim::Adam gOpt(g->parameters(), 2e-4), dOpt(d->parameters(), 2e-4);
  auto real = torch::rand({4, 6}).to(device);
  auto noise = torch::randn({4, 2}, device);
  auto fake = g(noise);
  dOpt.zero_grad();
  auto realOut = d->forward(real);
  auto lossReal = torch::binary_cross_entropy(realOut, torch::ones_like(realOut));
  auto fakeOut = d->forward(fake.detach());
  auto lossFake = torch::binary_cross_entropy(fakeOut, torch::zeros(fakeOut.sizes(), device));
  (lossReal + lossFake).backward();
  dOpt.step();
  gOpt.zero_grad();
  auto fool = d->forward(fake);
  torch::binary_cross_entropy(fool, torch::ones_like(fool)).backward();
  gOpt.step();
}

struct NoisyGeneratorImpl : torch::nn::Module {
  explicit NoisyGeneratorImpl(int64_t z) : fc(register_module("fc", torch::nn::Linear(z, 6))) {}
  torch::Tensor forward(const torch::Tensor &noise) {
    return torch::tanh(fc->forward(noise)); // [[device-mixed-op]]
  }
  torch::nn::Linear fc;
};
TORCH_MODULE(NoisyGenerator);

static void gan_sampling_noise_on_host_bad() {
  NoisyGenerator g(2);
  g->to(torch::kCUDA);
  g->eval();
  torch::NoGradGuard off;
  auto samples = g->forward(torch::randn({10, 2}));
  TORCH_CHECK(samples.defined());
}

// Metrics are collected on the host, which is right as long as both sides are there.
static void accuracy_on_host_ok() {
  torch::nn::Linear net(3, 2);
  net->to(torch::kCUDA);
  auto targets = torch::zeros({5}, torch::kLong);
  auto predicted = net(torch::rand({5, 3}, torch::kCUDA)).argmax(1).cpu();
  auto correct = (predicted == targets).sum().item<int64_t>();
  TORCH_CHECK(correct <= 5);
}

static void accuracy_mixed_bad() {
  torch::nn::Linear net(3, 2);
  net->to(torch::kCUDA);
  auto targets = torch::zeros({5}, torch::kLong);
  auto predicted = net(torch::rand({5, 3}, torch::kCUDA)).argmax(1);
  auto correct = (predicted == targets).sum().item<int64_t>(); // [[device-mixed-op]]
  TORCH_CHECK(correct <= 5);
}

static void confusion_matrix_on_host_bad() {
  auto confusion = torch::zeros({2, 2}, torch::kLong);
  auto predicted = torch::randint(2, {6}, torch::dtype(torch::kLong).device(torch::kCUDA));
  auto targets = torch::randint(2, {6}, torch::dtype(torch::kLong).device(torch::kCUDA));
  auto flat = targets * 2 + predicted;
  confusion += torch::bincount(flat, {}, 4).view({2, 2}); // [[device-mixed-op]]
}

static void confusion_matrix_brought_home_ok() {
  auto confusion = torch::zeros({2, 2}, torch::kLong);
  auto predicted = torch::randint(2, {6}, torch::dtype(torch::kLong).device(torch::kCUDA));
  auto targets = torch::randint(2, {6}, torch::dtype(torch::kLong).device(torch::kCUDA));
  auto flat = targets * 2 + predicted;
  confusion += torch::bincount(flat, {}, 4).view({2, 2}).cpu();
}

static void predictions_collected_over_batches_bad() {
  std::vector<torch::Tensor> outputs, references;
  for (int i = 0; i < 3; ++i) {
    outputs.push_back(torch::rand({2}, torch::kCUDA));
    references.push_back(torch::rand({2}));
  }
  auto mae = (torch::cat(outputs) - torch::cat(references)).abs().mean(); // [[device-mixed-op]]
  TORCH_CHECK(mae.defined());
}

static void predictions_collected_over_batches_ok() {
  std::vector<torch::Tensor> outputs, references;
  for (int i = 0; i < 3; ++i) {
    outputs.push_back(torch::rand({2}, torch::kCUDA).cpu());
    references.push_back(torch::rand({2}));
  }
  auto mae = (torch::cat(outputs) - torch::cat(references)).abs().mean();
  TORCH_CHECK(mae.defined());
}

DT_MAIN(gan_real_labels_on_host_bad, gan_real_labels_on_device_ok, gan_full_step_ok,
        gan_sampling_noise_on_host_bad, accuracy_on_host_ok, accuracy_mixed_bad,
        confusion_matrix_on_host_bad, confusion_matrix_brought_home_ok,
        predictions_collected_over_batches_bad, predictions_collected_over_batches_ok)
