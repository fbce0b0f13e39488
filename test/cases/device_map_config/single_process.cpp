// The same maps in a program of one process: pipeline inference, nothing to report.
#include "../cases.h"
#include <torch/torch.h>

#include <string>
#include <vector>

struct ServeOptions {
  std::string device_map = "auto";
  int64_t layers = 4;
};

static std::vector<torch::nn::Linear> load_model(const ServeOptions &options) {
  std::vector<torch::nn::Linear> layers;
  const size_t gpus = torch::cuda::device_count();
  for (int64_t i = 0; i < options.layers; ++i) {
    layers.emplace_back(4, 4);
    if (options.device_map == "auto" && gpus > 0)
      layers.back()->to(torch::Device(torch::kCUDA, static_cast<c10::DeviceIndex>(i % gpus)));
  }
  return layers;
}

static void serve_spread_model_ok() {
  torch::NoGradGuard off;
  auto layers = load_model(ServeOptions());
  auto h = torch::rand({1, 4});
  for (auto &layer : layers)
    h = layer(h.to(layer->weight.device()));
  TORCH_CHECK(h.defined());
}

static void serve_balanced_model_ok() {
  ServeOptions options;
  options.device_map = "balanced";
  options.layers = 2;
  auto layers = load_model(options);
  TORCH_CHECK(layers.size() == 2);
}

DT_MAIN(serve_spread_model_ok, serve_balanced_model_ok)
