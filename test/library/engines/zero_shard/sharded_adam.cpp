#include "zero.h"

#include <algorithm>

namespace zero {

ShardedAdam::ShardedAdam(const Group& group, std::vector<torch::Tensor> params, AdamOptions options)
    : group_(group), params_(std::move(params)), options_(options) {
  int64_t total = 0;
  for (const auto& p : params_)
    total += p.numel();
  const int64_t shard = (total + group_.size() - 1) / group_.size();
  flat_ = torch::zeros({shard}, torch::dtype(torch::kFloat).device(device()));
  m_ = torch::zeros_like(flat_);
  v_ = torch::zeros_like(flat_);
  snapshot_ = flat_.clone();
}

void ShardedAdam::step() {
  auto grads = torch::ones({flat_.numel() * group_.size()}, flat_.options());
  const auto mine = group_.reduce_scatter(grads);
  adam_step(flat_, mine, m_, v_, options_);
}

void ShardedAdam::zero_grad() {
  for (auto& p : params_)
    if (p.grad().defined())
      p.mutable_grad().zero_();
}

double ShardedAdam::clip(double max_norm) {
  std::vector<torch::Tensor> norms;
  for (const auto& p : params_)
    norms.push_back(p.grad().norm());
  const auto total = torch::stack(norms).norm();
  const auto limit = torch::full({1}, max_norm);
  const auto factor = torch::minimum(limit / (total + 1e-6).unsqueeze(0), torch::ones_like(limit)); // [[device-mixed-op]]
  for (auto& p : params_)
    p.mutable_grad().mul_(factor);
  return total.item<double>();
}

double ShardedAdam::clip_global(double max_norm) {
  auto squared = torch::zeros({}, torch::dtype(torch::kFloat).device(device()));
  for (const auto& p : params_)
    squared += p.grad().pow(2).sum();
  group_.all_reduce(squared);
  const auto total = squared.sqrt();
  const auto factor = (torch::tensor(max_norm) / (total + 1e-6)).clamp_max(1);
  for (auto& p : params_)
    p.mutable_grad().mul_(factor);
  return total.item<double>();
}

void ShardedAdam::offload() {
  m_ = m_.to(torch::kCPU);
  v_ = v_.to(torch::kCPU);
}

void ShardedAdam::reload() {
  m_ = m_.to(flat_.device(), /*non_blocking=*/true);
  v_ = v_.to(flat_.device(), /*non_blocking=*/true);
}

void ShardedAdam::save(const std::string& file) const {
  torch::serialize::OutputArchive archive;
  archive.write("m", m_.cpu());
  archive.write("v", v_.cpu());
  archive.save_to(file);
}

void ShardedAdam::resume(const std::string& file) { torch::load(snapshot_, file); }

void ShardedAdam::resume_mapped(const std::string& file) {
  torch::serialize::InputArchive archive;
  archive.load_from(file, device());
  archive.read("m", m_);
  archive.read("v", v_);
}

void ShardedAdam::decay_moments(double factor) {
  m_.mul_(torch::scalar_tensor(factor));
  v_.mul_(torch::scalar_tensor(factor * factor));
}

void ShardedAdam::blend(double weight) {
  flat_ = flat_.to(params_.front().device());
  flat_.lerp_(snapshot_, weight); // [[device-load-placement]]
}

std::vector<float> ShardedAdam::sample(int64_t count) const {
  std::vector<float> out(count);
  const float* values = m_.data_ptr<float>();
  std::copy(values, values + count, out.begin()); // [[device-host-access]]
  return out;
}

} // namespace zero

#ifdef DT_RUN
#include "../../shim/driver.h"
using namespace zero;
template <typename F> static void world(F f) {
  ncclUniqueId id;
  ncclGetUniqueId(&id);
  dtl::ranks(2, [&](int) { f(World::from_env(id)); });
}
template <typename F> static void adam(F f) {
  world([&](const World& w) {
    const auto g = Group::open(w);
    auto p = torch::rand({6}, torch::device(dtl::dev(w.local_rank)).requires_grad(true));
    p.mutable_grad() = torch::ones_like(p.detach());
    ShardedAdam a(g, {p}, {});
    f(a, w);
  });
}
static void side_bad() { world([](const World& w) { auto g = Group::open_with_side_stream(w); auto t = dtl::gpu({4}, w.local_rank); g.all_reduce(t); }); }
static void rebuild_bad() {
  ncclUniqueId next;
  ncclGetUniqueId(&next);
  dtl::ranks(2, [&](int) { Group g; g.rebuild(World::from_env(next)); });
}
static void step_bad() { world([](const World& w) { Group::open(w).agree_on_step(3); }); }
static void fixed_bad() { world([](const World& w) { auto g = Group::open(w); Block b(4); train_first_step(w, g, b); }); }
static void offload_bad() { adam([](ShardedAdam& a, const World&) { a.offload(); a.step(); }); }
static void unscale_bad() { unscale({torch::Tensor(), dtl::gpu({4})}, 0.5f); }
static void clip_bad() { adam([](ShardedAdam& a, const World&) { a.clip(1); }); }
static void blend_bad() {
  torch::save(torch::rand({3}), "flat.pt");
  adam([](ShardedAdam& a, const World&) { a.resume("flat.pt"); a.blend(0.5); });
}
static void sample_bad() { adam([](ShardedAdam& a, const World&) { a.sample(2); }); }
static void open_ok() {
  world([](const World& w) {
    auto g = Group::open(w);
    auto t = dtl::gpu({4}, w.local_rank);
    g.all_reduce(t);
    g.broadcast(t, 0);
    g.all_gather(t);
    g.any_overflow({t});
    g.mean_loss(0.5);
    g.close();
  });
}
static void train_ok() { world([](const World& w) { auto g = Group::open(w); Block b(4); train_step(w, g, b); }); }
static void adam_ok() { adam([](ShardedAdam& a, const World&) { a.step(); a.offload(); a.reload(); a.step(); a.clip_global(1); a.zero_grad(); a.decay_moments(0.5); }); }
static void resume_ok() { adam([](ShardedAdam& a, const World& w) { const auto f = "adam" + std::to_string(w.rank); a.save(f); a.resume_mapped(f); a.step(); }); }
static void sample_ok() { adam([](ShardedAdam& a, const World&) { a.offload(); a.decay_moments(0.5); a.sample(2); }); }
static void unscale_ok() { unscale_each({torch::Tensor(), dtl::gpu({4}), dtl::gpu({4}, 2)}, 0.5f); pack_bucket({dtl::gpu({4}), dtl::gpu({4}, 2)}); }
DT_MAIN(side_bad, rebuild_bad, step_bad, fixed_bad, offload_bad, unscale_bad, clip_bad, blend_bad, sample_bad, open_ok,
        train_ok, adam_ok, resume_ok, sample_ok, unscale_ok)
#endif
