#include "agent.h"

#include <cmath>
#include <iostream>

namespace ppo {

Agent::Agent(AgentOptions options) : options_(options) {
  TORCH_CHECK(options_.observationSize > 0 && options_.actions > 1, "bad sizes");
  actor_ = torch::nn::Sequential(torch::nn::Linear(options_.observationSize, options_.hidden), torch::nn::Tanh(),
                                 torch::nn::Linear(options_.hidden, options_.actions));
  critic_ = torch::nn::Linear(options_.observationSize, 1);
  normalizer_ = ObservationNormalizer(options_.observationSize);
  returnNormalizer_ = ReturnNormalizer();
}

void Agent::initialize() {
  torch::NoGradGuard noGrad;
  for (auto &parameter : actor_->parameters())
    if (parameter.dim() > 1)
      torch::nn::init::orthogonal_(parameter, std::sqrt(2.0));
  std::vector<torch::Tensor> parameters = actor_->parameters();
  for (const auto &parameter : critic_->parameters())
    parameters.push_back(parameter);
  optimizer_ = std::make_unique<torch::optim::Adam>(parameters, torch::optim::AdamOptions(options_.learningRate));
  actor_->to(options_.device);
  critic_->to(options_.device);
  normalizer_->to(options_.device);
  returnNormalizer_->to(options_.device);
  actionWeights_ = torch::linspace(1.0, 2.0, options_.actions);
}

Decision Agent::act(const torch::Tensor &observation) {
  torch::NoGradGuard noGrad;
  const auto x = prepare(observation);
  const auto logProbs = torch::log_softmax(actor_->forward(x), -1);
  Decision decision;
  decision.action = torch::multinomial(logProbs.exp(), 1).squeeze(-1);
  decision.logProb = logProbs.gather(-1, decision.action.unsqueeze(-1)).squeeze(-1);
  decision.value = critic_->forward(x).squeeze(-1);
  return decision;
}

torch::Tensor Agent::value(const torch::Tensor &observation) {
  torch::NoGradGuard noGrad;
  return critic_->forward(prepare(observation)).squeeze(-1);
}

torch::Tensor Agent::advantageOverExpert(const torch::Tensor &observation) {
  TORCH_CHECK(!expert_.is_empty(), "no expert was loaded");
  torch::NoGradGuard noGrad;
  const auto x = prepare(observation);
  const auto expected = expert_->forward(x); // [[device-load-placement]]
  return (critic_->forward(x) - expected).squeeze(-1);
}

std::vector<float> Agent::actionProbabilities(const std::vector<float> &observation) {
  torch::NoGradGuard noGrad;
  const auto input = torch::tensor(observation).unsqueeze(0);
  const auto probabilities = torch::softmax(actor_->forward(prepare(input)), -1).squeeze(0).contiguous();
  const float *first = probabilities.data_ptr<float>();
  return std::vector<float>(first, first + probabilities.numel()); // [[device-host-access]]
}

int64_t Agent::greedy(const std::vector<float> &observation) {
  torch::NoGradGuard noGrad;
  const auto input = torch::tensor(observation, options_.device).unsqueeze(0);
  return actor_->forward(input).argmax(-1).item<int64_t>();
}

torch::Tensor Agent::normalizedObservation(const torch::Tensor &observation) {
  return normalizer_->forward(prepare(observation));
}

Statistics Agent::update(const std::vector<MiniBatch> &batches) {
  Statistics statistics;
  for (const auto &batch : batches) {
    const auto observations = batch.observations.to(options_.device);
    const auto actions = batch.actions.to(options_.device).unsqueeze(1);
    const auto advantages = batch.advantages.to(options_.device), returns = batch.returns.to(options_.device);
    const auto logProbs = torch::log_softmax(actor_->forward(observations), -1);
    const auto chosen = logProbs.gather(1, actions).squeeze(1);
    const auto ratio = torch::exp(chosen - batch.logProbs.to(chosen.device()));
    const auto clipped = ratio.clamp(1 - options_.clip, 1 + options_.clip);
    const auto policyLoss = -torch::min(ratio * advantages, clipped * advantages).mean();
    const auto entropy = -(logProbs.exp() * logProbs).sum(1).mean();
    const auto values = critic_->forward(observations).squeeze(1);
    const auto valueLoss = torch::mse_loss(values, returnNormalizer_->forward(returns));
    optimizer_->zero_grad();
    (policyLoss + 0.5 * valueLoss - options_.entropyWeight * entropy).backward();
    torch::nn::utils::clip_grad_norm_(actor_->parameters(), 0.5);
    optimizer_->step();
    statistics.policyLoss += policyLoss.item<double>() / batches.size();
    statistics.valueLoss += valueLoss.item<double>() / batches.size();
    statistics.entropy += entropy.item<double>() / batches.size();
  }
  return statistics;
}

void Agent::snapshot() {
  snapshot_.clear();
  for (const auto &parameter : actor_->named_parameters())
    snapshot_[parameter.key()] = parameter.value().detach().to(torch::kCPU, /*non_blocking=*/false, /*copy=*/true);
}

double Agent::divergenceFromSnapshot(const torch::Tensor &observations) {
  TORCH_CHECK(!snapshot_.empty(), "no snapshot was taken");
  torch::NoGradGuard noGrad;
  const auto x = prepare(observations);
  const auto current = torch::log_softmax(actor_->forward(x), -1);
  const auto layer = [this](const torch::Tensor &input, const std::string &name) {
    return torch::linear(input, snapshot_.at(name + ".weight"), snapshot_.at(name + ".bias")); // [[device-mixed-op]]
  };
  const auto old = torch::log_softmax(layer(torch::tanh(layer(x, "0")), "2"), -1);
  return (old.exp() * (old - current)).sum(-1).mean().item<double>();
}

double Agent::explainedVariance(const RolloutStorage &storage) {
  torch::NoGradGuard noGrad;
  const auto targets = storage.returns().slice(0, 0, storage.steps()).to(options_.device).flatten();
  const auto inputs = storage.observations().slice(0, 0, storage.steps()).flatten(0, 1);
  const auto predicted = critic_->forward(prepare(inputs)).flatten();
  const double variance = targets.var().item<double>();
  return variance == 0 ? 0 : 1 - (targets - predicted).var().item<double>() / variance;
}

double Agent::actionWeightedLoss(const MiniBatch &batch) {
  torch::NoGradGuard noGrad;
  const auto logits = actor_->forward(prepare(batch.observations));
  const auto target = batch.actions.to(logits.device());
  return torch::nll_loss(torch::log_softmax(logits, 1), target, actionWeights_).item<double>(); // [[device-loss-input]]
}

void Agent::observeReturns(const torch::Tensor &returns) { returnNormalizer_->update(returns.to(options_.device)); }

void Agent::decayLearningRate(int64_t step, int64_t total) {
  const double fraction = 1.0 - static_cast<double>(step) / static_cast<double>(total);
  for (auto &group : optimizer_->param_groups())
    static_cast<torch::optim::AdamOptions &>(group.options()).lr(options_.learningRate * fraction);
}

void Agent::save(const std::string &prefix) const {
  torch::save(actor_, prefix + "_actor.pt");
  torch::save(critic_, prefix + "_critic.pt");
}

void Agent::load(const std::string &prefix) {
  torch::load(actor_, prefix + "_actor.pt", options_.device);
  torch::load(critic_, prefix + "_critic.pt", options_.device);
  std::cerr << "restored " << prefix << " on " << options_.device << "\n";
}

void Agent::loadExpert(const std::string &file) {
  expert_ = torch::nn::Linear(options_.observationSize, 1);
  torch::load(expert_, file);
  expert_->eval();
}

} // namespace ppo

