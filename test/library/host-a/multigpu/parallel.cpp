#include "parallel.h"

#include <numeric>

namespace F = torch::nn::functional;

namespace multigpu {

Pipeline::Pipeline(Devices devices, int64_t width, int64_t classes) : devices_(std::move(devices)) {
  TORCH_CHECK(!devices_.empty(), "a pipeline needs a device");
  for (const auto &device : devices_) {
    torch::nn::Linear stage(width, width);
    stage->to(device);
    stages_.push_back(stage);
  }
  head_ = torch::nn::Linear(width, classes);
  head_->to(devices_.back());
}

torch::Tensor Pipeline::forward(torch::Tensor x) {
  for (size_t i = 0; i < stages_.size(); ++i) {
    x = x.to(devices_[i]);
    x = torch::relu(stages_[i]->forward(x));
  }
  return head_->forward(x);
}

torch::Tensor Pipeline::forwardChunks(const torch::Tensor &x, int64_t chunks) {
  std::vector<torch::Tensor> outputs;
  for (const auto &chunk : x.chunk(chunks))
    outputs.push_back(forward(chunk));
  return torch::cat(outputs);
}

torch::Tensor Pipeline::evaluate(torch::Tensor x) {
  torch::NoGradGuard noGrad;
  x = x.to(devices_.front());
  for (auto &stage : stages_)
    x = torch::relu(stage->forward(x)); // [[device-mixed-op]]
  return head_->forward(x.to(devices_.back()));
}

torch::Tensor Pipeline::loss(const torch::Tensor &x, const torch::Tensor &labels) {
  const auto target = labels.to(devices_.front(), torch::kLong);
  const auto logits = forward(x.to(devices_.front()));
  return F::cross_entropy(logits, target); // [[device-loss-input]]
}

double Pipeline::accuracy(const torch::Tensor &x, const torch::Tensor &labels) {
  torch::NoGradGuard noGrad;
  const auto predicted = forward(x).argmax(1);
  return predicted.eq(labels.to(predicted.device())).to(torch::kFloat32).mean().item<double>();
}

torch::Tensor Pipeline::skipConnected(const torch::Tensor &x) {
  const auto entry = x.to(devices_.front());
  auto value = entry;
  for (size_t i = 0; i < stages_.size(); ++i)
    value = torch::relu(stages_[i]->forward(value.to(devices_[i])));
  return head_->forward(value + entry); // [[device-mixed-op]]
}

double Pipeline::gradientNorm() {
  double sum = 0;
  for (auto &stage : stages_)
    for (const auto &parameter : stage->parameters())
      if (parameter.grad().defined())
        sum += parameter.grad().pow(2).sum().item<double>();
  return std::sqrt(sum);
}

std::vector<torch::Tensor> Pipeline::activations(const torch::Tensor &x) {
  std::vector<torch::Tensor> seen;
  auto value = x;
  for (size_t i = 0; i < stages_.size(); ++i) {
    value = stages_[i]->forward(value.to(devices_[i]));
    seen.push_back(value.detach());
  }
  return seen;
}

Replicas::Replicas(Block model, Devices devices) : model_(std::move(model)), devices_(std::move(devices)) {
  model_->to(devices_.at(0));
  replicate();
}

void Replicas::replicate() {
  replicas_.clear();
  for (const auto &device : devices_)
    replicas_.push_back(Block(std::dynamic_pointer_cast<BlockImpl>(model_->clone(device))));
}

std::vector<torch::Tensor> Replicas::forward(const torch::Tensor &batch) {
  const auto parts = scatter(batch, devices_);
  std::vector<torch::Tensor> outputs;
  for (size_t i = 0; i < parts.size(); ++i)
    outputs.push_back(replicas_[i]->forward(parts[i]));
  return outputs;
}

torch::Tensor Replicas::predict(const torch::Tensor &batch) {
  torch::NoGradGuard noGrad;
  return gather(forward(batch), devices_.at(0));
}

double Replicas::step(const torch::Tensor &batch, const torch::Tensor &targets, double learningRate) {
  const auto outputs = forward(batch);
  const auto expected = targets.chunk(static_cast<int64_t>(outputs.size()));
  std::vector<torch::Tensor> losses;
  for (size_t i = 0; i < outputs.size(); ++i)
    losses.push_back(torch::mse_loss(outputs[i], expected[i].to(devices_[i])));
  for (auto &loss : losses)
    loss.backward();
  torch::NoGradGuard noGrad;
  for (auto &replica : replicas_)
    for (auto &parameter : replica->parameters())
      parameter.sub_(parameter.grad(), learningRate);
  return gatherLosses(losses).item<double>();
}

double Replicas::epochLoss(const std::vector<std::pair<torch::Tensor, torch::Tensor>> &batches) {
  torch::NoGradGuard noGrad;
  auto total = torch::zeros({1});
  for (const auto &[input, target] : batches) {
    const auto output = predict(input);
    total += torch::mse_loss(output, target.to(output.device())); // [[device-mixed-op]]
  }
  return total.item<double>() / static_cast<double>(batches.size());
}

double Replicas::epochMean(const std::vector<std::pair<torch::Tensor, torch::Tensor>> &batches) {
  torch::NoGradGuard noGrad;
  torch::Tensor total = torch::tensor(0.0f);
  for (const auto &[input, target] : batches) {
    const auto output = predict(input);
    total = total + torch::mse_loss(output, target.to(output.device()));
  }
  return total.item<double>() / static_cast<double>(batches.size());
}

// How far the replicas have drifted apart on the same input.
double Replicas::disagreement(const torch::Tensor &batch) {
  torch::NoGradGuard noGrad;
  std::vector<torch::Tensor> outputs;
  for (size_t i = 0; i < replicas_.size(); ++i)
    outputs.push_back(replicas_[i]->forward(batch.to(devices_[i])));
  return torch::stack(outputs).std(0).mean().item<double>(); // [[device-mixed-op]]
}

double Replicas::parameterDrift() const {
  const auto reference = replicas_.at(0)->parameters();
  double largest = 0;
  for (size_t i = 1; i < replicas_.size(); ++i) {
    const auto others = replicas_[i]->parameters();
    for (size_t k = 0; k < reference.size(); ++k)
      largest = std::max(largest, (reference[k].cpu() - others[k].cpu()).abs().max().item<double>());
  }
  return largest;
}

torch::Tensor Replicas::ensemble(const torch::Tensor &batch) {
  torch::NoGradGuard noGrad;
  torch::Tensor sum;
  for (size_t i = 0; i < replicas_.size(); ++i) {
    const auto output = replicas_[i]->forward(batch.to(devices_[i])).to(devices_.back());
    sum = sum.defined() ? sum + output : output;
  }
  return sum / static_cast<double>(replicas_.size());
}

void Replicas::allReduceGradients() {
  torch::NoGradGuard noGrad;
  auto target = replicas_.at(0)->parameters();
  for (size_t i = 1; i < replicas_.size(); ++i) {
    const auto source = replicas_[i]->parameters();
    for (size_t k = 0; k < target.size(); ++k) {
      if (!target[k].grad().defined() || !source[k].grad().defined())
        continue;
      target[k].mutable_grad().add_(source[k].grad()); // [[device-mixed-op]]
    }
  }
}

void Replicas::synchronize() {
  for (size_t k = 0; k < replicas_.at(0)->parameters().size(); ++k) {
    std::vector<torch::Tensor> copies;
    for (size_t i = 1; i < replicas_.size(); ++i)
      copies.push_back(replicas_[i]->parameters()[k]);
    broadcast(replicas_.at(0)->parameters()[k], copies);
  }
}

} // namespace multigpu

