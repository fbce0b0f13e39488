#include "loss.h"

int main() {
  torch::Device device(torch::kCUDA, 0);
  torch::Tensor weights = torch::randn({16, 4}, device).requires_grad_();
  torch::Tensor images = torch::randn({8, 16});
  torch::Tensor prediction = images.mm(weights);
  lossOf(prediction, torch::zeros({8, 4}, device)).backward();
}
