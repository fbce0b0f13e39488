#include "experiment.h"

#include <cmath>
#include <iostream>

namespace F = torch::nn::functional;

namespace zoo {

Experiment::Experiment(ExperimentOptions options) : options_(std::move(options)) {
  TORCH_CHECK(options_.classWeights.empty() || static_cast<int64_t>(options_.classWeights.size()) == options_.model.outputs,
              "a weight per class is needed");
  if (options_.classWeights.empty())
    options_.classWeights.assign(options_.model.outputs, 1.0f);
}

void Experiment::setup() {
  model_ = createOn(options_.model, options_.device);
  if (!options_.teacher.empty()) {
    Spec spec = options_.model;
    spec.name = options_.teacher;
    teacher_ = create(spec);
    teacher_->eval();
  }
  projection_ = projectionHead(options_.model.outputs, 3);
  weighted_ = torch::nn::CrossEntropyLoss(torch::nn::CrossEntropyLossOptions().weight(torch::tensor(options_.classWeights)));
  focal_ = FocalLoss(options_.classWeights, 2.0);
  focal_->to(options_.device);
  optimizer_ = std::make_unique<torch::optim::SGD>(model_->parameters(), options_.learningRate);
}

double Experiment::trainStep(const torch::Tensor &x, const torch::Tensor &y) {
  optimizer_->zero_grad();
  const auto loss = F::cross_entropy(model_->forward(x.to(options_.device)), y.to(options_.device));
  loss.backward();
  optimizer_->step();
  return loss.item<double>();
}

double Experiment::focalStep(const torch::Tensor &x, const torch::Tensor &y) {
  optimizer_->zero_grad();
  const auto loss = focal_->forward(model_->forward(x.to(options_.device)), y.to(options_.device));
  loss.backward();
  optimizer_->step();
  return loss.item<double>();
}

double Experiment::weightedStep(const torch::Tensor &x, const torch::Tensor &y) {
  optimizer_->zero_grad();
  const auto logits = model_->forward(x.to(options_.device));
  const auto loss = weighted_->forward(logits, y.to(options_.device)); // [[device-loss-input]]
  loss.backward();
  optimizer_->step();
  return loss.item<double>();
}

double Experiment::distill(const torch::Tensor &x, double temperature) {
  TORCH_CHECK(teacher_, "there is no teacher");
  torch::Tensor soft;
  {
    torch::NoGradGuard noGrad;
    soft = torch::softmax(teacher_->forward(x.to(torch::kCPU)) / temperature, 1);
  }
  const auto student = torch::log_softmax(model_->forward(x.to(options_.device)) / temperature, 1);
  const auto loss = F::kl_div(student, soft, F::KLDivFuncOptions().reduction(torch::kBatchMean)); // [[device-loss-input]]
  optimizer_->zero_grad();
  loss.backward();
  optimizer_->step();
  return loss.item<double>();
}

torch::Tensor Experiment::predict(const torch::Tensor &x) {
  torch::NoGradGuard noGrad;
  return torch::softmax(model_->forward(x.to(options_.device)), 1).cpu();
}

torch::Tensor Experiment::project(const torch::Tensor &x) {
  const auto logits = model_->forward(x.to(options_.device));
  return projection_->forward(logits); // [[device-mixed-op]]
}

double Experiment::contrast(const torch::Tensor &first, const torch::Tensor &second) {
  torch::NoGradGuard noGrad;
  const auto a = F::normalize(model_->embed(first.to(options_.device))), b = F::normalize(model_->embed(second.to(options_.device)));
  const auto similarity = torch::matmul(a, b.t()) / 0.1;
  const auto target = torch::arange(a.size(0), torch::TensorOptions().dtype(torch::kLong).device(similarity.device()));
  return F::cross_entropy(similarity, target).item<double>();
}

ConfusionMatrix Experiment::evaluate(const std::vector<std::pair<torch::Tensor, torch::Tensor>> &batches) {
  ConfusionMatrix matrix(options_.model.outputs, options_.device);
  model_->eval();
  for (const auto &[x, y] : batches)
    matrix.add(predict(x).argmax(1), y);
  model_->train();
  std::cerr << "accuracy " << matrix.accuracy() << "\n";
  return matrix;
}

double Experiment::calibrationError(const torch::Tensor &x, const torch::Tensor &y, int64_t bins) {
  const auto [confidence, label] = predict(x).max(1);
  const auto correct = label.eq(y.cpu()).to(torch::kFloat32);
  const auto bin = (confidence * bins).to(torch::kLong).clamp_max(bins - 1);
  double error = 0;
  for (int64_t i = 0; i < bins; ++i) {
    const auto inside = bin.eq(i);
    const auto count = inside.sum().item<int64_t>();
    if (count > 0)
      error += std::abs((confidence - correct).masked_select(inside).sum().item<double>());
  }
  return error / static_cast<double>(y.numel());
}

std::vector<double> Experiment::perClassLoss(const torch::Tensor &x, const torch::Tensor &y) {
  torch::NoGradGuard noGrad;
  const auto target = y.to(options_.device);
  const auto losses = F::cross_entropy(model_->forward(x.to(options_.device)), target, F::CrossEntropyFuncOptions().reduction(torch::kNone));
  const auto classes = torch::arange(options_.model.outputs);
  std::vector<double> result;
  for (int64_t c = 0; c < classes.numel(); ++c) {
    const auto of = target.eq(classes[c]);
    result.push_back(of.any().item<bool>() ? losses.masked_select(of).mean().item<double>() : 0.0);
  }
  return result;
}

torch::Tensor Experiment::activated(const std::string &name, const torch::Tensor &x) {
  auto module = activation(name);
  module.ptr()->to(options_.device);
  return module.forward(model_->embed(x.to(options_.device)));
}

std::vector<float> Experiment::firstWeights() const {
  const float *values = model_->parameters().front().detach().to(torch::kCPU).flatten().data_ptr<float>(); // [[device-dangling-data]]
  std::vector<float> out;
  for (int i = 0; i < 4; ++i)
    out.push_back(values[i]);
  return out;
}

void Experiment::saveWeights(const std::string &file) const {
  std::vector<torch::Tensor> tensors;
  for (const auto &parameter : model_->parameters())
    tensors.push_back(parameter.detach().cpu());
  torch::save(tensors, file);
}

void Experiment::loadWeights(const std::string &file) {
  std::vector<torch::Tensor> tensors;
  torch::load(tensors, file);
  torch::NoGradGuard noGrad;
  auto parameters = model_->parameters();
  TORCH_CHECK(tensors.size() == parameters.size(), "the weights are of another model");
  for (size_t i = 0; i < parameters.size(); ++i)
    parameters[i].copy_(tensors[i]);
}

double Experiment::distanceTo(const std::string &file) {
  std::vector<torch::Tensor> tensors;
  torch::load(tensors, file);
  torch::NoGradGuard noGrad;
  const auto parameters = model_->parameters();
  double sum = 0;
  for (size_t i = 0; i < parameters.size(); ++i)
    sum += (parameters[i] - tensors.at(i)).pow(2).sum().item<double>(); // [[device-load-placement]]
  return std::sqrt(sum);
}

void Ensemble::addOnEveryGpu(const Spec &spec) {
  const auto count = static_cast<int>(torch::cuda::device_count());
  for (int index = 0; index < count; ++index)
    add(spec, torch::Device(torch::kCUDA, static_cast<c10::DeviceIndex>(index)));
}

void Ensemble::addOnLastGpu(const Spec &spec) {
  TORCH_CHECK(torch::cuda::is_available(), "there is no GPU");
  const int last = static_cast<int>(torch::cuda::device_count());
  add(spec, torch::Device(torch::kCUDA, static_cast<c10::DeviceIndex>(last))); // [[device-lost-index]]
}

torch::Tensor Ensemble::vote(const torch::Tensor &x) {
  torch::NoGradGuard noGrad;
  torch::Tensor sum;
  for (size_t i = 0; i < models_.size(); ++i) {
    const auto scores = torch::softmax(models_[i]->forward(x.to(devices_[i])), 1).to(x.device());
    sum = sum.defined() ? sum + scores : scores;
  }
  return sum;
}

torch::Tensor Ensemble::majority(const torch::Tensor &x) {
  torch::NoGradGuard noGrad;
  std::vector<torch::Tensor> votes;
  for (size_t i = 0; i < models_.size(); ++i)
    votes.push_back(models_[i]->forward(x.to(devices_[i])).argmax(1).cpu());
  return std::get<0>(torch::stack(votes).mode(0));
}

torch::Tensor Ensemble::agreement(const torch::Tensor &x) {
  torch::NoGradGuard noGrad;
  const auto reference = models_.at(0)->forward(x.to(devices_[0])).argmax(1);
  auto agree = torch::zeros_like(reference);
  for (size_t i = 1; i < models_.size(); ++i) {
    const auto labels = models_[i]->forward(x.to(devices_[i])).argmax(1);
    agree += labels.eq(reference); // [[device-mixed-op]]
  }
  return agree;
}

} // namespace zoo

