// Modules reached through their parent's lists, and members that a helper of the constructor makes.
#include "../cases.h"

#include <map>
#include <torch/torch.h>

namespace {

struct TaggerImpl : torch::nn::Module {
  TaggerImpl() {
    embed = register_module("embed", torch::nn::Embedding(8, 4));
    head = register_module("head", torch::nn::Linear(4, 8));
  }
  torch::Tensor forward(const torch::Tensor &ids) {
    return head(embed(ids));
  }
  torch::nn::Embedding embed{nullptr};
  torch::nn::Linear head{nullptr};
};
TORCH_MODULE(Tagger);

torch::Tensor ids(torch::Device device) {
  return torch::zeros({2, 3}, torch::dtype(torch::kLong).device(device));
}

void by_name_ok() {
  Tagger tagger;
  const std::map<std::string, int> placement{{"embed", 1}, {"head", 1}};
  for (const auto &[name, device] : placement)
    for (auto &child : tagger->named_children())
      if (child.key() == name)
        child.value()->to(torch::Device(torch::kCUDA, static_cast<c10::DeviceIndex>(device)));
  tagger(ids(torch::Device("cuda:1")));
}
void every_module_ok() {
  Tagger tagger;
  for (auto &module : tagger->modules(/*include_self=*/false))
    module->to(torch::kCUDA);
  tagger(ids(torch::kCUDA));
}

struct HalfMovedImpl : torch::nn::Module {
  HalfMovedImpl() {
    embed = register_module("embed", torch::nn::Embedding(8, 4));
    head = register_module("head", torch::nn::Linear(4, 8));
  }
  torch::Tensor forward(const torch::Tensor &ids) {
    return head(embed(ids)); // [[device-mixed-op]]
  }
  torch::nn::Embedding embed{nullptr};
  torch::nn::Linear head{nullptr};
};
TORCH_MODULE(HalfMoved);
void one_child_bad() {
  HalfMoved tagger;
  for (auto &child : tagger->named_children())
    if (child.key() == "embed")
      child.value()->to(torch::kCUDA);
  tagger(ids(torch::kCUDA));
}

torch::Tensor sinusoid(std::int64_t length, std::int64_t width) {
  auto table = torch::zeros({length, width});
  table.select(1, 0).copy_(torch::arange(length));
  return table;
}
struct PositionsImpl : torch::nn::Module {
  PositionsImpl() { table = sinusoid(16, 4); }
  torch::Tensor forward(const torch::Tensor &x) {
    return x + table.narrow(0, 0, x.size(0)); // [[device-unregistered-tensor]]
  }
  torch::Tensor table;
};
TORCH_MODULE(Positions);
void helper_made_bad() {
  torch::nn::Sequential stem(torch::nn::Linear(4, 4), Positions());
  stem->to(torch::kCUDA);
  stem->forward(torch::rand({3, 4}, torch::kCUDA));
}
struct KeptPositionsImpl : torch::nn::Module {
  KeptPositionsImpl() { table = register_buffer("table", sinusoid(16, 4)); }
  torch::Tensor forward(const torch::Tensor &x) { return x + table.narrow(0, 0, x.size(0)); }
  torch::Tensor table;
};
TORCH_MODULE(KeptPositions);
void helper_made_ok() {
  torch::nn::Sequential stem(torch::nn::Linear(4, 4), KeptPositions());
  stem->to(torch::kCUDA);
  stem->forward(torch::rand({3, 4}, torch::kCUDA));
}

// Modules that come from another container, or under a new name.
void extended_bad() {
  torch::nn::ModuleList layers(torch::nn::Linear(2, 2)), more(torch::nn::Linear(2, 2), torch::nn::Linear(2, 2));
  layers->to(torch::kCUDA);
  layers->extend(*more);
  auto x = torch::rand({2, 2}, torch::kCUDA);
  for (const auto &layer : *layers)
    x = layer->as<torch::nn::Linear>()->forward(x); // [[device-mixed-op]]
}
void extended_ok() {
  torch::nn::ModuleList layers(torch::nn::Linear(2, 2)), more(torch::nn::Linear(2, 2), torch::nn::Linear(2, 2));
  layers->extend(*more);
  layers->to(torch::kCUDA);
  auto x = torch::rand({2, 2}, torch::kCUDA);
  for (const auto &layer : *layers)
    x = layer->as<torch::nn::Linear>()->forward(x);
  for (const auto &layer : *more)
    x = layer->as<torch::nn::Linear>()->forward(x);
}

torch::OrderedDict<std::string, std::shared_ptr<torch::nn::Module>> head(const std::string &name, int outputs) {
  torch::OrderedDict<std::string, std::shared_ptr<torch::nn::Module>> heads;
  heads.insert(name, torch::nn::Linear(4, outputs).ptr());
  return heads;
}
void updated_bad() {
  torch::nn::ModuleDict heads(head("policy", 3));
  heads->to(torch::kCUDA);
  heads->update(head("value", 1));
  auto x = torch::rand({2, 4}, torch::kCUDA);
  heads["policy"]->as<torch::nn::Linear>()->forward(x);
  heads["value"]->as<torch::nn::Linear>()->forward(x); // [[device-mixed-op]]
}
void updated_ok() {
  torch::nn::ModuleDict heads(head("policy", 3));
  heads->update(head("value", 1));
  heads->to(torch::kCUDA);
  auto x = torch::rand({2, 4}, torch::kCUDA);
  heads["policy"]->as<torch::nn::Linear>()->forward(x);
  heads["value"]->as<torch::nn::Linear>()->forward(x);
}

void extended_by_a_loop_ok() {
  torch::nn::ModuleList layers, more;
  const int count = torch::cuda::device_count();
  for (int i = 0; i < count; ++i)
    more->push_back(torch::nn::Linear(2, 2));
  layers->extend(*more);
  layers->to(torch::kCUDA);
  auto x = torch::rand({2, 2}, torch::kCUDA);
  for (const auto &layer : *more)
    x = layer->as<torch::nn::Linear>()->forward(x);
}

} // namespace

DT_MAIN(extended_bad, extended_ok, updated_bad, updated_ok, by_name_ok, every_module_ok, one_child_bad,
        helper_made_bad, helper_made_ok, extended_by_a_loop_ok)
