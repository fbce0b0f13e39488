#include "replay.h"

namespace zero {

void Replay::push(Transition t) {
  std::lock_guard<std::mutex> lock(mutex_);
  t.planes = t.planes.cpu();
  t.next_planes = t.next_planes.cpu();
  entries_.push_back(std::move(t));
  if (entries_.size() > capacity_)
    entries_.pop_front();
}

size_t Replay::size() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return entries_.size();
}

Batch Replay::sample(int64_t n) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto picks = torch::randint(static_cast<int64_t>(entries_.size()), {n}, torch::kLong);
  const int64_t* pick = picks.data_ptr<int64_t>();
  std::vector<torch::Tensor> planes, next_planes;
  std::vector<int64_t> moves;
  std::vector<float> rewards, terminals;
  for (int64_t i = 0; i < n; ++i) {
    const auto& t = entries_[pick[i]];
    planes.push_back(t.planes);
    next_planes.push_back(t.next_planes);
    moves.push_back(t.move);
    rewards.push_back(t.reward);
    terminals.push_back(t.terminal);
  }
  Batch batch{torch::stack(planes), torch::stack(next_planes), torch::tensor(moves), torch::tensor(rewards),
              torch::tensor(terminals)};
  if (pinned_) {
    batch.planes = batch.planes.pin_memory();
    batch.next_planes.pin_memory(); // [[device-discarded-move]]
  }
  return batch;
}

Learner::Learner(int64_t planes, int64_t hidden, int64_t moves, torch::Device device) : device_(device) {
  for (const char* name : {"online", "target"})
    nets_.emplace(name, Tower(planes, hidden, moves));
  nets_.at("online")->to(device_);
  hard_update();
}

torch::Tensor Learner::nstep_targets(const Batch& batch, double discount) {
  torch::NoGradGuard no_grad;
  const auto q = nets_.at("online")->forward(batch.next_planes.to(device_)).first;
  const auto best = std::get<0>(q.max(1));
  return batch.rewards + discount * best * (1 - batch.terminals.to(device_)); // [[device-mixed-op]]
}

torch::Tensor Learner::double_q_loss(const Batch& batch, double discount) {
  const auto on = batch.to(device_);
  const auto q = nets_.at("online")->forward(on.planes).first.gather(1, on.moves.unsqueeze(1)).squeeze(1);
  torch::Tensor target;
  {
    torch::NoGradGuard no_grad;
    const auto choice = nets_.at("online")->forward(on.next_planes).first.argmax(1, true).cpu();
    const auto next = nets_.at("target")->forward(batch.next_planes.cpu()).first.gather(1, choice).squeeze(1);
    target = on.rewards + discount * next.to(device_) * (1 - on.terminals);
  }
  return torch::nn::functional::smooth_l1_loss(q, target);
}

void Learner::hard_update() {
  torch::NoGradGuard no_grad;
  const auto source = nets_.at("online")->parameters();
  auto sink = nets_.at("target")->parameters();
  for (size_t i = 0; i < sink.size(); ++i)
    sink[i].copy_(source[i]);
}

void Learner::soft_update(double tau) {
  torch::NoGradGuard no_grad;
  const auto source = nets_.at("online")->parameters();
  auto sink = nets_.at("target")->parameters();
  for (size_t i = 0; i < sink.size(); ++i)
    sink[i].lerp_(source[i], tau); // [[device-mixed-op]]
}

PriorityView Learner::refresh(const torch::Tensor& errors) {
  view_.count = errors.numel();
  view_.error = (errors.abs() + 1e-6).cpu().data_ptr<float>(); // [[device-dangling-data]]
  return view_;
}

std::vector<float> Learner::priorities(const torch::Tensor& errors) const {
  std::vector<float> out(errors.numel());
  std::memcpy(out.data(), errors.abs().to(torch::kCPU, torch::kFloat).contiguous().data_ptr<float>(),
              out.size() * sizeof(float));
  return out;
}

void Learner::save(const std::string& path) { torch::save(nets_.at("online"), path); }

void Learner::resume(const std::string& path) {
  auto& online = nets_.at("online");
  torch::load(online, path);
  online->to(device_);
  hard_update();
}

} // namespace zero

#ifdef DT_RUN
#include "../../shim/driver.h"
using namespace zero;
static Batch batch() {
  Replay r(10, false);
  for (int i = 0; i < 12; ++i)
    r.push({torch::rand({4}), torch::rand({4}), i % 3, 1, false});
  return r.sample(5);
}
static void expand_bad() { Evaluator e(Tower(4, 8, 3)); Node n; Search(e, 0.25).expand(n, torch::rand({4})); }
static void actor_bad() { RecurrentActor a(4, 8, dtl::dev(1)); a.act(torch::rand({4})); a.new_game(); a.act(torch::rand({4})); }
static void placement_bad() { torch::zeros({3}, Placement::automatic(3).learner); }
static void sample_bad() { sample_async(dtl::gpu({16}), dtl::gpu({4})).get(); }
static void pin_discarded_bad() { Replay r(4, true); r.push({torch::rand({4}), torch::rand({4}), 1, 1, false}); dtl::require(r.sample(2).next_planes.is_pinned(), "planes"); }
static void nstep_bad() { Learner(4, 8, 3, dtl::dev(1)).nstep_targets(batch(), 0.9); }
static void soft_bad() { Learner(4, 8, 3, dtl::dev(1)).soft_update(0.1); }
static void refresh_bad() {
  Learner l(4, 8, 3, dtl::dev(1));
  auto v = l.refresh(dtl::gpu({64}) + 1);
  for (int i = 0; i < 64; ++i)
    dtl::require(v.error[i] >= 1 && v.error[i] <= 2.1, "priorities");
}
static void search_ok() {
  Evaluator e(Tower(4, 8, 3));
  Node n;
  Search s(e, 0.25);
  s.expand_root(n, torch::rand({4}));
  s.leaf_values({torch::rand({4}), torch::rand({4})});
  Search::visit_policy(n, 3, 1);
}
static void actor_ok() { RecurrentActor a(4, 8, dtl::dev(1)); a.act(torch::rand({4})); a.import_state(a.export_state()); a.act(torch::rand({4})); }
static void placement_ok() { for (auto d : Placement::shared(5).actors) torch::zeros({1}, d); torch::zeros({1}, Placement::shared(5).learner); }
static void importance_ok() { importance_async(dtl::gpu({16}), dtl::longs({4}), 0.5).get(); }
static void tree_ok() { auto t = dtl::gpu({16}); update_tree(t, torch::zeros({4}, torch::kLong), torch::rand({4})); }
static void loss_ok() { Learner l(4, 8, 3, dtl::dev(1)); l.double_q_loss(batch(), 0.9).backward(); l.priorities(dtl::gpu({4})); }
static void resume_ok() { Learner l(4, 8, 3, dtl::dev(1)); l.save("zero.pt"); Learner m(4, 8, 3, dtl::dev(2)); m.resume("zero.pt"); m.double_q_loss(batch(), 0.9); }
DT_MAIN(expand_bad, actor_bad, placement_bad, sample_bad, pin_discarded_bad, nstep_bad, soft_bad, refresh_bad, search_ok,
        actor_ok, placement_ok, importance_ok, tree_ok, loss_ok, resume_ok)
#endif
