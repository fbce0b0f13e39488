#include "engine.h"

namespace spec {

torch::Tensor RepetitionPenalty::apply(const torch::Tensor& logits, const Tokens& history) {
  if (history.empty())
    return logits;
  const auto seen = torch::tensor(history, torch::kLong).to(logits.device());
  const auto picked = logits.gather(0, seen);
  return logits.scatter(0, seen, torch::where(picked > 0, picked / penalty_, picked * penalty_));
}

LogitBias::LogitBias(const std::unordered_map<int64_t, float>& bias, int64_t vocab) {
  bias_ = torch::zeros({vocab});
  for (const auto& [token, value] : bias)
    bias_[token] = value;
}

torch::Tensor LogitBias::apply(const torch::Tensor& logits, const Tokens&) {
  if (bias_.device() != logits.device())
    bias_ = bias_.to(logits.device());
  return logits + bias_;
}

torch::Tensor TopP::apply(const torch::Tensor& logits, const Tokens&) {
  const auto [sorted, order] = logits.softmax(-1).sort(-1, /*descending=*/true);
  const auto cut = sorted.cumsum(-1) - sorted > torch::scalar_tensor(p_);
  const auto drop = torch::zeros_like(cut).scatter(-1, order, cut);
  return logits.masked_fill(drop, -1e9);
}

torch::Tensor GrammarMask::apply(const torch::Tensor& logits, const Tokens&) {
  auto blocked = torch::ones({logits.size(-1)}, torch::kBool);
  for (int64_t token : allowed_)
    blocked[token] = false;
  return logits.masked_fill(blocked, -1e9); // [[device-mixed-op]]
}

} // namespace spec
