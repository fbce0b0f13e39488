// Library code that is given a model: what its Sequential holds is not known here, where it has moved to is.
#include <torch/torch.h>

#include "../cases.h"

namespace painting {

struct PainterImpl : torch::nn::Module {
  explicit PainterImpl(int blocks) {
    for (int i = 0; i < blocks; ++i)
      layers->push_back(torch::nn::Linear(4, 4));
    layers->push_back(torch::nn::Tanh());
    register_module("layers", layers);
  }
  torch::Tensor forward(const torch::Tensor &x) { return layers->forward(x); } // [[device-mixed-op]]
  torch::nn::Sequential layers;
};
TORCH_MODULE(Painter);

void sample(Painter &painter, const torch::Device &device) {
  painter->to(device);
  painter->forward(torch::randn({2, 4})); // fails in forward
}

void sampleThere(Painter &painter, const torch::Device &device) {
  painter->to(device);
  painter->forward(torch::randn({2, 4}, device));
}

torch::Tensor distance(Painter &painter, const torch::Tensor &x, const torch::Device &device) {
  painter->to(device);
  return torch::mse_loss(painter->forward(x.to(device)), torch::ones({2, 4})); // [[device-loss-input]]
}

torch::Tensor distanceThere(Painter &painter, const torch::Tensor &x, const torch::Device &device) {
  painter->to(device);
  return torch::mse_loss(painter->forward(x.to(device)), torch::ones({2, 4}, device));
}

torch::Tensor distanceWhereGiven(Painter &painter, const torch::Tensor &x) {
  return torch::mse_loss(painter->forward(x), torch::ones_like(x));
}

} // namespace painting

#ifdef DT_RUN
using painting::Painter;
void sample_bad() {
  Painter painter(3);
  painting::sample(painter, torch::kCUDA);
}
void sample_there_ok() {
  Painter painter(3);
  painting::sampleThere(painter, torch::kCUDA);
}
void distance_bad() {
  Painter painter(3);
  painting::distance(painter, torch::ones({2, 4}), torch::kCUDA);
}
void distance_there_ok() {
  Painter painter(3);
  painting::distanceThere(painter, torch::ones({2, 4}), torch::kCUDA);
}
void distance_where_given_ok() {
  Painter painter(3);
  painting::distanceWhereGiven(painter, torch::ones({2, 4}));
}

DT_MAIN(sample_bad, sample_there_ok, distance_bad, distance_there_ok, distance_where_given_ok)
#endif
