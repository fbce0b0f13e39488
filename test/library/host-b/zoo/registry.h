#pragma once

#include <torch/torch.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace zoo {

struct Spec {
  std::string name;
  int64_t inputs = 8;
  int64_t width = 16;
  int64_t outputs = 4;
  int64_t depth = 2;
  double dropout = 0.0;
};

class Model : public torch::nn::Module {
public:
  ~Model() override = default;
  virtual torch::Tensor forward(const torch::Tensor &x) = 0;
  virtual torch::Tensor embed(const torch::Tensor &x) { return forward(x); }
};

using Builder = std::function<std::shared_ptr<Model>(const Spec &)>;

class Registry {
public:
  static Registry &instance();
  void add(const std::string &name, Builder builder) { builders_[name] = std::move(builder); }
  std::shared_ptr<Model> build(const Spec &spec) const;
  std::vector<std::string> names() const;

private:
  std::map<std::string, Builder> builders_;
};

struct Registration {
  Registration(const std::string &name, Builder builder) { Registry::instance().add(name, std::move(builder)); }
};

std::shared_ptr<Model> create(const Spec &spec);
std::shared_ptr<Model> createOn(const Spec &spec, torch::Device device);
torch::nn::Sequential projectionHead(int64_t inputs, int64_t outputs);
torch::nn::AnyModule activation(const std::string &name);

} // namespace zoo
