// A whole small program: an encoder-decoder with skip connections, a weighted loss, metrics and a checkpoint.
#include "../cases.h"
#include <torch/torch.h>

#include <iomanip>
#include <iostream>
#include <sstream>
#include <vector>

namespace nn = torch::nn;
namespace F = torch::nn::functional;

static nn::Sequential convBlock(int64_t in, int64_t out) {
  return nn::Sequential(nn::Conv2d(nn::Conv2dOptions(in, out, 3).padding(1)), nn::BatchNorm2d(out),
                        nn::ReLU(nn::ReLUOptions().inplace(true)));
}

class UNetImpl : public nn::Module {
public:
  explicit UNetImpl(int64_t classes)
      : down1_(register_module("down1", convBlock(3, 4))), down2_(register_module("down2", convBlock(4, 8))),
        bottom_(register_module("bottom", convBlock(8, 8))),
        up1_(register_module("up1", nn::ConvTranspose2d(nn::ConvTranspose2dOptions(8, 8, 2).stride(2)))),
        merge_(register_module("merge", convBlock(16, 4))),
        head_(register_module("head", nn::Conv2d(nn::Conv2dOptions(4, classes, 1)))) {}

  torch::Tensor forward(const torch::Tensor &image) {
    auto a = down1_->forward(image);
    auto b = down2_->forward(a);
    auto c = bottom_->forward(torch::max_pool2d(b, 2));
    auto up = up1_->forward(c);
    auto merged = merge_->forward(torch::cat({up, b}, /*dim=*/1));
    return head_->forward(merged);
  }

private:
  nn::Sequential down1_, down2_, bottom_;
  nn::ConvTranspose2d up1_;
  nn::Sequential merge_;
  nn::Conv2d head_;
};
TORCH_MODULE(UNet);

struct Metrics {
  explicit Metrics(int64_t classes) : confusion(torch::zeros({classes, classes}, torch::kLong)) {}

  void add(const torch::Tensor &logits, const torch::Tensor &target) {
    const auto classes = confusion.size(0);
    auto predicted = logits.argmax(1).flatten().to(torch::kCPU);
    auto index = target.flatten().to(torch::kCPU) * classes + predicted;
    confusion += torch::bincount(index, {}, classes * classes).view({classes, classes});
  }
  double accuracy() const {
    return confusion.diagonal().sum().item<double>() / confusion.sum().item<double>();
  }
  torch::Tensor confusion;
};

struct Scene {
  torch::Tensor image, label;
};

static Scene scene(int64_t classes) {
  return {torch::rand({2, 3, 8, 8}), torch::randint(classes, {2, 8, 8}, torch::kLong)};
}

static std::string report(int epoch, double loss, const Metrics &m) {
  std::ostringstream s;
  s << "epoch " << epoch << " loss " << std::fixed << std::setprecision(3) << loss << " acc " << m.accuracy();
  return s.str();
}

void segmentation_class_weights_bad() {
  const int64_t classes = 3;
  torch::Device device = torch::kCPU;
  if (torch::cuda::is_available())
    device = torch::kCUDA;
  UNet net(classes);
  net->to(device);
  auto class_weights = torch::tensor({0.2f, 1.0f, 2.5f});
  torch::optim::AdamW optimizer(net->parameters(), torch::optim::AdamWOptions(1e-3));
  Metrics metrics(classes);
  for (int epoch = 0; epoch < 2; ++epoch) {
    auto s = scene(classes);
    auto image = s.image.to(device), label = s.label.to(device);
    auto logits = net->forward(image);
    auto options = F::CrossEntropyFuncOptions().weight(class_weights).ignore_index(255);
    auto loss = F::cross_entropy(logits, label, options); // [[device-loss-input]]
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    metrics.add(logits, s.label);
    std::cout << report(epoch, loss.item<double>(), metrics) << '\n';
  }
}

void segmentation_ok() {
  const int64_t classes = 3;
  torch::Device device = torch::kCPU;
  if (torch::cuda::is_available())
    device = torch::kCUDA;
  UNet net(classes);
  net->to(device);
  auto class_weights = torch::tensor({0.2f, 1.0f, 2.5f}).to(device);
  torch::optim::AdamW optimizer(net->parameters(), torch::optim::AdamWOptions(1e-3));
  Metrics metrics(classes);
  for (int epoch = 0; epoch < 2; ++epoch) {
    auto s = scene(classes);
    auto image = s.image.to(device), label = s.label.to(device);
    auto logits = net->forward(image);
    auto options = F::CrossEntropyFuncOptions().weight(class_weights).ignore_index(255);
    auto loss = F::cross_entropy(logits, label, options);
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    metrics.add(logits, s.label);
    std::cout << report(epoch, loss.item<double>(), metrics) << '\n';
  }
}

// Inference with the image's own device, thresholding on the host, colouring with a host palette.
void segmentation_inference_palette_ok() {
  UNet net(3);
  net->to(torch::kCUDA);
  net->eval();
  torch::NoGradGuard off;
  auto palette = torch::tensor({0, 0, 0, 255, 0, 0, 0, 255, 0}, torch::kUInt8).view({3, 3});
  auto labels = net->forward(scene(3).image.to(torch::kCUDA)).argmax(1).cpu();
  auto coloured = palette.index({labels}).permute({0, 3, 1, 2});
  TORCH_CHECK(coloured.size(1) == 3);
}

void segmentation_inference_palette_bad() {
  UNet net(3);
  net->to(torch::kCUDA);
  net->eval();
  torch::NoGradGuard off;
  auto palette = torch::tensor({0, 0, 0, 255, 0, 0, 0, 255, 0}, torch::kUInt8).view({3, 3});
  auto labels = net->forward(scene(3).image.to(torch::kCUDA)).argmax(1);
  auto coloured = palette.index({labels}).permute({0, 3, 1, 2}); // [[device-mixed-op]]
  TORCH_CHECK(coloured.size(1) == 3);
}

DT_MAIN(segmentation_class_weights_bad, segmentation_ok, segmentation_inference_palette_ok,
        segmentation_inference_palette_bad)
