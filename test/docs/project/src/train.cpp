#include "loss.h"

int main() {
  torch::Device device(torch::kCUDA, 0);
  torch::nn::Linear model(16, 4);
  model->to(device);
  torch::Tensor images = torch::randn({8, 16});
  torch::Tensor logits = model->forward(images);
  lossOf(logits, torch::randint(4, {8}, torch::TensorOptions(torch::kLong).device(device))).backward();
}