#ifdef DT_RUN
#include "../../../cases/cases.h"

namespace {

using namespace zoo;

const torch::Device gpu(torch::kCUDA, 1);
Experiment experiment(const std::string &name = "perceptron", const std::string &teacher = "") {
  ExperimentOptions options;
  options.model.name = name;
  options.teacher = teacher;
  options.device = gpu;
  Experiment e(options);
  e.setup();
  return e;
}
Spec spec() {
  Spec s;
  s.name = "perceptron";
  return s;
}
Ensemble ensemble() {
  Ensemble e;
  e.addOnEveryGpu(spec());
  return e;
}
ConfusionMatrix matrix() {
  ConfusionMatrix m(4, gpu);
  m.add(torch::randint(4, {9}, torch::kLong), torch::randint(4, {9}, torch::kLong));
  return m;
}
auto x = [] { return torch::rand({6, 8}); };
auto y = [] { return torch::randint(4, {6}, torch::kLong); };

void train_ok() { experiment().trainStep(x(), y()); }
void prototype_ok() { experiment("prototype").trainStep(x(), y()); }
void fourier_bad() { experiment("fourier").embed(x()); }
void focal_ok() { experiment().focalStep(x(), y()); }
void weighted_bad() { experiment().weightedStep(x(), y()); }
void distill_bad() { experiment("perceptron", "prototype").distill(x(), 2); }
void project_bad() { experiment().project(x()); }
void contrast_ok() { experiment().contrast(x(), x()); }
void evaluate_ok() { experiment().evaluate({{x(), y()}, {x(), y()}}); }
void calibration_ok() { experiment().calibrationError(x(), y(), 5); }
void per_class_ok() { experiment().perClassLoss(x(), y()); }
void activated_ok() { experiment().activated("prelu", x()); }
void first_weights_dangling_bad() { experiment().firstWeights(); }
void save_load_ok() {
  auto e = experiment();
  e.saveWeights("zoo.pt");
  e.loadWeights("zoo.pt");
  e.predict(x());
}
void distance_bad() {
  auto e = experiment();
  e.saveWeights("zoo.pt");
  e.distanceTo("zoo.pt");
}
void weighted_recall_bad() { matrix().weightedRecall({1, 2, 3, 4}); }
void recall_ok() { matrix().recall(); }
void matrix_at_ok() { matrix().at(1, 2); }
void matrix_row_bad() { matrix().row(1); }
void last_gpu_lost_bad() { Ensemble().addOnLastGpu(spec()); }
void vote_ok() { ensemble().vote(x()); }
void majority_ok() { ensemble().majority(x()); }
void agreement_bad() { ensemble().agreement(x()); }
void names_ok() { Registry::instance().names(); }

} // namespace

DT_MAIN(train_ok, prototype_ok, fourier_bad, focal_ok, weighted_bad, distill_bad, project_bad, contrast_ok, evaluate_ok,
        calibration_ok, per_class_ok, activated_ok, first_weights_dangling_bad, save_load_ok, distance_bad,
        weighted_recall_bad, recall_ok, matrix_at_ok, matrix_row_bad, last_gpu_lost_bad, vote_ok, majority_ok,
        agreement_bad, names_ok)
#endif
