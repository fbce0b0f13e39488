#include "engine.h"

namespace spec {

namespace {

torch::Tensor rotate(const torch::Tensor& x, const torch::Tensor& angles) {
  const auto half = x.size(-1) / 2;
  const auto a = x.slice(-1, 0, half), b = x.slice(-1, half);
  return torch::cat({a * angles.cos() - b * angles.sin(), b * angles.cos() + a * angles.sin()}, -1);
}

torch::Tensor alibi_slopes(int64_t heads) {
  return torch::pow(2., -torch::arange(1, heads + 1, torch::kFloat) * (8. / heads));
}

} // namespace

CausalLmImpl::CausalLmImpl(const ModelConfig& config) : config_(config) {
  embed = register_module("embed", torch::nn::Embedding(config.vocab, config.width));
  head = register_module("head", torch::nn::Linear(config.width, config.vocab));
  inv_freq_ = torch::pow(10000., -torch::arange(0, config.width / 2, torch::kFloat) / (config.width / 2));
  slopes_ = register_buffer("slopes", alibi_slopes(4));
  bias_ = register_buffer("bias", torch::full({config.max_positions, config.max_positions}, -1e9).triu(1));
}

torch::Tensor CausalLmImpl::forward(const torch::Tensor& ids, int64_t past) {
  const auto x = embed(ids);
  const auto positions = torch::arange(past, past + ids.size(-1), ids.options()).to(torch::kFloat);
  const auto angles = positions.unsqueeze(-1) * inv_freq_; // [[device-unregistered-tensor]]
  return head(rotate(x, angles));
}

torch::Tensor CausalLmImpl::score(const torch::Tensor& ids) { return head(embed(ids)); }

torch::Tensor CausalLmImpl::attention_bias(int64_t length) const {
  const auto distance = torch::arange(length, slopes_.options());
  const auto relative = (distance.unsqueeze(0) - distance.unsqueeze(1)).unsqueeze(0) * slopes_.view({-1, 1, 1});
  return relative + bias_.slice(0, 0, length).slice(1, 0, length);
}

SpeculativeEngine::SpeculativeEngine(const ModelConfig& config, torch::Device target, torch::Device draft)
    : config_(config), target_device_(target), draft_device_(draft), target_(config), draft_(config) {
  target_->to(target_device_);
  draft_->to(draft_device_);
  draft_temperature_ = torch::full({config.vocab}, 0.8, draft_device_);
}

void SpeculativeEngine::move_draft(torch::Device device) {
  draft_device_ = device;
  draft_->to(device);
}

torch::Tensor SpeculativeEngine::ids_on(const Tokens& tokens, torch::Device device) const {
  return torch::tensor(tokens, torch::dtype(torch::kLong).device(device));
}

Proposal SpeculativeEngine::propose(const Tokens& prompt, int k) {
  torch::NoGradGuard no_grad;
  Proposal out;
  const Tokens tail(prompt.end() - k, prompt.end());
  const auto logits = draft_->score(ids_on(tail, draft_device_));
  out.probs = (logits / draft_temperature_).softmax(-1); // [[device-mixed-op]]
  const auto picked = out.probs.argmax(-1).cpu();
  for (int i = 0; i < k; ++i)
    out.tokens.push_back(picked[i].item<int64_t>());
  return out;
}

torch::Tensor SpeculativeEngine::acceptance(const Tokens& prompt, const Proposal& proposal) {
  torch::NoGradGuard no_grad;
  const Tokens tail(prompt.end() - proposal.tokens.size(), prompt.end());
  const auto p = target_->score(ids_on(tail, target_device_)).softmax(-1);
  const auto ids = ids_on(proposal.tokens, target_device_).unsqueeze(1);
  const auto q = proposal.probs.gather(1, ids.to(proposal.probs.device()));
  return (p.gather(1, ids) / q.to(p.device())).clamp_max(1).squeeze(1);
}

Tokens SpeculativeEngine::verify(const Tokens& prompt, const Proposal& proposal) {
  const auto accept = acceptance(prompt, proposal);
  const auto draws = torch::rand_like(accept);
  const auto taken = draws.lt(accept).to(torch::kLong).cumprod(0);
  const int64_t* flags = taken.data_ptr<int64_t>();
  Tokens out;
  for (size_t i = 0; i < proposal.tokens.size(); ++i) {
    if (!flags[i]) // [[device-host-access]]
      break;
    out.push_back(proposal.tokens[i]);
  }
  return out;
}

torch::Tensor SpeculativeEngine::next_logits(const Tokens& history) {
  torch::NoGradGuard no_grad;
  auto logits = target_->score(ids_on({history.empty() ? 0 : history.back()}, target_device_)).squeeze(0);
  for (const auto& processor : processors_)
    logits = processor->apply(logits, history);
  return logits;
}

void SpeculativeEngine::load_adapter(const std::string& file) {
  std::vector<torch::Tensor> parts;
  torch::load(parts, file);
  lora_a_ = parts.at(0);
  lora_b_ = parts.at(1);
}

torch::Tensor SpeculativeEngine::adapted_hidden(const torch::Tensor& hidden) const {
  const auto x = hidden.to(target_device_);
  return x + x.matmul(lora_a_).matmul(lora_b_); // [[device-load-placement]]
}

float SpeculativeEngine::distill_step(const Tokens& tokens) {
  torch::Tensor teacher;
  {
    torch::NoGradGuard no_grad;
    teacher = target_->score(ids_on(tokens, target_device_)).softmax(-1);
  }
  const auto student = draft_->score(ids_on(tokens, draft_device_)).log_softmax(-1);
  const auto loss = torch::kl_div(student, teacher, at::Reduction::Mean); // [[device-loss-input]]
  loss.backward();
  return loss.item<float>();
}

float SpeculativeEngine::agreement(const Tokens& tokens) {
  const auto teacher = target_->score(ids_on(tokens, target_device_)).argmax(-1);
  const auto student = draft_->score(ids_on(tokens, draft_device_)).argmax(-1);
  return teacher.cpu().eq(student.to(torch::kCPU)).to(torch::kFloat).mean().item<float>();
}

} // namespace spec

