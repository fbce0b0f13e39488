#include "trainer.h"

#include <sys/stat.h>

namespace vit {

Trainer::Trainer(const TrainerOptions &options)
    : model(options.model), ema(*model, options.decay), device(defaultDevice()), options(options) {
  model->to(device);
  optimizer = std::make_unique<Lars>(model->parameters(), options.rate, options.momentum, 0.001);
  smoothed = torch::zeros({}, torch::kFloat);
  if (options.balanced) {
    auto counts = torch::tensor(options.classCounts, torch::kFloat);
    weighted = torch::nn::CrossEntropyLoss(torch::nn::CrossEntropyLossOptions().weight(counts.sum() / (counts + 1)));
  }
}

double Trainer::finish(torch::Tensor loss) {
  loss.backward();
  optimizer->clip(options.clip);
  optimizer->step();
  {
    torch::NoGradGuard noGrad;
    smoothed = 0.98 * smoothed + 0.02 * loss.detach();
  }
  return loss.item<double>();
}

double Trainer::trainStep(const torch::Tensor &tokens, const torch::Tensor &labels) {
  model->train();
  optimizer->zeroGrad();
  auto logits = model->forward(tokens.to(device));
  return finish(torch::nn::functional::cross_entropy(logits, labels.to(logits.device())));
}

double Trainer::trainBalanced(const torch::Tensor &tokens, const torch::Tensor &labels) {
  model->train();
  optimizer->zeroGrad();
  auto logits = model->forward(tokens.to(device));
  auto target = labels.to(device);
  auto loss = weighted->forward(logits, target); // [[device-loss-input]]
  return finish(loss);
}

double Trainer::trainMultiTask(const torch::Tensor &tokens, const std::vector<torch::Tensor> &labels) {
  model->train();
  optimizer->zeroGrad();
  const auto logits = model->forwardAll(tokens.to(device));
  auto loss = torch::zeros({}, device);
  for (size_t i = 0; i < logits.size(); ++i)
    loss = loss + torch::nn::functional::cross_entropy(logits[i], labels.at(i).to(device));
  return finish(loss);
}

void Trainer::finishEpoch() { ema.update(*model); }

double Trainer::evaluate(const std::vector<torch::Tensor> &tokens, const std::vector<torch::Tensor> &labels) {
  torch::NoGradGuard noGrad;
  model->eval();
  auto confusion = torch::zeros({options.model.classes, options.model.classes}, torch::kLong);
  for (size_t i = 0; i < tokens.size(); ++i) {
    auto predicted = model->forward(tokens[i].to(device)).argmax(1).to(torch::kCPU);
    auto cell = labels[i].cpu() * options.model.classes + predicted;
    confusion += torch::bincount(cell, {}, options.model.classes * options.model.classes).view_as(confusion);
  }
  return confusion.diag().sum().item<double>() / confusion.sum().item<double>();
}

double Trainer::agreement(const std::vector<torch::Tensor> &tokens, std::vector<torch::Tensor> labels) {
  torch::NoGradGuard noGrad;
  model->eval();
  double hits = 0, count = 0;
  for (size_t i = 0; i < tokens.size(); ++i) {
    auto x = tokens[i].to(device);
    labels[i].to(device); // [[device-discarded-move]]
    hits += model->forward(x).argmax(1).eq(labels[i]).sum().item<double>();
    count += x.size(0);
  }
  return hits / count;
}

std::vector<float> Trainer::gradientNorms() const {
  std::vector<torch::Tensor> norms;
  for (const auto &p : model->parameters())
    if (p.grad().defined())
      norms.push_back(p.grad().norm());
  auto all = torch::stack(norms).contiguous();
  return std::vector<float>(all.data_ptr<float>(), all.data_ptr<float>() + all.numel()); // [[device-host-access]]
}

double Trainer::largestGradient() const {
  std::vector<torch::Tensor> norms;
  for (const auto &p : model->parameters())
    if (p.grad().defined())
      norms.push_back(p.grad().abs().max());
  const auto all = torch::stack(norms).to(torch::kDouble).cpu();
  const double *values = all.data_ptr<double>();
  return *std::max_element(values, values + all.numel());
}

void Trainer::save(const std::string &folder) const {
  ::mkdir(folder.c_str(), 0755);
  torch::save(model, folder + "/model.pt");
  torch::save(smoothed, folder + "/loss.pt");
}

void Trainer::restore(const std::string &folder) {
  torch::load(model, folder + "/model.pt", device);
  torch::load(smoothed, folder + "/loss.pt");
  ema = Ema(*model, options.decay);
}

void Trainer::loadStatistics(const std::string &file) {
  std::vector<torch::Tensor> both;
  torch::load(both, file);
  mean = both.at(0);
  deviation = both.at(1);
}

torch::Tensor Trainer::standardise(const torch::Tensor &tokens) const {
  auto x = tokens.to(defaultDevice(), torch::kFloat);
  return (x - mean) / deviation; // [[device-load-placement]]
}

} // namespace vit

