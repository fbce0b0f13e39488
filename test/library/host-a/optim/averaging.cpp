#include "averaging.h"

namespace opt {

WeightAverage::WeightAverage(torch::nn::Module &model, double decay) : decay_(decay) {
  for (const auto &parameter : model.named_parameters()) {
    names_.push_back(parameter.key());
    shadow_[parameter.key()] = parameter.value().detach().cpu().clone();
  }
}

void WeightAverage::update(torch::nn::Module &model) {
  torch::NoGradGuard noGrad;
  const auto parameters = model.named_parameters();
  for (const auto &name : names_) {
    auto &shadow = shadow_.at(name);
    const auto current = parameters[name].detach().to(shadow.device());
    shadow.mul_(decay_).add_(current, 1 - decay_);
  }
}

void WeightAverage::updateOnHost(torch::nn::Module &model) {
  torch::NoGradGuard noGrad;
  for (const auto &parameter : model.named_parameters())
    shadow_.at(parameter.key()).copy_(decay_ * shadow_.at(parameter.key()) + (1 - decay_) * parameter.value().cpu());
}

void WeightAverage::apply(torch::nn::Module &model) const {
  torch::NoGradGuard noGrad;
  for (auto &parameter : model.named_parameters())
    parameter.value().copy_(shadow_.at(parameter.key()));
}

double WeightAverage::distance(torch::nn::Module &model) const {
  torch::NoGradGuard noGrad;
  double sum = 0;
  for (const auto &parameter : model.named_parameters())
    sum += (parameter.value() - shadow_.at(parameter.key())).pow(2).sum().item<double>(); // [[device-mixed-op]]
  return std::sqrt(sum);
}

void WeightAverage::blend(torch::nn::Module &model, double amount) const {
  torch::NoGradGuard noGrad;
  for (auto &parameter : model.named_parameters()) {
    auto average = shadow_.at(parameter.key());
    average.to(parameter.value().device()); // [[device-discarded-move]]
    parameter.value().lerp_(average, amount);
  }
}

void WeightAverage::save(const std::string &file) const {
  torch::serialize::OutputArchive archive;
  for (const auto &[name, tensor] : shadow_)
    archive.write(name, tensor, /*is_buffer=*/true);
  archive.save_to(file);
}

void WeightAverage::load(const std::string &file) {
  torch::serialize::InputArchive archive;
  archive.load_from(file, torch::kCPU);
  for (auto &[name, tensor] : shadow_)
    archive.read(name, tensor, /*is_buffer=*/true);
}

LossScaler::LossScaler(torch::Device device, double initial) : device_(device) {
  scale_ = torch::full({}, initial, torch::TensorOptions().dtype(torch::kFloat32).device(device_));
  found_ = torch::zeros({1});
}

void LossScaler::unscale(const std::vector<torch::Tensor> &parameters) const {
  torch::NoGradGuard noGrad;
  const auto inverse = scale_.reciprocal().cpu();
  for (const auto &parameter : parameters)
    if (parameter.grad().defined())
      parameter.grad().mul_(inverse);
}

bool LossScaler::overflowed(const std::vector<torch::Tensor> &parameters) {
  torch::NoGradGuard noGrad;
  found_.zero_();
  for (const auto &parameter : parameters) {
    if (!parameter.grad().defined())
      continue;
    const auto bad = torch::isfinite(parameter.grad()).logical_not().any().to(device_, torch::kFloat32);
    found_.add_(bad); // [[device-mixed-op]]
  }
  return found_.item<float>() > 0;
}

bool LossScaler::overflowedFast(const std::vector<torch::Tensor> &parameters) const {
  for (const auto &parameter : parameters)
    if (parameter.grad().defined() && !torch::isfinite(parameter.grad()).all().item<bool>())
      return true;
  return false;
}

void LossScaler::update(bool overflow) {
  if (overflow) {
    scale_.mul_(0.5);
    good_ = 0;
  } else if (++good_ % 100 == 0) {
    scale_.mul_(2.0);
  }
}

void LossScaler::castGradients(const std::vector<torch::Tensor> &parameters) const {
  for (const auto &parameter : parameters) {
    auto gradient = parameter.grad();
    if (gradient.defined() && gradient.scalar_type() == torch::kHalf)
      gradient.to(torch::kFloat32); // [[device-discarded-move]]
  }
}

FineTuner::FineTuner(int64_t inputs, torch::Device device)
    : device_(device), model_(inputs, 1), optimizer_(model_->parameters(), torch::optim::SGDOptions(0.05).momentum(0.9)) {
  model_->to(device_);
}

double FineTuner::step(const torch::Tensor &x, const torch::Tensor &y) {
  optimizer_.zero_grad();
  const auto loss = torch::mse_loss(model_->forward(x.to(device_)).squeeze(1), y.to(device_));
  loss.backward();
  optimizer_.step();
  return loss.item<double>();
}

double FineTuner::validate(const torch::Tensor &x, const torch::Tensor &y) {
  torch::NoGradGuard noGrad;
  const auto predicted = model_->forward(x.to(device_)).squeeze(1).cpu();
  return (predicted - y.cpu()).abs().mean().item<double>();
}

double FineTuner::huber(const torch::Tensor &x, const torch::Tensor &y, const std::vector<float> &sampleWeights) {
  torch::NoGradGuard noGrad;
  const auto predicted = model_->forward(x.to(device_)).squeeze(1);
  const auto losses = torch::huber_loss(predicted, y.to(device_), at::Reduction::None);
  const auto weights = torch::tensor(sampleWeights);
  return (losses * weights).mean().item<double>(); // [[device-mixed-op]]
}

void FineTuner::anchor(const std::string &file) {
  torch::load(anchor_, file);
  TORCH_CHECK(anchor_.sizes() == model_->weight.sizes(), "the anchor is of another model");
}

torch::Tensor FineTuner::anchorPenalty() {
  if (!anchor_.defined())
    return torch::zeros({}, torch::TensorOptions().device(device_));
  return (model_->weight - anchor_).pow(2).sum(); // [[device-load-placement]]
}

} // namespace opt

