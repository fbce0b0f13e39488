// Maps whose entries are kept, replaced and found by text and by number; lists that are generated.
#include "../cases.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <torch/torch.h>
#include <vector>

namespace {

using Columns = std::map<std::string, torch::Tensor>;

// emplace leaves alone what is there.
void kept_entry_bad() {
  Columns columns{{"age", torch::rand(4)}, {"price", torch::rand(4)}};
  const Columns source = columns;
  for (const auto &[name, column] : source)
    columns.emplace(name, column.to(torch::kCUDA));
  auto x = columns.at("age") + torch::rand(4, torch::kCUDA); // [[device-mixed-op]]
}
void replaced_entry_ok() {
  Columns columns{{"age", torch::rand(4)}, {"price", torch::rand(4)}};
  const Columns source = columns;
  for (const auto &[name, column] : source)
    columns.insert_or_assign(name, column.to(torch::kCUDA));
  auto x = columns.at("age") + torch::rand(4, torch::kCUDA);
}
void inserted_once_bad() {
  Columns cache;
  cache.insert({"mask", torch::ones(4)});
  auto [entry, isNew] = cache.insert({"mask", torch::ones(4, torch::kCUDA)});
  auto x = entry->second * torch::rand(4, torch::kCUDA); // [[device-mixed-op]]
}

// Numbers as keys are numbers again when they are read.
void number_keys_bad() {
  std::map<int, torch::Tensor> experts{{0, torch::rand(3)}, {1, torch::rand(3)}};
  for (auto &[id, weight] : experts)
    weight = weight.to(torch::Device(torch::kCUDA, static_cast<c10::DeviceIndex>(id)));
  auto x = experts[1] * torch::rand(3, torch::Device("cuda:0")); // [[device-mixed-op]]
}
void number_keys_ok() {
  std::map<int, torch::Tensor> experts{{0, torch::rand(3)}, {1, torch::rand(3)}};
  for (auto &[id, weight] : experts)
    if (id == 1)
      weight = weight.cuda();
  auto x = experts[1] * torch::rand(3, torch::kCUDA);
}
void empty_key_ok() {
  const std::map<std::string, int> placement{{"", 1}};
  auto weight = torch::rand(3);
  for (const auto &[name, device] : placement)
    if (name.empty())
      weight = weight.to(torch::Device(torch::kCUDA, static_cast<c10::DeviceIndex>(device)));
  auto x = weight * torch::rand(3, torch::Device("cuda:1"));
}

std::vector<torch::Tensor> votes(std::size_t members) {
  std::vector<torch::Tensor> result(members);
  std::generate(result.begin(), result.end(), [] { return torch::rand({2, 5}, torch::kCUDA); });
  return result;
}
void generated_bad() {
  const auto all = votes(3);
  std::accumulate(all.begin(), all.end(), torch::zeros({2, 5}),
                  [](const torch::Tensor &sum, const torch::Tensor &vote) {
                    return sum + vote.softmax(1); // [[device-mixed-op]]
                  });
}
void generated_ok() {
  const auto all = votes(3);
  std::accumulate(all.begin(), all.end(), torch::zeros({2, 5}, torch::kCUDA),
                  [](const torch::Tensor &sum, const torch::Tensor &vote) { return sum + vote.softmax(1); });
}

} // namespace

DT_MAIN(kept_entry_bad, replaced_entry_ok, inserted_once_bad, number_keys_bad, number_keys_ok, empty_key_ok,
        generated_bad, generated_ok)
