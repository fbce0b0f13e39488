// Both files have a static makeWeights() and an anonymous Scaler: they are different entities.
#include <torch/torch.h>

#include "sides.h"

static torch::Tensor makeWeights() { return torch::ones({3}); }

namespace {
struct Scaler {
  torch::Tensor factor = torch::full({3}, 2.0);
};
} // namespace

torch::Tensor hostSide() { return makeWeights() * Scaler().factor; }
