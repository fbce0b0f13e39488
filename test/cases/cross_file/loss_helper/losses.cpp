#include "losses.h"

namespace F = torch::nn::functional;

namespace losses {

torch::Tensor focal(const torch::Tensor &logits, const torch::Tensor &target) {
  auto options = F::CrossEntropyFuncOptions().reduction(torch::kNone);
  auto ce = F::cross_entropy(logits, target, options); // [[device-loss-input]]
  return ((1 - torch::exp(-ce)).pow(2) * ce).mean();
}

torch::Tensor dice(const torch::Tensor &logits, const torch::Tensor &target) {
  auto p = torch::softmax(logits, 1);
  auto t = F::one_hot(target, logits.size(1)).to(p.device(), p.scalar_type());
  return 1 - 2 * (p * t).sum() / (p.sum() + t.sum());
}

torch::Tensor weighted(const torch::Tensor &logits, const torch::Tensor &target) {
  auto weight = torch::tensor({1.0f, 2.0f, 4.0f});
  auto options = F::CrossEntropyFuncOptions().weight(weight.to(logits.device()));
  return F::cross_entropy(logits, target.to(logits.device()), options);
}

} // namespace losses
