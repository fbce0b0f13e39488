#include <torch/torch.h>

#include "../../cases.h"
#include "sides.h"

static torch::Tensor makeWeights() { return torch::ones({3}, torch::kCUDA); }

namespace {
struct Scaler {
  torch::Tensor factor = torch::full({3}, 2.0, torch::kCUDA);
};
} // namespace

void each_side_by_itself_ok() {
  auto here = makeWeights() * Scaler().factor;
  auto there = hostSide();
  TORCH_CHECK(here.is_cuda() && !there.is_cuda());
}

void the_sides_meet_bad() {
  auto sum = makeWeights() + hostSide(); // [[device-mixed-op]]
  TORCH_CHECK(sum.defined());
}

void the_sides_meet_after_a_move_ok() {
  auto sum = makeWeights() + hostSide().to(torch::kCUDA);
  TORCH_CHECK(sum.defined());
}

DT_MAIN(each_side_by_itself_ok, the_sides_meet_bad, the_sides_meet_after_a_move_ok)