#ifdef DT_RUN
#include "../../shim/driver.h"
using namespace spec;
static SpeculativeEngine engine() { return SpeculativeEngine({}, dtl::dev(1), dtl::dev(2)); }
static void swap_bad() { PagePool p(4, 2, 8, dtl::dev(1)); p.swap_out({0, 2}); }
static void grammar_bad() {
  auto e = engine();
  auto g = std::make_unique<GrammarMask>();
  g->allow({1, 2});
  e.add_processor(std::move(g));
  e.next_logits({1});
}
static void freq_bad() { CausalLm m(ModelConfig{}); m->to(dtl::dev(1)); m->forward(dtl::longs({1, 5})); }
static void moved_bad() { auto e = engine(); e.move_draft(dtl::dev(3)); e.propose({1, 2, 5, 4}, 3); }
static void verify_bad() { auto e = engine(); e.verify({1, 2, 5, 4}, e.propose({1, 2, 5, 4}, 3)); }
static void adapter_bad() {
  torch::save(std::vector<torch::Tensor>{torch::rand({8, 2}), torch::rand({2, 8})}, "adapter.pt");
  auto e = engine();
  e.load_adapter("adapter.pt");
  e.adapted_hidden(torch::rand({3, 8}));
}
static void distill_bad() { engine().distill_step({1, 2, 3, 4}); }
static void processors_ok() {
  auto e = engine();
  e.add_processor(std::make_unique<RepetitionPenalty>(1.2));
  e.add_processor(std::make_unique<LogitBias>(std::unordered_map<int64_t, float>{{3, 1.f}}, 16));
  e.add_processor(std::make_unique<TopP>(0.9));
  e.next_logits({1, 2});
  e.next_logits({});
}
static void pages_ok() {
  PagePool p(4, 2, 8, dtl::dev(1));
  p.write(1, 0, torch::rand({8}));
  p.fork(1, 2);
  p.gather({1, 2});
  p.page_norms();
  p.swap_in({0}, 7);
}
static void host_pool_ok() { PagePool p(4, 2, 8, torch::kCPU); p.swap_out({0}); p.swap_in({1}, 0); }
static void bias_ok() { CausalLm m(ModelConfig{}); m->to(dtl::dev(1)); m->attention_bias(7); }
static void propose_ok() { auto e = engine(); auto p = e.propose({1, 2, 5, 4}, 3); e.acceptance({1, 2, 5, 4}, p); e.agreement(p.tokens); }
DT_MAIN(swap_bad, grammar_bad, freq_bad, moved_bad, verify_bad, adapter_bad, distill_bad, processors_ok, pages_ok,
        host_pool_ok, bias_ok, propose_ok)
#endif
