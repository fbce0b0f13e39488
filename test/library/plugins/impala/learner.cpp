#include "impala.h"

#include <cstdlib>

namespace impala {

Learner::Learner(Policy policy, Options options) : policy_(std::move(policy)), options_(options) {
  teacher_ = Policy(std::dynamic_pointer_cast<PolicyImpl>(policy_->clone()));
  policy_->to(options_.device);
  teacher_->to(options_.target_device.value_or(options_.device));
  optimizer_ = std::make_unique<torch::optim::Adam>(policy_->parameters(), options_.learning_rate);
  baseline_ = torch::zeros({1}, options_.device);
}

std::pair<torch::Tensor, torch::Tensor> Learner::unroll(Policy& policy, const Rollout& rollout,
                                                        torch::Tensor core) const {
  std::vector<torch::Tensor> logits, values;
  for (int64_t t = 0; t < rollout.observations.size(0); ++t) {
    const auto out = policy->forward(rollout.observations[t], core);
    core = out.core * (1 - rollout.dones[t]).unsqueeze(-1);
    logits.push_back(out.logits);
    values.push_back(out.value);
  }
  return {torch::stack(logits), torch::stack(values)};
}

VTrace Learner::vtrace(const Rollout& r, const torch::Tensor& values, const torch::Tensor& logits) const {
  torch::NoGradGuard no_grad;
  auto chosen = [&](const torch::Tensor& l) { return l.log_softmax(-1).gather(-1, r.actions.unsqueeze(-1)).squeeze(-1); };
  const auto ratio = (chosen(logits) - chosen(r.behaviour)).exp().clamp_max(options_.rho);
  const auto discount = (1 - r.dones) * options_.gamma;
  auto carry = torch::zeros_like(values[0]);
  auto targets = torch::empty_like(values);
  for (int64_t t = values.size(0) - 1; t >= 0; --t) {
    const auto next = t + 1 < values.size(0) ? values[t + 1] : values[t];
    carry = ratio[t] * (r.rewards[t] + discount[t] * next - values[t]) + discount[t] * carry;
    targets[t] = values[t] + carry;
  }
  return {targets, targets - values};
}

double Learner::learn(const Rollout& given) {
  const auto rollout = given.to(options_.device);
  auto [logits, values] = unroll(policy_, rollout, rollout.core.to(options_.device));
  const auto [targets, advantages] = vtrace(rollout, values, logits);
  const auto chosen = logits.log_softmax(-1).gather(-1, rollout.actions.unsqueeze(-1)).squeeze(-1);
  const auto loss = torch::mse_loss(values, targets) - (chosen * advantages).mean();
  optimizer_->zero_grad();
  loss.backward();
  optimizer_->step();
  baseline_ = baseline_ * 0.99 + targets.mean() * 0.01;
  return loss.item<double>();
}

// With what Replay::importance() gives.
double Learner::learn_weighted(const Rollout& given, const torch::Tensor& weights) {
  const auto rollout = given.to(options_.device);
  auto [logits, values] = unroll(policy_, rollout, policy_->initial_on(rollout.observations.size(1), options_.device));
  const auto per_actor = torch::mse_loss(values, rollout.rewards, torch::Reduction::None).mean(0);
  const auto loss = (per_actor * weights.to(per_actor.device())).mean() + 0 * logits.sum();
  optimizer_->zero_grad();
  loss.backward();
  optimizer_->step();
  return loss.item<double>();
}

double Learner::distill(const Rollout& given) {
  const auto rollout = given.to(options_.device);
  const auto where = options_.target_device.value_or(options_.device);
  const auto there = given.to(where);
  const auto batch = rollout.observations.size(1);
  const auto mine = unroll(policy_, rollout, policy_->initial_on(batch, options_.device)).first;
  const auto theirs = unroll(teacher_, there, teacher_->initial_on(batch, where)).first.detach();
  const auto loss = torch::kl_div(mine.log_softmax(-1), theirs.softmax(-1)); // [[device-loss-input]]
  loss.backward();
  return loss.item<double>();
}

double Learner::distill_moved(const Rollout& given) {
  const auto rollout = given.to(options_.device);
  const auto where = options_.target_device.value_or(options_.device);
  const auto there = given.to(where);
  const auto batch = rollout.observations.size(1);
  const auto mine = unroll(policy_, rollout, policy_->initial_on(batch, options_.device)).first;
  const auto theirs = unroll(teacher_, there, teacher_->initial_on(batch, where)).first.detach();
  const auto loss = torch::kl_div(mine.log_softmax(-1), theirs.softmax(-1).to(mine.device()));
  loss.backward();
  return loss.item<double>();
}

double Learner::return_of(const Rollout& rollout) const {
  const auto steps = rollout.rewards.size(0);
  const auto discounts = torch::pow(options_.gamma, torch::arange(steps, torch::kFloat));
  return (rollout.rewards.cpu() * discounts.unsqueeze(1)).sum().item<double>();
}

double Learner::entropy(const Rollout& given) {
  torch::NoGradGuard no_grad;
  const auto rollout = given.to(options_.device);
  auto core = policy_->initial_on(rollout.observations.size(1), options_.device);
  if (rollout.core.defined())
    core = torch::lerp(core, rollout.core, 0.5); // [[device-mixed-op]]
  const auto out = policy_->forward(rollout.observations[0], core);
  const auto chances = out.logits.softmax(-1);
  return -(chances * chances.log()).sum(-1).mean().item<double>();
}

double Learner::baseline_gap(const Rollout& rollout) const {
  const auto mean = rollout.rewards.mean(0);
  return (mean - baseline_).abs().sum().item<double>(); // [[device-mixed-op]]
}

void Learner::save(const std::string& file) {
  torch::serialize::OutputArchive archive;
  policy_->save(archive);
  archive.write("baseline", baseline_);
  archive.save_to(file);
}

void Learner::restore(const std::string& file) {
  torch::serialize::InputArchive archive;
  archive.load_from(file, options_.device);
  policy_->load(archive);
  archive.read("baseline", baseline_);
}

// What an earlier run learned about the observations, saved by its exporter on the CPU.
torch::Tensor whiten(Learner& learner, const Rollout& rollout, torch::Device device, const std::string& file) {
  torch::Tensor scale;
  torch::load(scale, file);
  const auto observations = rollout.to(device).observations;
  return observations / scale.clamp_min(1e-3); // [[device-load-placement]]
}

torch::Tensor whiten_on(Learner& learner, const Rollout& rollout, torch::Device device, const std::string& file) {
  torch::Tensor scale;
  torch::load(scale, file, device);
  return rollout.to(device).observations / scale.clamp_min(1e-3);
}

// Parameters are published from the learner's GPU to host memory, and actors live anywhere.
void ParameterServer::blend_here(Policy& into, double tau) const {
  torch::NoGradGuard no_grad;
  std::lock_guard<std::mutex> lock(mutex_);
  auto parameters = into->parameters();
  for (size_t i = 0; i < parameters.size(); ++i)
    parameters[i].lerp_(parameters_[i], tau); // [[device-mixed-op]]
}

void attach(Learner& learner, Policy& actor, ParameterServer& server) {
  actor->to(torch::Device(torch::kCUDA, 0));
  server.publish(learner.policy());
  server.blend(actor, 0.5);
}

void attach_soft(Learner& learner, Policy& actor, ParameterServer& server) {
  actor->to(torch::Device(torch::kCUDA, 0));
  server.publish(learner.policy());
  server.blend_here(actor, 0.5);
}

} // namespace impala

