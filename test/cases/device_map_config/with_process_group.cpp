// A placement map that comes from configuration, in a program that also builds a rendezvous store.
#include <torch/torch.h>

#include <nlohmann/json.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "../cases.h"

struct LoadOptions {
  std::string checkpoint;
  std::string device_map;
  bool half = false;
};

struct LayeredModel {
  std::vector<torch::nn::Linear> layers;
};

static c10::intrusive_ptr<c10d::TCPStore> rendezvous() {
  c10d::TCPStoreOptions options;
  options.port = 0;
  options.isServer = true;
  options.numWorkers = 1;
  return c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options);
}

static LayeredModel load_model(const LoadOptions &options) {
  LayeredModel model;
  for (int i = 0; i < 2; ++i)
    model.layers.emplace_back(4, 4);
  if (options.device_map == "auto" || options.device_map == "balanced")
    model.layers[1]->to(torch::Device(torch::kCUDA, 1));
  return model;
}

using StringMap = std::map<std::string, std::string>;

static LayeredModel load_model_with(const std::string &checkpoint, const StringMap &options) {
  return load_model({checkpoint, options.count("device_map") ? options.at("device_map") : "", false});
}

void options_struct_auto_bad() {
  auto store = rendezvous();
  LoadOptions options;
  options.checkpoint = "qwen-14b";
  options.device_map = "auto";
  auto model = load_model(options); // [[device-map-distributed]]
  TORCH_CHECK(model.layers.size() == 2);
}

void options_struct_empty_ok() {
  auto store = rendezvous();
  LoadOptions options;
  options.checkpoint = "qwen-14b";
  options.half = true;
  auto model = load_model(options);
  TORCH_CHECK(model.layers.size() == 2);
}

void options_struct_none_ok() {
  auto store = rendezvous();
  LoadOptions options{"qwen-14b", "none", true};
  auto model = load_model(options);
  TORCH_CHECK(model.layers.size() == 2);
}

void option_map_balanced_bad() {
  auto model = load_model_with("qwen-14b", {{"device_map", "balanced"}}); // [[device-map-distributed]]
  TORCH_CHECK(model.layers.size() == 2);
}

void option_map_other_key_ok() {
  auto model = load_model_with("qwen-14b", {{"torch_dtype", "auto"}});
  TORCH_CHECK(model.layers.size() == 2);
}

void json_config_bad() {
  auto config = nlohmann::json::parse(R"({"lora_r": 8, "device_map": "auto"})");
  LoadOptions options;
  options.device_map = config["device_map"].get<std::string>();
  auto model = load_model(options); // [[device-map-distributed]]
  TORCH_CHECK(model.layers.size() == 2);
}

void json_config_ok() {
  auto config = nlohmann::json::parse(R"({"lora_r": 8, "scheduler": "auto"})");
  LoadOptions options;
  options.device_map = config.value("device_map", std::string());
  auto model = load_model(options);
  TORCH_CHECK(model.layers.size() == 2);
}

// The C++ form: layers spread over all GPUs of the machine while every rank does the same.
void layers_over_the_global_range_bad() {
  auto store = rendezvous();
  std::vector<torch::nn::Linear> layers;
  for (size_t i = 0; i < 4; ++i) {
    layers.emplace_back(4, 4);
    const auto index = static_cast<c10::DeviceIndex>(i % torch::cuda::device_count());
    layers.back()->to(torch::Device(torch::kCUDA, index)); // [[device-map-distributed]]
  }
}

void layers_on_the_ranks_gpu_ok() {
  auto store = rendezvous();
  const char *text = std::getenv("LOCAL_RANK");
  const auto rank = static_cast<c10::DeviceIndex>(text ? std::atoi(text) : 0);
  std::vector<torch::nn::Linear> layers;
  for (size_t i = 0; i < 4; ++i) {
    layers.emplace_back(4, 4);
    layers.back()->to(torch::Device(torch::kCUDA, rank));
  }
}

// Model parallel inside a rank's own share of the GPUs.
void layers_in_the_ranks_share_ok() {
  auto store = rendezvous();
  const char *text = std::getenv("LOCAL_RANK");
  const int rank = text ? std::atoi(text) : 0;
  const int perRank = 2;
  std::vector<torch::nn::Linear> layers;
  for (int i = 0; i < 4; ++i) {
    layers.emplace_back(4, 4);
    const auto index = static_cast<c10::DeviceIndex>(rank * perRank + i % perRank);
    layers.back()->to(torch::Device(torch::kCUDA, index));
  }
}

DT_MAIN(options_struct_auto_bad, options_struct_empty_ok, options_struct_none_ok, option_map_balanced_bad,
        option_map_other_key_ok, json_config_bad, json_config_ok, layers_over_the_global_range_bad,
        layers_on_the_ranks_gpu_ok, layers_in_the_ranks_share_ok)
