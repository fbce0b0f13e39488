#include "loss.h"

int main() {
  torch::Tensor logits = torch::randn({8, 4}, torch::Device(torch::kCUDA, 0));
  lossOf(logits, torch::randint(4, {8}, torch::kLong));
}
