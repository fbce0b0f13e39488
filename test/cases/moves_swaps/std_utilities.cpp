// std::move, std::swap, std::exchange, emplace, initializer lists, ranges of iterators.
#include "../cases.h"
#include <torch/torch.h>

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <numeric>
#include <utility>
#include <vector>

using torch::Tensor;

static void swapped_back_and_forth_ok() {
  Tensor front = torch::rand({3}, torch::kCUDA);
  Tensor back = torch::rand({3});
  std::swap(front, back);
  Tensor sum = back + torch::ones({3}, torch::kCUDA);
  Tensor host = front + torch::ones({3});
  TORCH_CHECK(sum.is_cuda() && !host.is_cuda());
}

static void swapped_once_bad() {
  Tensor front = torch::rand({3}, torch::kCUDA);
  Tensor back = torch::rand({3});
  std::swap(front, back);
  Tensor sum = front + torch::ones({3}, torch::kCUDA); // [[device-mixed-op]]
  TORCH_CHECK(sum.defined());
}

static void moved_into_member_ok() {
  struct Slot {
    Tensor value;
  };
  Slot slot;
  Tensor gpu = torch::rand({3}, torch::kCUDA);
  slot.value = std::move(gpu);
  gpu = torch::rand({3});
  Tensor sum = slot.value * torch::ones({3}, torch::kCUDA);
  TORCH_CHECK(sum.is_cuda() && !gpu.is_cuda());
}

static void moved_from_then_reused_bad() {
  Tensor gpu = torch::rand({3}, torch::kCUDA);
  Tensor kept = std::move(gpu);
  gpu = torch::rand({3});
  Tensor sum = gpu * kept; // [[device-mixed-op]]
  TORCH_CHECK(sum.defined());
}

static void exchanged_bad() {
  Tensor current = torch::rand({3}, torch::kCUDA);
  Tensor previous = std::exchange(current, torch::zeros({3}));
  Tensor delta = previous - current; // [[device-mixed-op]]
  TORCH_CHECK(delta.defined());
}

static void exchanged_ok() {
  Tensor current = torch::rand({3}, torch::kCUDA);
  Tensor previous = std::exchange(current, torch::zeros_like(current));
  Tensor delta = previous - current;
  TORCH_CHECK(delta.is_cuda());
}

static Tensor sumOf(std::initializer_list<Tensor> terms) {
  Tensor total;
  for (const Tensor &term : terms)
    total = total.defined() ? total + term : term; // [[device-mixed-op]]
  return total;
}

static void initializer_list_one_on_host_bad() {
  sumOf({torch::rand({3}, torch::kCUDA), torch::rand({3})});
}

static Tensor meanOf(std::initializer_list<Tensor> terms) {
  std::vector<Tensor> moved;
  for (const Tensor &term : terms)
    moved.emplace_back(term.to(torch::kCPU));
  return torch::stack(moved).mean(0);
}

static void initializer_list_gathered_ok() {
  meanOf({torch::rand({3}, torch::kCUDA), torch::rand({3})});
}

static void accumulate_over_gpu_tensors_ok() {
  std::vector<Tensor> grads{torch::rand({3}, torch::kCUDA), torch::rand({3}, torch::kCUDA)};
  Tensor sum = std::accumulate(grads.begin(), grads.end(), torch::zeros({3}, torch::kCUDA),
                               [](const Tensor &a, const Tensor &b) { return a + b; });
  TORCH_CHECK(sum.is_cuda());
}

static void accumulate_from_host_zero_bad() {
  std::vector<Tensor> grads{torch::rand({3}, torch::kCUDA), torch::rand({3}, torch::kCUDA)};
  Tensor sum = std::accumulate(grads.begin(), grads.end(), torch::zeros({3}),
                               [](const Tensor &a, const Tensor &b) { return a + b; }); // [[device-mixed-op]]
  TORCH_CHECK(sum.defined());
}

static void for_each_by_reference_ok() {
  std::vector<Tensor> tensors{torch::rand({3}), torch::rand({3})};
  std::for_each(tensors.begin(), tensors.end(), [](Tensor &t) { t = t.to(torch::kCUDA); });
  Tensor sum = tensors[0] + tensors[1] + torch::ones({3}, torch::kCUDA);
  TORCH_CHECK(sum.is_cuda());
}

static void iterator_loop_ok() {
  std::vector<Tensor> tensors{torch::rand({3}), torch::rand({3})};
  for (auto it = tensors.begin(); it != tensors.end(); ++it)
    *it = it->to(torch::kCUDA);
  Tensor sum = tensors.front() + tensors.back() * torch::ones({3}, torch::kCUDA);
  TORCH_CHECK(sum.is_cuda());
}

DT_MAIN(swapped_back_and_forth_ok, swapped_once_bad, moved_into_member_ok, moved_from_then_reused_bad,
        exchanged_bad, exchanged_ok, initializer_list_one_on_host_bad, initializer_list_gathered_ok,
        accumulate_over_gpu_tensors_ok, accumulate_from_host_zero_bad, for_each_by_reference_ok,
        iterator_loop_ok)
