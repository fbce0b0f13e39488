// Tuples, std::tie, structured bindings, std::get, chunk/split results.
#include <torch/torch.h>

#include <tuple>

#include "../cases.h"

namespace sampling {

std::tuple<torch::Tensor, torch::Tensor> draw(torch::Device device) {
  auto x = torch::rand({4, 3}, device);
  auto w = torch::rand({3, 2});
  return std::make_tuple(x, w);
}

std::tuple<torch::Tensor, torch::Tensor> draw_both(torch::Device device) {
  auto x = torch::rand({4, 3}, device);
  auto w = torch::rand({3, 2}, device);
  return {x, w};
}

} // namespace sampling

void binding_second_on_host_bad() {
  auto [x, w] = sampling::draw(torch::kCUDA);
  auto y = torch::matmul(x, w); // [[device-mixed-op]]
  TORCH_CHECK(y.defined());
}

void binding_both_on_device_ok() {
  auto [x, w] = sampling::draw_both(torch::kCUDA);
  auto y = torch::matmul(x, w);
  TORCH_CHECK(y.defined());
}

void tie_then_move_ok() {
  torch::Tensor x, w;
  std::tie(x, w) = sampling::draw(torch::kCUDA);
  w = w.to(x.device());
  auto y = torch::matmul(x, w);
  TORCH_CHECK(y.defined());
}

void tie_swapped_names_bad() {
  torch::Tensor x, w;
  std::tie(x, w) = sampling::draw(torch::kCUDA);
  x = x.to(torch::kCUDA); // the wrong one: x is there already
  auto y = torch::matmul(x, w); // [[device-mixed-op]]
  TORCH_CHECK(y.defined());
}

void get_by_index_bad() {
  auto sample = sampling::draw(torch::kCUDA);
  auto y = std::get<0>(sample).mm(std::get<1>(sample)); // [[device-mixed-op]]
  TORCH_CHECK(y.defined());
}

void get_by_index_moved_ok() {
  auto sample = sampling::draw(torch::kCUDA);
  auto y = std::get<0>(sample).mm(std::get<1>(sample).to(torch::kCUDA));
  TORCH_CHECK(y.defined());
}

void max_values_and_indices_ok() {
  auto scores = torch::rand({4, 6}, torch::kCUDA);
  auto [values, indices] = scores.max(1);
  auto again = scores.gather(1, indices.unsqueeze(1)).squeeze(1);
  TORCH_CHECK(torch::equal(values, again));
}

void topk_indices_moved_away_bad() {
  auto scores = torch::rand({4, 6}, torch::kCUDA);
  auto [values, indices] = scores.topk(2, 1);
  indices = indices.cpu();
  auto again = scores.gather(1, indices); // [[device-mixed-op]]
  TORCH_CHECK(values.defined() && again.defined());
}

void std_ignore_ok() {
  torch::Tensor best;
  std::tie(std::ignore, best) = torch::rand({4, 6}, torch::kCUDA).max(1);
  auto hits = best.eq(torch::zeros({4}, torch::dtype(torch::kLong).device(torch::kCUDA))).sum();
  TORCH_CHECK(hits.item<int64_t>() <= 4);
}

void split_pieces_bad() {
  auto qkv = torch::rand({2, 12}, torch::kCUDA);
  auto pieces = qkv.chunk(3, -1);
  auto bias = torch::zeros({4});
  auto q = pieces[0] + bias; // [[device-mixed-op]]
  TORCH_CHECK(q.defined());
}

void split_pieces_ok() {
  auto qkv = torch::rand({2, 12}, torch::kCUDA);
  auto pieces = qkv.chunk(3, -1);
  auto bias = torch::zeros({4}, qkv.options());
  auto q = pieces[0] + bias - pieces[2] * pieces[1];
  TORCH_CHECK(q.defined());
}

DT_MAIN(binding_second_on_host_bad, binding_both_on_device_ok, tie_then_move_ok, tie_swapped_names_bad,
        get_by_index_bad, get_by_index_moved_ok, max_values_and_indices_ok, topk_indices_moved_away_bad,
        std_ignore_ok, split_pieces_bad, split_pieces_ok)