#ifdef DT_RUN
#include "../../shim/driver.h"
using namespace vit;
static torch::Tensor toks() { return torch::rand({4, 6, 8}); }
static torch::Tensor labs() { return torch::zeros({4}, torch::kLong); }
static void heads_bad() { Trainer t({}); t.trainMultiTask(toks(), {labs(), labs(), labs()}); }
static void ema_bad() { Trainer t({}); t.trainStep(toks(), labs()); t.finishEpoch(); }
static void nesterov_bad() {
  torch::nn::Linear l(3, 3);
  l->to(dtl::dev(0));
  l->forward(dtl::gpu({2, 3}, 0)).sum().backward();
  Lars(l->parameters(), 0.1, 0.9, 0.01).stepNesterov();
}
static void balanced_bad() {
  TrainerOptions o;
  o.balanced = true;
  o.classCounts = {1, 2, 3, 4, 5};
  Trainer t(o);
  t.trainBalanced(toks(), labs());
}
static void agreement_bad() { Trainer t({}); t.agreement({toks()}, {labs()}); }
static void norms_bad() { Trainer t({}); t.trainStep(toks(), labs()); t.gradientNorms(); }
static void statistics_bad() {
  std::vector<torch::Tensor> both = {torch::rand({8}), torch::rand({8}) + 1};
  torch::save(both, "statistics.pt");
  Trainer t({});
  t.loadStatistics("statistics.pt");
  t.standardise(toks());
}
static void train_ok() {
  TrainerOptions o;
  o.model.causal = true;
  Trainer t(o);
  t.trainStep(toks(), labs());
  t.trainStep(toks(), labs());
  t.largestGradient();
  t.evaluate({toks()}, {labs()});
}
static void restore_ok() {
  Trainer t({});
  t.trainStep(toks(), labs());
  t.save("vit");
  Trainer u({});
  u.restore("vit");
  u.finishEpoch();
  u.trainStep(toks(), labs());
}
static void average_ok() {
  torch::nn::Linear a(3, 3);
  a->to(dtl::dev(2));
  Ema e(*a, 0.9);
  e.update(*a);
  torch::nn::Linear b(3, 3);
  e.copyTo(*b);
  e.distance(*b);
}
static void lars_ok() {
  torch::nn::Linear l(3, 3);
  l->to(dtl::dev(1));
  l->forward(dtl::gpu({2, 3}, 1)).sum().backward();
  Lars o(l->parameters(), 0.1, 0.9, 0.01);
  o.clip(0.001);
  o.step();
  o.step();
}
DT_MAIN(heads_bad, ema_bad, nesterov_bad, balanced_bad, agreement_bad, norms_bad, statistics_bad, train_ok, restore_ok,
        average_ok, lars_ok)
#endif
