#include "../cases.h"
#include <torch/torch.h>
#include <algorithm>
#include <chrono>
#include <fstream>
#include <iostream>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>
namespace nn = torch::nn;

// ---------------------------- datasets and loaders -----------------------------------------------------
class Synthetic : public torch::data::Dataset<Synthetic> {
 public:
  explicit Synthetic(size_t n, torch::Device where = torch::kCPU)
      : x_(torch::randn({static_cast<int64_t>(n), 4}).to(where)),
        y_(torch::randint(0, 3, {static_cast<int64_t>(n)}, torch::kLong).to(where)) {}
  torch::data::Example<> get(size_t i) override { return {x_[i], y_[i]}; }
  torch::optional<size_t> size() const override { return x_.size(0); }

 private:
  torch::Tensor x_, y_;
};

struct NetImpl : nn::Module {
  NetImpl() : fc(register_module("fc", nn::Linear(4, 3))) {}
  torch::Tensor forward(const torch::Tensor& x) {
    return torch::log_softmax(fc->forward(x), 1); // [[device-mixed-op]]
  }
  nn::Linear fc;
};
TORCH_MODULE(Net);

template <typename Loader>
static double evaluateBroken(Net& net, Loader& loader, torch::Device device) {
  net->eval();
  torch::NoGradGuard no_grad;
  double loss = 0;
  int64_t correct = 0;
  for (const auto& batch : loader) {
    auto data = batch.data.to(device), targets = batch.target;
    auto output = net->forward(data);
    loss += torch::nll_loss(output, targets, {}, torch::Reduction::Sum).template item<float>(); // [[device-loss-input]]
    correct += output.argmax(1).eq(targets).sum().template item<int64_t>();
  }
  return loss + correct;
}
template <typename Loader>
static double evaluate(Net& net, Loader& loader, torch::Device device) {
  net->eval();
  torch::NoGradGuard no_grad;
  double loss = 0;
  int64_t correct = 0;
  for (const auto& batch : loader) {
    auto data = batch.data.to(device), targets = batch.target.to(device);
    auto output = net->forward(data);
    loss += torch::nll_loss(output, targets, {}, torch::Reduction::Sum).template item<float>();
    auto pred = output.argmax(1);
    correct += pred.eq(targets).sum().template item<int64_t>();
  }
  return loss + correct;
}
static auto makeLoader(torch::Device where = torch::kCPU) {
  return torch::data::make_data_loader<torch::data::samplers::SequentialSampler>(
      Synthetic(6, where).map(torch::data::transforms::Stack<>()), torch::data::DataLoaderOptions().batch_size(3));
}
void eval_targets_bad() {
  Net net;
  torch::DeviceType type = torch::kCPU;
  if (torch::cuda::is_available()) {
    std::cout << "CUDA available! Training on GPU." << std::endl;
    type = torch::kCUDA;
  }
  torch::Device device(type);
  net->to(device);
  auto loader = makeLoader();
  evaluateBroken(net, *loader, device);
}
void eval_targets_ok() {
  Net net;
  torch::DeviceType type = torch::kCPU;
  if (torch::cuda::is_available()) {
    std::cout << "CUDA available! Training on GPU." << std::endl;
    type = torch::kCUDA;
  }
  torch::Device device(type);
  net->to(device);
  auto loader = makeLoader();
  evaluate(net, *loader, device);
}
void eval_cuda_dataset_ok() {
  Net net;
  net->to(torch::kCUDA);
  auto loader = makeLoader(torch::kCUDA);
  for (auto& batch : *loader) torch::nll_loss(net(batch.data), batch.target);
}
void eval_forgot_data_bad() {
  Net net;
  net->to(torch::kCUDA);
  auto loader = makeLoader();
  for (auto& batch : *loader) torch::nll_loss(net(batch.data), batch.target);
}

// running accuracy kept as tensors
struct Meter {
  torch::Tensor sum = torch::zeros({1});
  int64_t n = 0;
  void add(const torch::Tensor& v) {
    sum += v; // [[device-mixed-op]]
    ++n;
  }
  void addItem(const torch::Tensor& v) {
    sum += v.item<float>();
    ++n;
  }
};
void meter_bad() {
  nn::Linear l(2, 2);
  l->to(torch::kCUDA);
  Meter m;
  for (int i = 0; i < 2; ++i) m.add(l(torch::ones({1, 2}, torch::kCUDA)).mean());
}
void meter_ok() {
  nn::Linear l(2, 2);
  l->to(torch::kCUDA);
  Meter m;
  for (int i = 0; i < 2; ++i) m.addItem(l(torch::ones({1, 2}, torch::kCUDA)).mean());
}

// predictions collected over batches then compared to all labels
void collect_predictions_bad() {
  Net net;
  net->to(torch::kCUDA);
  std::vector<torch::Tensor> preds, labels;
  for (int i = 0; i < 2; ++i) {
    preds.push_back(net(torch::randn({2, 4}, torch::kCUDA)).argmax(1));
    labels.push_back(torch::randint(0, 3, {2}, torch::kLong));
  }
  auto acc = (torch::cat(preds) == torch::cat(labels)).to(torch::kFloat).mean(); // [[device-mixed-op]]
  std::cout << acc.item<float>();
}
void collect_predictions_ok() {
  Net net;
  net->to(torch::kCUDA);
  std::vector<torch::Tensor> preds, labels;
  for (int i = 0; i < 2; ++i) {
    preds.push_back(net(torch::randn({2, 4}, torch::kCUDA)).argmax(1).cpu());
    labels.push_back(torch::randint(0, 3, {2}, torch::kLong));
  }
  auto acc = (torch::cat(preds) == torch::cat(labels)).to(torch::kFloat).mean();
  std::cout << acc.item<float>();
}

