#include "engine.h"

namespace spec {

PagePool::PagePool(int64_t pages, int64_t page_size, int64_t width, torch::Device device)
    : device_(device), pages_(torch::zeros({pages, page_size, width}, device)) {}

torch::Tensor PagePool::gather(const std::vector<int64_t>& table) const {
  const auto rows = torch::tensor(table, torch::dtype(torch::kLong).device(pages_.device()));
  return pages_.index_select(0, rows).flatten(0, 1);
}

void PagePool::write(int64_t page, int64_t slot, const torch::Tensor& kv) { pages_[page][slot].copy_(kv); }

void PagePool::swap_out(const std::vector<int64_t>& table) {
  const auto rows = torch::tensor(table, torch::kLong);
  const auto block = pages_.index({rows});
  host_[next_handle_++] = device_.is_cuda() ? block.pin_memory() : block; // [[device-host-access]]
}

void PagePool::swap_in(const std::vector<int64_t>& table, int64_t handle) {
  const auto rows = torch::tensor(table, torch::kLong);
  pages_.index_put_({rows}, host_.count(handle) ? host_.at(handle).to(device_, /*non_blocking=*/true)
                                                : torch::zeros({1}, device_));
}

torch::Tensor PagePool::fork(int64_t from, int64_t to) {
  auto source = pages_[from];
  pages_[to] = source;
  return source.clone();
}

std::vector<float> PagePool::page_norms() const {
  const auto norms = pages_.flatten(1).norm(2, 1).to(torch::kCPU, torch::kFloat).contiguous();
  const float* p = norms.data_ptr<float>();
  return std::vector<float>(p, p + norms.numel());
}

} // namespace spec
