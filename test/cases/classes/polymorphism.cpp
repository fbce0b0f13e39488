// Virtual calls, inheritance, constructors, default member initialisers, move-only owners.
#include "../cases.h"
#include <torch/torch.h>

#include <memory>
#include <utility>

// --- virtual calls -------------------------------------------------------------------------------------
class NoiseSource {
public:
  virtual ~NoiseSource() = default;
  virtual torch::Tensor sample(at::IntArrayRef shape) const = 0;
};

class HostNoise : public NoiseSource {
public:
  torch::Tensor sample(at::IntArrayRef shape) const override { return torch::randn(shape); }
};

class CudaNoise : public NoiseSource {
public:
  torch::Tensor sample(at::IntArrayRef shape) const override { return torch::randn(shape, torch::kCUDA); }
};

static void virtual_source_on_host_bad() {
  std::unique_ptr<NoiseSource> source = std::make_unique<HostNoise>();
  auto x = torch::rand({3}, torch::kCUDA);
  x = x + source->sample({3}); // [[device-mixed-op]]
}

static void virtual_source_on_device_ok() {
  std::unique_ptr<NoiseSource> source = std::make_unique<CudaNoise>();
  auto x = torch::rand({3}, torch::kCUDA);
  x = x + source->sample({3});
}

// --- a base class that registers for its children ------------------------------------------------------
struct PolicyBase : torch::nn::Module {
  explicit PolicyBase(int64_t n) {
    body = register_module("body", torch::nn::Linear(n, n));
    offset = register_buffer("offset", torch::zeros({n}));
  }
  virtual torch::Tensor head(const torch::Tensor &h) = 0;
  torch::Tensor forward(const torch::Tensor &x) { return head(body(x) + offset); }
  torch::nn::Linear body{nullptr};
  torch::Tensor offset;
};

struct ScaledPolicy : PolicyBase {
  ScaledPolicy() : PolicyBase(3), scale(register_parameter("scale", torch::ones({3}))) {}
  torch::Tensor head(const torch::Tensor &h) override { return h * scale; }
  torch::Tensor scale;
};

struct BoundedPolicy : PolicyBase {
  BoundedPolicy() : PolicyBase(3) {
    bound = torch::full({3}, 2.0);
  }
  torch::Tensor head(const torch::Tensor &h) override { return torch::tanh(h) * bound; } // [[device-unregistered-tensor]]
  torch::Tensor bound;
};

static void derived_registers_its_parameter_ok() {
  auto policy = std::make_shared<ScaledPolicy>();
  policy->to(torch::kCUDA);
  policy->forward(torch::rand({1, 3}, torch::kCUDA));
}

static void derived_forgets_its_tensor_bad() {
  auto policy = std::make_shared<BoundedPolicy>();
  policy->to(torch::kCUDA);
  policy->forward(torch::rand({1, 3}, torch::kCUDA));
}

// --- constructors --------------------------------------------------------------------------------------
class Normaliser {
public:
  Normaliser() = default;
  explicit Normaliser(torch::Device device)
      : device_(device), mean_(torch::zeros({3}, device)), std_(torch::ones({3})) {}
  torch::Tensor operator()(const torch::Tensor &x) const {
    return (x.to(device_) - mean_) / std_; // [[device-mixed-op]]
  }

private:
  torch::Device device_ = torch::kCPU;
  torch::Tensor mean_ = torch::zeros({3});
  torch::Tensor std_ = torch::ones({3});
};

static void initialiser_list_misses_one_bad() {
  Normaliser n(torch::kCUDA);
  n(torch::rand({2, 3}));
}

class DefaultNormaliser {
public:
  DefaultNormaliser() = default;
  explicit DefaultNormaliser(torch::Device device)
      : device_(device), mean_(torch::zeros({3}, device)), std_(torch::ones({3}, device)) {}
  torch::Tensor operator()(const torch::Tensor &x) const { return (x.to(device_) - mean_) / std_; }

private:
  torch::Device device_ = torch::kCPU;
  torch::Tensor mean_ = torch::zeros({3});
  torch::Tensor std_ = torch::ones({3});
};

static void both_constructors_consistent_ok() {
  DefaultNormaliser onCpu;
  onCpu(torch::rand({2, 3}));
  DefaultNormaliser onGpu(torch::kCUDA);
  onGpu(torch::rand({2, 3}));
}

// A delegating constructor; the default member initialiser of device_ is used by one path.
class ReplayCursor {
public:
  ReplayCursor() : ReplayCursor(torch::kCUDA) {}
  explicit ReplayCursor(torch::Device d) : device_(d), weights_(torch::ones({4}, device_)) {}
  torch::Tensor weigh(const torch::Tensor &errors) { return errors.to(device_) * weights_; }

private:
  torch::Device device_;
  torch::Tensor weights_;
};

static void delegating_constructor_ok() {
  ReplayCursor cursor;
  cursor.weigh(torch::rand({4}));
}

// --- a factory that forgets to move what it made ---------------------------------------------------------
struct Model {
  Model(torch::nn::Linear l, torch::Device d) : net(std::move(l)), device(d) {}
  torch::Tensor infer(const torch::Tensor &x) {
    return net->forward(x.to(device)); // [[device-mixed-op]]
  }
  torch::nn::Linear net;
  torch::Device device;
};

static std::unique_ptr<Model> makeModel(torch::Device d) {
  return std::make_unique<Model>(torch::nn::Linear(3, 1), d);
}

static void factory_forgets_the_move_bad() {
  auto model = makeModel(torch::kCUDA);
  model->infer(torch::rand({1, 3}));
}

struct PlacedModel {
  PlacedModel(torch::nn::Linear l, torch::Device d) : net(std::move(l)), device(d) { net->to(device); }
  torch::Tensor infer(const torch::Tensor &x) { return net->forward(x.to(device)); }
  torch::nn::Linear net;
  torch::Device device;
};

static void constructor_moves_the_model_ok() {
  auto model = std::make_unique<PlacedModel>(torch::nn::Linear(3, 1), torch::kCUDA);
  model->infer(torch::rand({1, 3}));
}

DT_MAIN(virtual_source_on_host_bad, virtual_source_on_device_ok, derived_registers_its_parameter_ok,
        derived_forgets_its_tensor_bad, initialiser_list_misses_one_bad, both_constructors_consistent_ok,
        delegating_constructor_ok, factory_forgets_the_move_bad, constructor_moves_the_model_ok)