#ifdef DT_RUN
#include "../../../cases/cases.h"

namespace {

using namespace ppo;

Agent onGpu() {
  AgentOptions options;
  options.device = torch::Device(torch::kCUDA, 1);
  Agent agent(options);
  agent.initialize();
  return agent;
}
RolloutStorage filled(Agent &agent, bool device) {
  RolloutStorage storage(5, 3, 4);
  if (device)
    storage.to(agent.device());
  for (int i = 0; i < 5; ++i) {
    auto observation = torch::rand({3, 4});
    auto d = agent.act(observation);
    storage.insert(observation, d.action, d.logProb, d.value, torch::rand({3}), torch::ones({3}));
  }
  return storage;
}

void act_ok() { onGpu().act(torch::rand({3, 4})); }
void value_ok() { onGpu().value(torch::rand({3, 4})); }
void normalize_bad() { onGpu().normalizedObservation(torch::rand({3, 4})); }
void compute_returns_bad() {
  auto agent = onGpu();
  auto storage = filled(agent, true);
  storage.computeReturns(agent.value(torch::rand({3, 4})), 0.99f);
}
void compute_advantages_ok() {
  auto agent = onGpu();
  auto storage = filled(agent, true);
  storage.computeAdvantages(agent.value(torch::rand({3, 4})), 0.99f, 0.95f);
}
void mini_batches_ok() {
  auto agent = onGpu();
  auto storage = filled(agent, true);
  storage.miniBatches(3);
}
void after_update_ok() {
  auto agent = onGpu();
  filled(agent, true).afterUpdate();
}
void discounted_rewards_bad() {
  auto agent = onGpu();
  filled(agent, true).discountedRewards(0.9f);
}
void expert_bad() {
  torch::nn::Linear critic(4, 1);
  torch::save(critic, "ppo_pretrained.pt");
  auto agent = onGpu();
  agent.loadExpert("ppo_pretrained.pt");
  agent.advantageOverExpert(torch::rand({3, 4}));
}
void action_probabilities_bad() { onGpu().actionProbabilities({1, 2, 3, 4}); }
void greedy_ok() { onGpu().greedy({1, 2, 3, 4}); }
void update_ok() {
  auto agent = onGpu();
  auto storage = filled(agent, true);
  storage.computeAdvantages(agent.value(torch::rand({3, 4})), 0.99f, 0.95f);
  agent.update(storage.miniBatches(3));
}
void divergence_bad() {
  auto agent = onGpu();
  agent.snapshot();
  agent.divergenceFromSnapshot(torch::rand({3, 4}));
}
void snapshot_ok() { onGpu().snapshot(); }
void explained_variance_ok() {
  auto agent = onGpu();
  auto storage = filled(agent, true);
  agent.explainedVariance(storage);
}
void action_weighted_bad() {
  auto agent = onGpu();
  auto storage = filled(agent, true);
  agent.actionWeightedLoss(storage.miniBatches(2)[0]);
}
void observe_returns_ok() { onGpu().observeReturns(torch::rand({7})); }
void decay_ok() { onGpu().decayLearningRate(1, 3); }
void save_load_ok() {
  auto agent = onGpu();
  agent.save("ppo");
  agent.load("ppo");
  agent.act(torch::rand({3, 4}));
}

} // namespace

DT_MAIN(act_ok, normalize_bad, compute_returns_bad, compute_advantages_ok, mini_batches_ok, after_update_ok,
        discounted_rewards_bad, value_ok, expert_bad, action_probabilities_bad, greedy_ok, update_ok, divergence_bad,
        snapshot_ok, explained_variance_ok, action_weighted_bad, observe_returns_ok, decay_ok, save_load_ok)
#endif
