// Indexing: what must share a device with the indexed tensor and what need not.
#include "../cases.h"
#include <torch/torch.h>

using namespace torch::indexing;
using torch::Tensor;

static const auto kLongCuda = torch::TensorOptions().dtype(torch::kLong).device(torch::kCUDA);

static void cpu_index_into_cuda_ok() {
  Tensor table = torch::rand({6, 2}, torch::kCUDA);
  Tensor rows = torch::tensor({0, 3}, torch::kLong);
  Tensor picked = table.index({rows});
  Tensor column = table.index({Slice(), 1});
  TORCH_CHECK(picked.is_cuda() && column.is_cuda());
}

static void cuda_index_into_cpu_bad() {
  Tensor table = torch::rand({6, 2});
  Tensor rows = torch::tensor({0, 3}, kLongCuda);
  Tensor picked = table.index({rows}); // [[device-mixed-op]]
  TORCH_CHECK(picked.defined());
}

static void gather_cpu_index_bad() {
  Tensor q = torch::rand({4, 2}, torch::kCUDA);
  Tensor actions = torch::zeros({4, 1}, torch::kLong);
  Tensor chosen = q.gather(1, actions); // [[device-mixed-op]]
  TORCH_CHECK(chosen.defined());
}

static void gather_cuda_index_ok() {
  Tensor q = torch::rand({4, 2}, torch::kCUDA);
  Tensor actions = torch::zeros({4, 1}, torch::kLong);
  Tensor chosen = q.gather(1, actions.to(q.device()));
  TORCH_CHECK(chosen.defined());
}

static void element_assignment_across_devices_ok() {
  Tensor buffer = torch::zeros({4, 3}, torch::kCUDA);
  Tensor row = torch::rand({3});
  buffer[1] = row;
  buffer.index({2}) = row;
  buffer.index_put_({Slice(0, 2), Slice()}, row);
  TORCH_CHECK(buffer.is_cuda());
}

static void element_accumulation_across_devices_bad() {
  Tensor buffer = torch::zeros({4, 3}, torch::kCUDA);
  Tensor row = torch::rand({3});
  buffer[1] += row; // [[device-mixed-op]]
}

static void index_put_cpu_index_ok() {
  Tensor buffer = torch::zeros({4}, torch::kCUDA);
  buffer.index_put_({torch::tensor({0, 2}, torch::kLong)}, torch::ones({2}, torch::kCUDA));
  buffer.index_put_({torch::tensor({1}, torch::kLong)}, torch::tensor(2.0f));
}

static void index_put_cpu_values_bad() {
  Tensor buffer = torch::zeros({4}, torch::kCUDA);
  buffer.index_put_({torch::tensor({0, 2}, kLongCuda)}, torch::ones({2})); // [[device-mixed-op]]
}

static void masked_fill_cpu_mask_bad() {
  Tensor scores = torch::rand({3, 3}, torch::kCUDA);
  Tensor mask = torch::ones({3, 3}, torch::kBool).triu(1);
  scores = scores.masked_fill(mask, -1e9); // [[device-mixed-op]]
}

static void masked_fill_cuda_mask_ok() {
  Tensor scores = torch::rand({3, 3}, torch::kCUDA);
  Tensor mask = torch::ones({3, 3}, torch::kBool).triu(1).to(scores.device());
  scores = scores.masked_fill(mask, torch::tensor(-1e9f));
}

static void masked_select_by_cpu_mask_bad() {
  Tensor boxes = torch::rand({5, 4}, torch::kCUDA);
  Tensor keep = boxes.cpu().select(1, 0).gt(0.5).unsqueeze(1);
  Tensor kept = boxes.masked_select(keep); // [[device-mixed-op]]
  TORCH_CHECK(kept.defined());
}

// Indexing with the same mask is tolerant.
static void indexed_by_cpu_mask_ok() {
  Tensor boxes = torch::rand({5, 4}, torch::kCUDA);
  Tensor keep = boxes.cpu().select(1, 0).gt(0.5);
  Tensor kept = boxes.index({keep});
  TORCH_CHECK(kept.is_cuda());
}

static void scatter_add_source_bad() {
  Tensor sums = torch::zeros({3}, torch::kCUDA);
  Tensor bins = torch::tensor({0, 1, 1, 2}, kLongCuda);
  sums.scatter_add_(0, bins, torch::ones({4})); // [[device-mixed-op]]
}

static void scatter_one_hot_ok() {
  Tensor labels = torch::randint(3, {4, 1}, kLongCuda);
  Tensor oneHot = torch::zeros({4, 3}, torch::kCUDA).scatter_(1, labels, 1.0);
  TORCH_CHECK(oneHot.is_cuda());
}

static void scatter_one_hot_on_host_bad() {
  Tensor labels = torch::randint(3, {4, 1}, kLongCuda);
  Tensor oneHot = torch::zeros({4, 3}).scatter_(1, labels, 1.0); // [[device-mixed-op]]
  TORCH_CHECK(oneHot.defined());
}

DT_MAIN(cpu_index_into_cuda_ok, cuda_index_into_cpu_bad, gather_cpu_index_bad, gather_cuda_index_ok,
        element_assignment_across_devices_ok, element_accumulation_across_devices_bad,
        index_put_cpu_index_ok, index_put_cpu_values_bad, masked_fill_cpu_mask_bad,
        masked_fill_cuda_mask_ok, masked_select_by_cpu_mask_bad, indexed_by_cpu_mask_ok,
        scatter_add_source_bad, scatter_one_hot_ok, scatter_one_hot_on_host_bad)
