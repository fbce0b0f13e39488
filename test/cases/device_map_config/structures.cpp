// Options inside other structures, and layers spread by hand, beside a process group.
#include <torch/torch.h>

#include <nlohmann/json.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "../cases.h"

using nlohmann::json;

struct ModelConfig {
  std::string path;
  std::string device_map = "auto";
};

struct TrainConfig {
  int epochs = 1;
  ModelConfig model;
};

static c10::intrusive_ptr<c10d::TCPStore> joinRanks() {
  c10d::TCPStoreOptions options;
  options.port = 0;
  options.isServer = true;
  options.numWorkers = 1;
  return c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options);
}

static int rankOnHost() {
  const char *text = std::getenv("LOCAL_RANK");
  return text ? std::atoi(text) : 0;
}

struct NetImpl : torch::nn::Module {
  explicit NetImpl(const ModelConfig &given) : config(given) {
    head = register_module("head", torch::nn::Linear(4, 2));
  }
  ModelConfig config;
  torch::nn::Linear head{nullptr};
};
TORCH_MODULE(Net);

// The trainer gets all options; the model is built inside.
struct Trainer {
  explicit Trainer(const TrainConfig &config) : store(joinRanks()) {
    net = buildModel(config.model); // [[device-map-distributed]]
  }
  Net buildModel(const ModelConfig &config) { return Net(config); }
  c10::intrusive_ptr<c10d::TCPStore> store;
  Net net{nullptr};
};

void trainer_with_default_map_bad() {
  TrainConfig config;
  Trainer trainer(config);
  TORCH_CHECK(trainer.net->head->weight.defined());
}

// Made of all options, which it keeps: the model is built later.
struct LateTrainer {
  explicit LateTrainer(TrainConfig given) : config(std::move(given)) {}
  void setup() {
    store = joinRanks();
    net = buildModel(config.model.path, config.model.device_map); // [[device-map-distributed]]
  }
  static std::shared_ptr<torch::nn::LinearImpl> buildModel(const std::string &, const std::string &) {
    return std::make_shared<torch::nn::LinearImpl>(2, 2);
  }
  TrainConfig config;
  c10::intrusive_ptr<c10d::TCPStore> store;
  std::shared_ptr<torch::nn::LinearImpl> net;
};

void trainer_that_builds_later_bad() {
  TrainConfig config;
  LateTrainer trainer(config);
  trainer.setup();
  TORCH_CHECK(trainer.net->weight.defined());
}

struct PlainConfig {
  std::string path, device_map;
};

static void from_json(const json &text, PlainConfig &config) {
  text.at("path").get_to(config.path);
  config.device_map = text.value("device_map", "");
}

static Net loadModel(const PlainConfig &config) { return Net(ModelConfig{config.path, ""}); }

void json_into_struct_bad() {
  auto store = joinRanks();
  auto config = json::parse(R"({"path": "qwen", "device_map": "auto"})").get<PlainConfig>();
  auto net = loadModel(config); // [[device-map-distributed]]
  TORCH_CHECK(net->head->weight.defined());
}

void json_into_struct_ok() {
  auto store = joinRanks();
  auto config = json::parse(R"({"path": "qwen"})").get<PlainConfig>();
  auto net = loadModel(config);
  TORCH_CHECK(net->head->weight.defined());
}

struct OptionalMap {
  std::optional<std::string> device_map;
};

static Net createModel(const OptionalMap &options) { return Net(ModelConfig{options.device_map.value_or("cpu"), ""}); }

void optional_balanced_bad() {
  auto store = joinRanks();
  OptionalMap options;
  options.device_map = "balanced";
  auto net = createModel(options); // [[device-map-distributed]]
  TORCH_CHECK(net->head->weight.defined());
}

void optional_empty_ok() {
  auto store = joinRanks();
  auto net = createModel(OptionalMap());
  TORCH_CHECK(net->head->weight.defined());
}

void shared_options_bad() {
  auto store = joinRanks();
  auto options = std::make_shared<OptionalMap>();
  options->device_map = "auto";
  auto net = createModel(*options); // [[device-map-distributed]]
  TORCH_CHECK(net->head->weight.defined());
}

static Net loadWithPlacement(const std::map<std::string, int> &placement) {
  TORCH_CHECK(placement.size() < 100);
  return Net(ModelConfig{"qwen", ""});
}

void map_filled_in_a_loop_bad() {
  auto store = joinRanks();
  const int gpus = static_cast<int>(torch::cuda::device_count());
  std::map<std::string, int> device_map;
  for (int i = 0; i < 12; ++i)
    device_map["h" + std::to_string(i)] = i % gpus;
  auto net = loadWithPlacement(device_map); // [[device-map-distributed]]
  TORCH_CHECK(net->head->weight.defined());
}

void map_of_the_rank_ok() {
  auto store = joinRanks();
  std::map<std::string, int> device_map;
  for (int i = 0; i < 12; ++i)
    device_map["h" + std::to_string(i)] = rankOnHost();
  auto net = loadWithPlacement(device_map);
  TORCH_CHECK(net->head->weight.defined());
}

static std::vector<torch::nn::Linear> makeLayers(size_t count) {
  std::vector<torch::nn::Linear> layers;
  for (size_t i = 0; i < count; ++i)
    layers.emplace_back(4, 4);
  return layers;
}

void layers_over_a_device_list_bad() {
  auto store = joinRanks();
  std::vector<torch::Device> devices;
  for (size_t d = 0; d < torch::cuda::device_count(); ++d)
    devices.emplace_back(torch::kCUDA, static_cast<c10::DeviceIndex>(d));
  auto layers = makeLayers(8);
  for (size_t i = 0; i < layers.size(); ++i)
    layers[i]->to(devices[i % devices.size()]); // [[device-map-distributed]]
}

void layers_by_device_string_bad() {
  auto store = joinRanks();
  auto layers = makeLayers(8);
  for (size_t i = 0; i < layers.size(); ++i)
    layers[i]->to("cuda:" + std::to_string(i % torch::cuda::device_count())); // [[device-map-distributed]]
}

void layers_folded_onto_the_ranks_gpu_ok() {
  auto store = joinRanks();
  const int gpus = static_cast<int>(torch::cuda::device_count());
  auto layers = makeLayers(8);
  for (size_t i = 0; i < layers.size(); ++i)
    layers[i]->to(torch::Device(torch::kCUDA, static_cast<c10::DeviceIndex>(rankOnHost() % gpus)));
}

DT_MAIN(trainer_with_default_map_bad, trainer_that_builds_later_bad, json_into_struct_bad, json_into_struct_ok, optional_balanced_bad,
        optional_empty_ok, shared_options_bad, map_filled_in_a_loop_bad, map_of_the_rank_ok,
        layers_over_a_device_list_bad, layers_by_device_string_bad, layers_folded_onto_the_ranks_gpu_ok)
