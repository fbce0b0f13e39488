#include "pipeline.h"

#include "comm.h"

#include <cmath>

namespace pllm {

namespace {
constexpr int64_t kLongest = 64;
bool before(torch::Device a, torch::Device b) { return a.index() < b.index(); }
} // namespace

Pipeline::Pipeline(int64_t vocabulary, int64_t width, int64_t layers, std::vector<torch::Device> devices)
    : devices_(std::move(devices)), width_(width), embed_(vocabulary, width), head_(width, vocabulary), rotary_(&before) {
  TORCH_CHECK(!devices_.empty() && layers > 0);
  embed_->to(devices_.front());
  head_->to(devices_.back());
  for (int64_t i = 0; i < layers; ++i) {
    Stage stage(width);
    stages_.push_back(stage);
    stage->to(devices_[i * devices_.size() / layers]);
  }
  std::tie(cos_, sin_) = angles(kLongest, width, devices_.front());
  for (const auto& device : devices_) {
    norms_.push_back(torch::ones({width}, device));
    scratch_.push_back(torch::zeros({kLongest}, torch::dtype(torch::kFloat).device(torch::kCUDA))); // [[device-lost-index]]
  }
}

const torch::Device& Pipeline::device_of_layer(size_t layer) const {
  return devices_[layer * devices_.size() / stages_.size()];
}

std::pair<torch::Tensor, torch::Tensor> Pipeline::angles(int64_t length, int64_t width, torch::Device device) {
  const auto options = torch::dtype(torch::kFloat).device(device);
  const auto rate = torch::pow(10000.0, -torch::arange(0, width, options) / width);
  const auto phase = torch::arange(0, length, options).unsqueeze(1) * rate;
  return {phase.cos(), phase.sin()};
}

torch::Tensor Pipeline::encode(const torch::Tensor& tokens) {
  torch::NoGradGuard no_grad;
  auto hidden = embed_(tokens.to(devices_.front()));
  for (size_t i = 0; i < stages_.size(); ++i)
    hidden = stages_[i]->forward(hidden.to(device_of_layer(i)));
  return head_(hidden.to(devices_.back()));
}

torch::Tensor Pipeline::encode_rotary(const torch::Tensor& tokens) {
  torch::NoGradGuard no_grad;
  auto hidden = embed_(tokens.to(devices_.front()));
  for (size_t i = 0; i < stages_.size(); ++i) {
    const auto x = hidden.to(devices_[i * devices_.size() / stages_.size()]);
    const auto turned = x * cos_.slice(0, 0, x.size(0)) + x.roll(1, -1) * sin_.slice(0, 0, x.size(0)); // [[device-mixed-op]]
    hidden = stages_[i]->forward(turned);
  }
  return head_(hidden.to(devices_.back()));
}

torch::Tensor Pipeline::encode_rotary_cached(const torch::Tensor& tokens) {
  torch::NoGradGuard no_grad;
  auto hidden = embed_(tokens.to(devices_.front()));
  for (size_t i = 0; i < stages_.size(); ++i) {
    hidden = hidden.to(device_of_layer(i));
    auto& table = rotary_[hidden.device()];
    if (!table.defined())
      table = cos_.to(hidden.device());
    hidden = stages_[i]->forward(hidden * table.slice(0, 0, hidden.size(0)));
  }
  return head_(hidden.to(devices_.back()));
}

torch::Tensor Pipeline::encode_fused(const torch::Tensor& tokens) {
  torch::NoGradGuard no_grad;
  auto hidden = embed_(tokens.to(devices_.front()));
  for (size_t d = 0; d < devices_.size(); ++d) {
    auto x = hidden.to(devices_[d]).contiguous();
    auto residual = torch::zeros_like(x);
    fused_add_norm(x, residual, norms_[d], scratch_[d]);
    hidden = x + residual;
  }
  return head_(hidden.to(devices_.back()));
}

double Pipeline::perplexity(const torch::Tensor& tokens) {
  const auto ids = tokens.to(devices_.front());
  const auto logits = encode(ids.slice(0, 0, -1));
  const auto loss = torch::nn::functional::cross_entropy(logits, ids.slice(0, 1)); // [[device-loss-input]]
  return std::exp(loss.item<double>());
}

double Pipeline::score(const torch::Tensor& tokens, const torch::Tensor& labels) {
  const auto logits = encode(tokens);
  const auto gold = labels.to(logits.device());
  const auto picked = logits.log_softmax(-1).gather(1, gold.unsqueeze(1));
  return picked.mean().item<double>();
}

} // namespace pllm

#ifdef DT_RUN
#include "../../shim/driver.h"
using namespace pllm;
static ncclUniqueId unique() { ncclUniqueId id; ncclGetUniqueId(&id); return id; }
template <typename F> static void workers(F f) {
  auto id = unique();
  dtl::ranks(2, [&](int r) { Worker w(r, 2, 4); w.initialize(id); f(w); });
}
static Pipeline pipe() { return Pipeline(10, 4, 4, {dtl::dev(1), dtl::dev(2)}); }
static torch::Tensor toks() { return torch::arange(6); }
static void group_bad() {
  auto id = unique();
  dtl::ranks(2, [&](int r) { TensorGroup g(id, r, 2, r); auto t = dtl::gpu({4}, r); g.all_reduce(t); });
}
static void expert_bad() { auto id = unique(); dtl::ranks(2, [&](int r) { new ExpertGroup(id, r, 2); }); }
static void logits_bad() { workers([](Worker &w) { w.gather_logits(torch::rand({1, 4})); }); }
static void lengths_bad() { workers([](Worker &w) { w.broadcast_lengths({1, 2}); }); }
static void reduce_bad() { auto o = dtl::gpu({8}); one_shot_reduce(one_shot_init(2), dtl::gpu({8}), o); }
static void scratch_bad() { pipe().encode_fused(toks()); }
static void rotary_bad() { pipe().encode_rotary(toks()); }
static void perplexity_bad() { pipe().perplexity(toks()); }
static void worker_ok() {
  workers([](Worker &w) {
    w.row_parallel(torch::rand({1, 4}));
    w.gather_columns(torch::rand({1, 4}));
    w.broadcast_tokens({1, 2});
    w.send_hidden(w.receive_hidden(2));
  });
}
static void pipeline_ok() { auto p = pipe(); p.encode(toks()); p.encode_rotary_cached(toks()); p.score(toks(), toks()); }
static void reduce_ok() { auto h = one_shot_init(2); auto o = dtl::gpu({8}, 0); one_shot_reduce(h, dtl::gpu({8}, 0), o); one_shot_free(h); }
static void norm_ok() { auto x = dtl::gpu({2, 4}), r = dtl::gpu({2, 4}), s = dtl::gpu({2}); fused_add_norm(x, r, dtl::gpu({4}), s); }
static void blocks_ok() { auto c = dtl::gpu({4, 8}, 2); copy_blocks(c, {{0, 1}, {2, 3}}); }
DT_MAIN(group_bad, expert_bad, logits_bad, lengths_bad, reduce_bad, scratch_bad, rotary_bad, perplexity_bad, worker_ok,
        pipeline_ok, reduce_ok, norm_ok, blocks_ok)
#endif