#ifdef DT_RUN
#include "../../../cases/cases.h"

namespace {

using namespace multigpu;

Pipeline pipeline() { return Pipeline(visibleDevices(), 6, 3); }
Replicas replicas() { return Replicas(Block(6, 4), selectDevices({0, 2, 3})); }
auto x = [] { return torch::rand({12, 6}); };
std::vector<std::pair<torch::Tensor, torch::Tensor>> batches() { return {{x(), torch::rand({12, 4})}, {x(), torch::rand({12, 4})}}; }

void forward_ok() { pipeline().forward(x()); }
void forward_chunks_ok() { pipeline().forwardChunks(x(), 3); }
void evaluate_bad() { pipeline().evaluate(x()); }
void loss_bad() { pipeline().loss(x(), torch::randint(3, {12}, torch::kLong)); }
void accuracy_ok() { pipeline().accuracy(x(), torch::randint(3, {12}, torch::kLong)); }
void skip_bad() { pipeline().skipConnected(x()); }
void gradient_norm_ok() {
  auto p = pipeline();
  p.forward(x()).sum().backward();
  p.gradientNorm();
}
void activations_ok() { pipeline().activations(x()); }
void least_used_ok() { torch::zeros({2}, leastUsed({4, 2, 7, 3})); }
void evaluation_device_lost_bad() { torch::zeros({2}, evaluationDevice(visibleDevices())); }
void predict_ok() { replicas().predict(x()); }
void step_ok() { replicas().step(x(), torch::rand({12, 4}), 0.1); }
void epoch_loss_bad() { replicas().epochLoss(batches()); }
void epoch_mean_ok() { replicas().epochMean(batches()); }
void disagreement_bad() { replicas().disagreement(x()); }
void drift_ok() { replicas().parameterDrift(); }
void ensemble_ok() { replicas().ensemble(x()); }
void all_reduce_bad() {
  auto r = replicas();
  for (auto &output : r.forward(x()))
    output.sum().backward();
  r.allReduceGradients();
}
void synchronize_ok() { replicas().synchronize(); }
void reduce_ok() {
  std::vector<torch::Tensor> g;
  for (auto d : visibleDevices())
    g.push_back(torch::rand({3}, d));
  reduceInto(g);
  reduceMean(g);
}

} // namespace

DT_MAIN(forward_ok, forward_chunks_ok, evaluate_bad, loss_bad, accuracy_ok, skip_bad, gradient_norm_ok,
        activations_ok, least_used_ok, evaluation_device_lost_bad, predict_ok, step_ok, epoch_loss_bad, epoch_mean_ok,
        disagreement_bad, drift_ok, ensemble_ok, all_reduce_bad, synchronize_ok, reduce_ok)
#endif