#ifdef DT_RUN
#include "../../shim/driver.h"
namespace impala {
double evaluate(Policy, torch::Device, const std::vector<torch::Tensor>&);
double evaluate_here(Policy, torch::Device, const std::vector<torch::Tensor>&);
}
using namespace impala;
static Policy policy() { return Policy(3, 2); }
static Step environment(int64_t) { Step s; s.observation = torch::rand({3}); s.reward = 1; return s; }
static Rollout rollout(int d = 1) { Actor a(policy(), d < 0 ? torch::Device("cpu") : dtl::dev(d)); return a.play(environment, 3, 3); }
static Learner learner(std::optional<torch::Device> target = std::nullopt) { Learner::Options o; o.device = dtl::dev(1); o.target_device = target; return Learner(policy(), o); }
static void greedy_bad() { Actor(policy(), dtl::dev(1)).act_greedy(torch::rand({3})); }
static void evaluate_bad() { evaluate(policy(), dtl::dev(1), {torch::rand({3})}); }
static void distill_bad() { learner(dtl::dev(2)).distill(rollout()); }
static void entropy_bad() { learner().entropy(rollout(-1)); }
static void gap_bad() { learner().baseline_gap(rollout()); }
static void whiten_bad() { torch::save(torch::ones({3}), "/tmp/dt_plugins_scale.pt"); auto l = learner(); whiten(l, rollout(), dtl::dev(1), "/tmp/dt_plugins_scale.pt"); }
static void blend_bad() { auto l = learner(); auto p = policy(); ParameterServer s; attach_soft(l, p, s); }
static void blend_ok() { auto l = learner(); auto p = policy(); ParameterServer s; attach(l, p, s); Actor(policy(), dtl::dev(2)).sync(s); }
static void whiten_ok() { torch::save(torch::ones({3}), "/tmp/dt_plugins_scale.pt"); auto l = learner(); whiten_on(l, rollout(), dtl::dev(1), "/tmp/dt_plugins_scale.pt"); }
static void learn_ok() {
  auto l = learner(dtl::dev(2));
  auto r = rollout();
  l.learn(r); l.learn_weighted(r, torch::ones({1})); l.distill_moved(r); l.return_of(r);
  l.save("/tmp/dt_plugins_learner.pt"); l.restore("/tmp/dt_plugins_learner.pt"); l.learn(r);
}
static void actor_ok() { Actor a(policy(), dtl::dev(1)); a.act(torch::rand({3})); evaluate_here(policy(), dtl::dev(1), {torch::rand({3})}); Actor(policy(), torch::kCPU).act_greedy(torch::rand({3})); }
static void replay_ok() {
  Replay p(4, 0.6);
  p.add(rollout());
  p.add(rollout(2), dtl::gpu({3}));
  auto [rollouts, indices] = p.sample(2);
  p.update(indices, dtl::gpu({2}));
  p.importance(indices, 0.4);
  p.update_all(dtl::gpu({4}));
  RolloutQueue q(4);
  q.put(rollout());
  RolloutQueue::stack({q.take(), rollout(2)});
}
DT_MAIN(greedy_bad, evaluate_bad, distill_bad, entropy_bad, gap_bad, whiten_bad, blend_bad, blend_ok, whiten_ok, learn_ok, actor_ok, replay_ok)
#endif
