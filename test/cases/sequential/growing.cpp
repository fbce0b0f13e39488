// Sequential models whose middle part is added in a loop, as generators of images are built.
#include <torch/torch.h>

#include <cstdlib>

#include "../cases.h"

using namespace torch;

struct PainterImpl : nn::Module {
  explicit PainterImpl(int blocks) {
    nn::Sequential layers(nn::Conv2d(nn::Conv2dOptions(3, 8, 3).padding(1)), nn::ReLU());
    for (int i = 0; i < blocks; ++i) {
      layers->push_back(nn::Conv2d(nn::Conv2dOptions(8, 8, 3).padding(1)));
      layers->push_back(nn::BatchNorm2d(8));
      layers->push_back(nn::ReLU());
    }
    layers->push_back(nn::Conv2d(nn::Conv2dOptions(8, 3, 3).padding(1)));
    layers->push_back(nn::Tanh());
    model = register_module("model", layers);
  }
  Tensor forward(const Tensor &x) { return model->forward(x); }
  nn::Sequential model{nullptr};
};
TORCH_MODULE(Painter);

static int blocks() { return std::getenv("HOME") ? 3 : 2; }

void generated_image_against_host_bad() {
  Painter generator(blocks());
  generator->to(kCUDA);
  auto real = torch::rand({1, 3, 8, 8});
  auto fake = generator->forward(real.to(kCUDA));
  auto loss = torch::l1_loss(fake, real); // [[device-loss-input]]
  loss.backward();
}

void generated_image_against_moved_ok() {
  Painter generator(blocks());
  generator->to(kCUDA);
  auto real = torch::rand({1, 3, 8, 8}).to(kCUDA);
  auto loss = torch::l1_loss(generator->forward(real), real);
  loss.backward();
}

void last_layer_added_after_the_move_bad() {
  nn::Sequential layers(nn::Linear(4, 4));
  for (int i = 0; i < blocks(); ++i)
    layers->push_back(nn::Linear(4, 4));
  layers->to(kCUDA);
  layers->push_back(nn::Linear(4, 2));
  auto y = layers->forward(torch::rand({2, 4}, kCUDA)); // [[device-mixed-op]]
  TORCH_CHECK(y.defined());
}

void last_layer_added_before_the_move_ok() {
  nn::Sequential layers(nn::Linear(4, 4));
  for (int i = 0; i < blocks(); ++i)
    layers->push_back(nn::Linear(4, 4));
  layers->push_back(nn::Linear(4, 2));
  layers->to(kCUDA);
  auto y = layers->forward(torch::rand({2, 4}, kCUDA));
  TORCH_CHECK(y.defined());
}

DT_MAIN(generated_image_against_host_bad, generated_image_against_moved_ok,
        last_layer_added_after_the_move_bad, last_layer_added_before_the_move_ok)
