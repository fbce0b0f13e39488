#include "loss.h"

torch::Tensor lossOf(torch::Tensor prediction, torch::Tensor target) {
  return torch::mse_loss(prediction, target);
}
