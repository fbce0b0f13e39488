#include "loss.h"

int main() {
  torch::Tensor prediction = torch::randn({8, 4}, torch::Device(torch::kCUDA, 0));
  lossOf(prediction, torch::zeros({8, 4}));
}