// --------------------------------------- EMA / mean teacher ------------------------------------------
class Ema {
 public:
  Ema(const nn::Module& m, double decay) : decay_(decay) {
    for (const auto& p : m.named_parameters()) shadow_.insert(p.key(), p.value().detach().clone());
  }
  void update(const nn::Module& m) {
    torch::NoGradGuard g;
    for (const auto& p : m.named_parameters()) {
      auto& s = shadow_[p.key()];
      s.mul_(decay_).add_(p.value(), 1 - decay_); // [[device-mixed-op]]
    }
  }

 private:
  double decay_;
  torch::OrderedDict<std::string, torch::Tensor> shadow_;
};
void ema_order_bad() {
  Net net;
  Ema ema(*net, 0.9);
  net->to(torch::kCUDA);
  ema.update(*net);
}
void ema_order_ok() {
  Net net;
  net->to(torch::kCUDA);
  Ema ema(*net, 0.9);
  ema.update(*net);
}
class EmaVector {
 public:
  explicit EmaVector(std::vector<torch::Tensor> params) {
    for (auto& p : params) shadow_.push_back(p.detach().clone().cpu());
  }
  void updateBroken(const std::vector<torch::Tensor>& params) {
    torch::NoGradGuard g;
    for (size_t i = 0; i < params.size(); ++i) shadow_[i].lerp_(params[i], 0.01); // [[device-mixed-op]]
  }
  void update(const std::vector<torch::Tensor>& params) {
    torch::NoGradGuard g;
    for (size_t i = 0; i < params.size(); ++i) shadow_[i].lerp_(params[i].to(shadow_[i].device()), 0.01);
  }
  void copyTo(std::vector<torch::Tensor> params) {
    torch::NoGradGuard g;
    for (size_t i = 0; i < params.size(); ++i) params[i].copy_(shadow_[i]);
  }

 private:
  std::vector<torch::Tensor> shadow_;
};
void ema_vector_bad() {
  Net net;
  net->to(torch::kCUDA);
  EmaVector e(net->parameters());
  e.updateBroken(net->parameters());
}
void ema_vector_ok() {
  Net net;
  net->to(torch::kCUDA);
  EmaVector e(net->parameters());
  e.update(net->parameters());
  e.copyTo(net->parameters());
}

// distillation through a cloned teacher
void distill_bad() {
  Net student, teacher;
  torch::Device dev(torch::kCUDA);
  student->to(dev);
  auto x = torch::randn({2, 4});
  torch::Tensor soft;
  {
    torch::NoGradGuard g;
    soft = teacher(x).exp();
  }
  auto out = student(x.to(dev));
  torch::kl_div(out, soft, torch::Reduction::Mean).backward(); // [[device-loss-input]]
}
void distill_ok() {
  Net student, teacher;
  torch::Device dev(torch::kCUDA);
  student->to(dev);
  auto x = torch::randn({2, 4});
  torch::Tensor soft;
  {
    torch::NoGradGuard g;
    soft = teacher(x).exp().to(dev);
  }
  auto out = student(x.to(dev));
  torch::kl_div(out, soft, torch::Reduction::Mean).backward();
}
void clone_device_ok() {
  Net student;
  student->to(torch::kCUDA);
  auto teacher = std::dynamic_pointer_cast<NetImpl>(student->fc->clone()) ? student : student;
  auto out = teacher(torch::randn({2, 4}, torch::kCUDA));
  (void)out;
}

// ------------------------------------- checkpoints ---------------------------------------------------
void checkpoint_resume_ok() {
  Net net;
  net->to(torch::kCUDA);
  std::stringstream ss;
  torch::save(net, ss);
  Net again;
  torch::load(again, ss);
  auto out = again(torch::randn({2, 4}, torch::kCUDA));
  (void)out;
}
void checkpoint_device_bad() {
  Net net;
  std::stringstream ss;
  torch::save(net, ss);
  Net again;
  torch::load(again, ss, torch::Device(torch::kCUDA, 1));
  auto x = torch::randn({2, 4}, torch::Device(torch::kCUDA, 1));
  auto y = torch::randint(0, 3, {2}, torch::kLong);
  torch::nll_loss(again(x), y).backward(); // [[device-loss-input]]
}
void checkpoint_device_ok() {
  Net net;
  std::stringstream ss;
  torch::save(net, ss);
  Net again;
  torch::load(again, ss, torch::Device(torch::kCUDA, 1));
  auto x = torch::randn({2, 4}, torch::Device(torch::kCUDA, 1));
  auto y = torch::randint(0, 3, {2}, torch::kLong).to(again->fc->weight.device());
  torch::nll_loss(again(x), y).backward();
}
void tensor_load_ok() {
  std::stringstream ss;
  torch::save(torch::ones({2}, torch::kCUDA), ss);
  torch::Tensor stats;
  torch::load(stats, ss);
  auto y = torch::ones({2}, torch::kCUDA) * stats;
  (void)y;
}

DT_MAIN(eval_targets_bad, eval_targets_ok, eval_cuda_dataset_ok, eval_forgot_data_bad, meter_bad, meter_ok,
        collect_predictions_bad, collect_predictions_ok, ema_order_bad, ema_order_ok, ema_vector_bad,
        ema_vector_ok, distill_bad, distill_ok, clone_device_ok, checkpoint_resume_ok,
        checkpoint_device_bad, checkpoint_device_ok, tensor_load_ok)
