// Tensors in vectors, arrays, maps and pairs.
#include "../cases.h"
#include <torch/torch.h>

#include <array>
#include <deque>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

static void range_for_by_value_bad() {
  std::vector<torch::Tensor> parts{torch::rand({2, 3}), torch::rand({2, 3})};
  for (auto part : parts)
    part = part.to(torch::kCUDA); // [[device-discarded-move]]
  parts.push_back(torch::rand({2, 3}, torch::kCUDA));
  auto all = torch::cat(parts); // [[device-mixed-op]]
  TORCH_CHECK(all.size(0) == 6);
}

static void range_for_by_reference_ok() {
  std::vector<torch::Tensor> parts{torch::rand({2, 3}), torch::rand({2, 3})};
  for (auto &part : parts)
    part = part.to(torch::kCUDA);
  parts.push_back(torch::rand({2, 3}, torch::kCUDA));
  auto all = torch::cat(parts);
  TORCH_CHECK(all.size(0) == 6);
}

static void only_first_element_moved_bad() {
  std::vector<torch::Tensor> hs;
  hs.push_back(torch::rand({4}));
  hs.emplace_back(torch::rand({4}));
  hs[0] = hs[0].to(torch::kCUDA);
  auto s = torch::stack(hs, 0); // [[device-mixed-op]]
  TORCH_CHECK(s.dim() == 2);
}

static void both_elements_moved_ok() {
  std::vector<torch::Tensor> hs;
  hs.push_back(torch::rand({4}));
  hs.emplace_back(torch::rand({4}));
  hs[0] = hs[0].to(torch::kCUDA);
  hs[1] = hs[1].to(torch::kCUDA);
  auto s = torch::stack(hs, 0);
  TORCH_CHECK(s.dim() == 2);
}

static void losses_collected_and_moved_ok() {
  std::vector<torch::Tensor> history;
  for (int i = 0; i < 3; ++i) {
    auto loss = torch::rand({4}, torch::kCUDA).mean();
    history.emplace_back(loss.detach().to(torch::kCPU));
  }
  auto mean = torch::stack(history).mean() + torch::zeros({1});
  TORCH_CHECK(!mean.is_cuda());
}

static void map_entry_forgotten_bad() {
  std::map<std::string, torch::Tensor> inputs;
  inputs["image"] = torch::rand({1, 3}).to(torch::kCUDA);
  inputs["bias"] = torch::rand({1, 3});
  auto out = inputs["image"] + inputs["bias"]; // [[device-mixed-op]]
  TORCH_CHECK(out.defined());
}

static void map_all_entries_moved_ok() {
  std::map<std::string, torch::Tensor> inputs;
  inputs["image"] = torch::rand({1, 3});
  inputs["bias"] = torch::rand({1, 3});
  for (auto &kv : inputs)
    kv.second = kv.second.to(torch::kCUDA);
  auto out = inputs.at("image") + inputs.at("bias") * torch::ones({3}, torch::kCUDA);
  TORCH_CHECK(out.is_cuda());
}

static void structured_binding_over_map_ok() {
  std::unordered_map<std::string, torch::Tensor> state{{"w", torch::rand({2})}, {"b", torch::rand({2})}};
  for (auto &[name, tensor] : state) {
    tensor = tensor.to(torch::kCUDA);
    TORCH_CHECK(!name.empty());
  }
  auto y = state["w"] * torch::rand({2}, torch::kCUDA) + state["b"];
  TORCH_CHECK(y.is_cuda());
}

static void structured_binding_copy_over_map_bad() {
  std::unordered_map<std::string, torch::Tensor> state{{"w", torch::rand({2})}, {"b", torch::rand({2})}};
  for (auto [name, tensor] : state) {
    tensor = tensor.to(torch::kCUDA);
    TORCH_CHECK(!name.empty());
  }
  auto y = state["w"] * torch::rand({2}, torch::kCUDA); // [[device-mixed-op]]
  TORCH_CHECK(y.defined());
}

static void array_of_two_bad() {
  std::array<torch::Tensor, 2> pair{torch::rand({3}, torch::kCUDA), torch::rand({3})};
  auto d = torch::dot(pair[0], pair[1]); // [[device-mixed-op]]
  TORCH_CHECK(d.defined());
}

static void pair_members_ok() {
  std::pair<torch::Tensor, torch::Tensor> xy = {torch::rand({3}), torch::rand({3})};
  xy.first = xy.first.to(torch::kCUDA);
  xy.second = xy.second.to(xy.first.device());
  auto d = torch::dot(xy.first, xy.second);
  TORCH_CHECK(d.is_cuda());
}

static void pair_second_forgotten_bad() {
  std::pair<torch::Tensor, torch::Tensor> xy = {torch::rand({3}), torch::rand({3})};
  xy.first = xy.first.to(torch::kCUDA);
  auto d = torch::dot(xy.first, xy.second); // [[device-mixed-op]]
  TORCH_CHECK(d.defined());
}

DT_MAIN(range_for_by_value_bad, range_for_by_reference_ok, only_first_element_moved_bad,
        both_elements_moved_ok, losses_collected_and_moved_ok, map_entry_forgotten_bad,
        map_all_entries_moved_ok, structured_binding_over_map_ok, structured_binding_copy_over_map_bad,
        array_of_two_bad, pair_members_ok, pair_second_forgotten_bad)
