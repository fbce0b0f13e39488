// Other ways an option gets from where it is written to the loader, beside a process group.
#include <torch/torch.h>

#include <nlohmann/json.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "../cases.h"

using nlohmann::json;

static c10::intrusive_ptr<c10d::TCPStore> joinRanks() {
  c10d::TCPStoreOptions options;
  options.port = 0;
  options.isServer = true;
  options.numWorkers = 1;
  return c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options);
}

static int worldSize() {
  const char *text = std::getenv("WORLD_SIZE");
  return text ? std::atoi(text) : 1;
}

struct NetImpl : torch::nn::Module {
  NetImpl() { head = register_module("head", torch::nn::Linear(4, 2)); }
  torch::nn::Linear head{nullptr};
};
TORCH_MODULE(Net);

// A setter in the manner of TensorOptions.
class LoaderOptions {
public:
  LoaderOptions &deviceMap(std::string value) {
    deviceMap_ = std::move(value);
    return *this;
  }
  const std::string &deviceMap() const { return deviceMap_; }

private:
  std::string deviceMap_;
};

static Net loadModel(const LoaderOptions &options) {
  Net net;
  if (options.deviceMap() == "cpu")
    net->to(torch::kCPU);
  return net;
}

static Net fromPretrained(const std::string &path, const std::string &device_map) {
  TORCH_CHECK(!path.empty() || device_map.empty());
  return Net();
}

static Net loadFromArguments(const std::vector<std::string> &arguments) {
  TORCH_CHECK(!arguments.empty());
  return Net();
}

static Net loadFromList(const std::vector<std::pair<std::string, std::string>> &options) {
  TORCH_CHECK(!options.empty());
  return Net();
}

static Net loadWithConfig(const json &config) {
  TORCH_CHECK(config.is_object());
  return Net();
}

static Net loadWithPlacement(const std::map<std::string, int> &device_map) {
  TORCH_CHECK(device_map.size() < 100);
  return Net();
}

void setter_auto_bad() {
  auto store = joinRanks();
  auto net = loadModel(LoaderOptions().deviceMap("auto")); // [[device-map-distributed]]
  TORCH_CHECK(net->head->weight.defined());
}

void setter_of_a_place_ok() {
  auto store = joinRanks();
  auto net = loadModel(LoaderOptions().deviceMap("cpu"));
  TORCH_CHECK(net->head->weight.defined());
}

void parameter_sequential_bad() {
  auto store = joinRanks();
  const std::string strategy = "sequential";
  auto net = fromPretrained("qwen", strategy); // [[device-map-distributed]]
  TORCH_CHECK(net->head->weight.defined());
}

void parameter_empty_ok() {
  auto store = joinRanks();
  const std::string strategy;
  auto net = fromPretrained("qwen", strategy);
  TORCH_CHECK(net->head->weight.defined());
}

void command_line_bad() {
  auto store = joinRanks();
  auto net = loadFromArguments({"--fp16", "--device_map", "balanced_low_0"}); // [[device-map-distributed]]
  TORCH_CHECK(net->head->weight.defined());
}

void command_line_ok() {
  auto store = joinRanks();
  auto net = loadFromArguments({"--fp16", "--device_map", "none"});
  TORCH_CHECK(net->head->weight.defined());
}

void option_list_bad() {
  auto store = joinRanks();
  std::vector<std::pair<std::string, std::string>> options;
  options.emplace_back("dtype", "bf16");
  options.emplace_back("device-map", "auto");
  auto net = loadFromList(options); // [[device-map-distributed]]
  TORCH_CHECK(net->head->weight.defined());
}

void option_list_ok() {
  auto store = joinRanks();
  std::vector<std::pair<std::string, std::string>> options;
  options.emplace_back("dtype", "auto");
  auto net = loadFromList(options);
  TORCH_CHECK(net->head->weight.defined());
}

void json_assigned_bad() {
  auto store = joinRanks();
  json config;
  config["model"]["device_map"] = "auto";
  auto net = loadWithConfig(config); // [[device-map-distributed]]
  TORCH_CHECK(net->head->weight.defined());
}

void json_braces_bad() {
  auto store = joinRanks();
  const json config = {{"torch_dtype", "auto"}, {"device_map", {{"wte", 0}, {"h", 1}, {"lm_head", 1}}}};
  auto net = loadWithConfig(config); // [[device-map-distributed]]
  TORCH_CHECK(net->head->weight.defined());
}

void json_one_entry_ok() {
  auto store = joinRanks();
  json config = {{"torch_dtype", "auto"}};
  config["device_map"] = {{"", 0}};
  auto net = loadWithConfig(config);
  TORCH_CHECK(net->head->weight.defined());
}

void json_erased_ok() {
  auto store = joinRanks();
  auto config = json::parse(R"({"device_map": "auto", "dtype": "bf16"})");
  config.erase("device_map");
  auto net = loadWithConfig(config);
  TORCH_CHECK(net->head->weight.defined());
}

void json_null_ok() {
  auto store = joinRanks();
  auto config = json::parse(R"({"device_map": "auto", "dtype": "bf16"})");
  config["device_map"] = nullptr;
  auto net = loadWithConfig(config);
  TORCH_CHECK(net->head->weight.defined());
}

void entries_bad() {
  auto store = joinRanks();
  std::map<std::string, int> placement;
  placement["wte"] = 0;
  placement["lm_head"] = 1;
  auto net = loadWithPlacement(placement); // [[device-map-distributed]]
  TORCH_CHECK(net->head->weight.defined());
}

void one_entry_ok() {
  auto store = joinRanks();
  auto net = loadWithPlacement({{"", 0}});
  TORCH_CHECK(net->head->weight.defined());
}

// The map is for one process, the group for several.
void map_of_one_process_ok() {
  LoaderOptions options;
  if (worldSize() > 1) {
    auto store = joinRanks();
    TORCH_CHECK(store);
  } else {
    options.deviceMap("auto");
  }
  auto net = loadModel(options);
  TORCH_CHECK(net->head->weight.defined());
}

void map_before_the_group_bad() {
  LoaderOptions options;
  options.deviceMap("auto");
  auto net = loadModel(options); // [[device-map-distributed]]
  auto store = joinRanks();
  TORCH_CHECK(net->head->weight.defined());
}

// Options that are only shown load nothing.
static std::string describe(const LoaderOptions &options) { return "device map " + options.deviceMap(); }

void options_are_printed_ok() {
  auto store = joinRanks();
  const auto text = describe(LoaderOptions().deviceMap("auto"));
  TORCH_CHECK(!text.empty());
}

// Embedding on one device, head on another, by number, in every rank.
void layers_by_number_bad() {
  auto store = joinRanks();
  torch::nn::Linear first(4, 4), last(4, 2);
  first->to(torch::Device(torch::kCUDA, 0));
  last->to(torch::Device(torch::kCUDA, 1)); // [[device-map-distributed]]
}

void layers_on_one_number_ok() {
  auto store = joinRanks();
  torch::nn::Linear first(4, 4), last(4, 2);
  first->to(torch::Device(torch::kCUDA, 0));
  last->to(torch::Device(torch::kCUDA, 0));
}

DT_MAIN(setter_auto_bad, setter_of_a_place_ok, parameter_sequential_bad, parameter_empty_ok, command_line_bad,
        command_line_ok, option_list_bad, option_list_ok, json_assigned_bad, json_braces_bad, json_one_entry_ok,
        json_erased_ok, json_null_ok, entries_bad, one_entry_ok, map_of_one_process_ok, map_before_the_group_bad,
        options_are_printed_ok, layers_by_number_bad, layers_on_one_number_ok)
