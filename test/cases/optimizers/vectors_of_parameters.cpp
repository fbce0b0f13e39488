// Parameters as one vector: they have to be on one device, and become slices of the vector they are read from.
#include "../cases.h"

#include <torch/torch.h>

namespace {

void read_back_bad() {
  torch::nn::Linear layer(2, 2);
  auto values = torch::rand({6}, torch::kCUDA);
  torch::nn::utils::vector_to_parameters(values, layer->parameters());
  layer(torch::rand({3, 2})); // [[device-mixed-op]]
}
void read_back_ok() {
  torch::nn::Linear layer(2, 2);
  auto values = torch::rand({6}, torch::kCUDA);
  torch::nn::utils::vector_to_parameters(values, layer->parameters());
  layer(torch::rand({3, 2}, torch::kCUDA));
}

void state_asked_for_bad() {
  torch::nn::Linear layer(2, 2);
  torch::optim::SGD optimizer(layer->parameters(), 0.1);
  layer(torch::rand({3, 2})).sum().backward();
  auto &state = optimizer.state();
  layer->to(torch::kCUDA);
  optimizer.step(); // [[device-mixed-op]]
  (void)state;
}

} // namespace

DT_MAIN(read_back_bad, read_back_ok, state_asked_for_bad)
