// Host buffers on purpose: pinned staging, from_blob, host reads, sentinels.
#include "../cases.h"
#include <torch/torch.h>

#include <cstring>
#include <vector>

static void from_blob_used_directly_bad() {
  std::vector<float> observation{0.1f, 0.2f, 0.3f};
  auto state = torch::from_blob(observation.data(), {1, 3}, torch::kFloat32);
  torch::nn::Linear policy(3, 2);
  policy->to(torch::kCUDA);
  auto logits = policy->forward(state); // [[device-mixed-op]]
  TORCH_CHECK(logits.defined());
}

static void from_blob_moved_ok() {
  std::vector<float> observation{0.1f, 0.2f, 0.3f};
  auto state = torch::from_blob(observation.data(), {1, 3}, torch::kFloat32).to(torch::kCUDA);
  torch::nn::Linear policy(3, 2);
  policy->to(torch::kCUDA);
  auto logits = policy->forward(state);
  TORCH_CHECK(logits.defined());
}

static void from_blob_clone_stays_on_host_bad() {
  float raw[4] = {1, 2, 3, 4};
  auto host = torch::from_blob(raw, {4}).clone();
  auto scores = torch::rand({4}, torch::kCUDA).softmax(0);
  auto weighted = (scores * host).sum(); // [[device-mixed-op]]
  TORCH_CHECK(weighted.defined());
}

static void staging_buffer_copied_ok() {
  auto staging = torch::empty({4, 3});
  auto onDevice = torch::empty({4, 3}, torch::kCUDA);
  for (int step = 0; step < 2; ++step) {
    staging.fill_(step);
    onDevice.copy_(staging, /*non_blocking=*/true);
    onDevice.mul_(torch::ones({4, 3}, onDevice.options()));
  }
}

static void staging_buffer_used_instead_of_copy_bad() {
  auto staging = torch::empty({4, 3});
  auto onDevice = torch::empty({4, 3}, torch::kCUDA);
  onDevice.copy_(staging);
  auto weight = torch::rand({3, 2}, torch::kCUDA);
  auto y = torch::mm(staging, weight); // [[device-mixed-op]]
  TORCH_CHECK(y.defined());
}

static void host_reads_after_transfer_ok() {
  auto scores = torch::rand({4}, torch::kCUDA);
  std::vector<float> out(4);
  std::memcpy(out.data(), scores.cpu().data_ptr<float>(), sizeof(float) * out.size());
  auto host = scores.to(torch::kCPU);
  auto a = host.accessor<float, 1>();
  TORCH_CHECK(a[0] == out[0]);
}

static torch::Tensor pooled(const torch::Tensor &x, torch::Tensor mask) {
  if (mask.numel() == 1)
    return x.mean(0);
  return (x * mask).sum(0);
}

// zeros({1}) stands for "no mask": the product is never reached.
static void sentinel_mask_ok() {
  auto x = torch::rand({4, 3}, torch::kCUDA);
  auto y = pooled(x, torch::zeros({1})) + torch::ones({3}, torch::kCUDA);
  TORCH_CHECK(y.is_cuda());
}

static void undefined_mask_ok() {
  auto x = torch::rand({4, 3}, torch::kCUDA);
  torch::Tensor mask;
  if (mask.defined())
    x = x * mask;
  x = x * torch::ones({3}, torch::kCUDA);
}

static void item_and_printing_ok() {
  auto x = torch::rand({2}, torch::kCUDA);
  auto host = torch::rand({2});
  const double total = x.sum().item<double>() + host.sum().item<double>();
  TORCH_CHECK(total >= 0);
  auto nonzero = x.nonzero().cpu();
  auto counts = torch::bincount(nonzero.flatten()) + torch::bincount(torch::arange(2));
  TORCH_CHECK(counts.defined());
}

DT_MAIN(from_blob_used_directly_bad, from_blob_moved_ok, from_blob_clone_stays_on_host_bad,
        staging_buffer_copied_ok, staging_buffer_used_instead_of_copy_bad, host_reads_after_transfer_ok,
        sentinel_mask_ok, undefined_mask_ok, item_and_printing_ok)
