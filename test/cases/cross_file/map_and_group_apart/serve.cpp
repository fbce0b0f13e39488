// A program of its own: one process, layers spread by a map. The other file here is another program.
#include <torch/torch.h>

#include <string>
#include <vector>

struct ServeArguments {
  std::string device_map = "auto";
};

static std::vector<torch::nn::Linear> load_model(const ServeArguments &arguments) {
  std::vector<torch::nn::Linear> layers;
  const int gpus = static_cast<int>(torch::cuda::device_count());
  for (int i = 0; i < 4; ++i) {
    layers.emplace_back(4, 4);
    if (arguments.device_map == "auto" && gpus > 0)
      layers.back()->to(torch::Device(torch::kCUDA, static_cast<c10::DeviceIndex>(i % gpus)));
  }
  return layers;
}

int main() {
  ServeArguments arguments;
  arguments.device_map = "auto";
  auto layers = load_model(arguments);
  torch::NoGradGuard off;
  auto h = torch::rand({1, 4});
  for (auto &layer : layers)
    h = layer(h.to(layer->weight.device()));
  return h.defined() ? 0 : 1;
}