#ifdef DT_RUN
#include "../../../cases/cases.h"
#include "lamb.h"

namespace {

using namespace opt;

const torch::Device gpu(torch::kCUDA, 1);
struct Trained {
  torch::nn::Linear model{5, 3};
  Trained() {
    model->to(gpu);
    model->forward(torch::rand({4, 5}, gpu)).pow(2).sum().backward();
  }
};

void step_ok() { Trained t; Lamb lamb(t.model->parameters(), LambOptions()); lamb.zeroGrad(); lamb.step(); }
void noise_bad() { Trained t; Lamb(t.model->parameters(), LambOptions()).stepWithNoise(0.1); }
void clip_ok() { Trained t; Lamb(t.model->parameters(), LambOptions()).clipGradients(0.01); }
void norms_ok() { Trained t; Lamb(t.model->parameters(), LambOptions()).gradientNorms(); }
void lamb_state_ok() {
  Trained t;
  Lamb lamb(t.model->parameters(), LambOptions());
  lamb.step();
  lamb.saveState("lamb.pt");
  lamb.loadState("lamb.pt");
  lamb.step();
}
void rowwise_bad() { Trained t; RowwiseAdagrad({t.model->weight}, 0.1).step(); }
void rowwise_reset_ok() { Trained t; RowwiseAdagrad({t.model->weight}, 0.1).reset(); }
void lookahead_ok() {
  Trained t;
  torch::optim::SGD sgd(t.model->parameters(), 0.1);
  Lookahead lookahead(sgd, 1, 0.5);
  lookahead.step();
}
void average_update_ok() { Trained t; WeightAverage(*t.model, 0.9).update(*t.model); }
void average_host_ok() { Trained t; WeightAverage(*t.model, 0.9).updateOnHost(*t.model); }
void average_apply_ok() { Trained t; WeightAverage(*t.model, 0.9).apply(*t.model); }
void average_distance_bad() { Trained t; WeightAverage(*t.model, 0.9).distance(*t.model); }
void average_blend_discarded_bad() { Trained t; WeightAverage(*t.model, 0.9).blend(*t.model, 0.5); }
void average_file_ok() {
  Trained t;
  WeightAverage average(*t.model, 0.9);
  average.save("average.pt");
  average.load("average.pt");
}
void scale_ok() { LossScaler(gpu).scale(torch::rand({}, gpu)); }
void unscale_ok() { Trained t; LossScaler(gpu).unscale(t.model->parameters()); }
void overflowed_bad() { Trained t; LossScaler(gpu).overflowed(t.model->parameters()); }
void overflowed_fast_ok() { Trained t; LossScaler(gpu).overflowedFast(t.model->parameters()); }
void scaler_update_ok() { LossScaler(gpu).update(true); }
void cast_gradients_discarded_bad() {
  Trained t;
  auto p = torch::rand({3}, gpu).to(torch::kHalf).requires_grad_();
  p.mutable_grad() = torch::zeros_like(p);
  LossScaler(gpu).castGradients({p});
  std::printf("gradients are %s\n", torch::toString(p.grad().scalar_type()));
}
FineTuner tuner() { return FineTuner(5, gpu); }
void tuner_step_ok() { tuner().step(torch::rand({4, 5}), torch::rand({4})); }
void tuner_validate_ok() { tuner().validate(torch::rand({4, 5}), torch::rand({4})); }
void tuner_huber_bad() { tuner().huber(torch::rand({4, 5}), torch::rand({4}), {1, 2, 3, 4}); }
void anchor_bad() {
  torch::save(torch::rand({1, 5}), "anchor.pt");
  auto t = tuner();
  t.anchor("anchor.pt");
  t.anchorPenalty();
}
void no_anchor_ok() { tuner().anchorPenalty(); }

} // namespace

DT_MAIN(step_ok, noise_bad, clip_ok, norms_ok, lamb_state_ok, rowwise_bad, rowwise_reset_ok, lookahead_ok,
        average_update_ok, average_host_ok, average_apply_ok, average_distance_bad, average_blend_discarded_bad,
        average_file_ok, scale_ok, unscale_ok, overflowed_bad, overflowed_fast_ok, scaler_update_ok,
        cast_gradients_discarded_bad, tuner_step_ok, tuner_validate_ok, tuner_huber_bad, anchor_bad, no_anchor_ok)
#endif
