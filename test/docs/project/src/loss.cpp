#include "loss.h"

torch::Tensor lossOf(torch::Tensor logits, torch::Tensor target) {
  return torch::nn::functional::cross_entropy(logits, target);
}
