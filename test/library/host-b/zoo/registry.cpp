#include "registry.h"

namespace zoo {

namespace {

class Perceptron : public Model {
public:
  explicit Perceptron(const Spec &spec) {
    int64_t inputs = spec.inputs;
    for (int64_t i = 0; i < spec.depth; ++i) {
      trunk_->push_back(torch::nn::Linear(inputs, spec.width));
      trunk_->push_back(torch::nn::Functional(torch::relu));
      inputs = spec.width;
    }
    register_module("trunk", trunk_);
    head_ = register_module("head", torch::nn::Linear(inputs, spec.outputs));
  }
  torch::Tensor forward(const torch::Tensor &x) override { return head_->forward(trunk_->forward(x)); }
  torch::Tensor embed(const torch::Tensor &x) override { return trunk_->forward(x); }

private:
  torch::nn::Sequential trunk_;
  torch::nn::Linear head_{nullptr};
};

// Random Fourier features before a linear layer.
class FourierNet : public Model {
public:
  explicit FourierNet(const Spec &spec) {
    phases_ = torch::rand({spec.width}) * 2 * M_PI;
    basis_ = register_buffer("basis", torch::randn({spec.inputs, spec.width}));
    head_ = register_module("head", torch::nn::Linear(spec.width, spec.outputs));
  }
  torch::Tensor embed(const torch::Tensor &x) override {
    return torch::cos(torch::matmul(x, basis_) + phases_); // [[device-unregistered-tensor]]
  }
  torch::Tensor forward(const torch::Tensor &x) override { return head_->forward(embed(x)); }

private:
  torch::Tensor phases_, basis_;
  torch::nn::Linear head_{nullptr};
};

// Distances to learned centers.
class PrototypeNet : public Model {
public:
  explicit PrototypeNet(const Spec &spec) {
    centers_ = register_parameter("centers", torch::randn({spec.outputs, spec.inputs}));
    temperature_ = torch::tensor(2.0f);
  }
  torch::Tensor forward(const torch::Tensor &x) override { return -torch::cdist(x, centers_) / temperature_; }

private:
  torch::Tensor centers_, temperature_;
};

const Registration perceptron("perceptron", [](const Spec &spec) { return std::make_shared<Perceptron>(spec); });
const Registration fourier("fourier", [](const Spec &spec) { return std::make_shared<FourierNet>(spec); });
const Registration prototype("prototype", [](const Spec &spec) { return std::make_shared<PrototypeNet>(spec); });

} // namespace

Registry &Registry::instance() {
  static Registry registry;
  return registry;
}

std::shared_ptr<Model> Registry::build(const Spec &spec) const {
  const auto found = builders_.find(spec.name);
  TORCH_CHECK(found != builders_.end(), "no model is called '", spec.name, "'");
  return found->second(spec);
}

std::vector<std::string> Registry::names() const {
  std::vector<std::string> names;
  for (const auto &entry : builders_)
    names.push_back(entry.first);
  return names;
}

std::shared_ptr<Model> create(const Spec &spec) { return Registry::instance().build(spec); }

std::shared_ptr<Model> createOn(const Spec &spec, torch::Device device) {
  auto model = create(spec);
  model->to(device);
  return model;
}

torch::nn::Sequential projectionHead(int64_t inputs, int64_t outputs) {
  return torch::nn::Sequential(torch::nn::Linear(inputs, inputs), torch::nn::ReLU(), torch::nn::Linear(inputs, outputs));
}

torch::nn::AnyModule activation(const std::string &name) {
  if (name == "gelu")
    return torch::nn::AnyModule(torch::nn::GELU());
  if (name == "prelu")
    return torch::nn::AnyModule(torch::nn::PReLU());
  return torch::nn::AnyModule(torch::nn::ReLU());
}

} // namespace zoo
