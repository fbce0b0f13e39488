// Functions that look at the device themselves: is_cuda branches, TORCH_CHECK, CHECK_INPUT macros.
#include <torch/torch.h>

#include "../cases.h"

#define CHECK_CUDA(x) TORCH_CHECK((x).is_cuda(), #x " must be a CUDA tensor")
#define CHECK_HOST(x) TORCH_CHECK(!(x).is_cuda(), #x " must be a CPU tensor")
#define CHECK_SAME(x, y) TORCH_CHECK((x).device() == (y).device(), "devices differ")

namespace lib {

torch::Tensor scaled_cuda_bad(const torch::Tensor &x) {
  CHECK_CUDA(x);
  auto table = torch::ones({3});
  return x * table; // [[device-mixed-op]]
}

torch::Tensor scaled_host_ok(const torch::Tensor &x) {
  CHECK_HOST(x);
  auto table = torch::ones({3});
  return x * table;
}

torch::Tensor checked_against_each_other_ok(const torch::Tensor &x, const torch::Tensor &y) {
  CHECK_SAME(x, y);
  return x * y;
}

torch::Tensor dispatch_ok(const torch::Tensor &x) {
  if (x.device().is_cuda())
    return x + torch::ones({3}, torch::kCUDA);
  return x + torch::ones({3});
}

torch::Tensor dispatch_by_type_bad(const torch::Tensor &x) {
  if (x.device().type() == torch::kCUDA) {
    auto offset = torch::ones({3});
    return x + offset; // [[device-mixed-op]]
  }
  return x + torch::ones({3});
}

torch::Tensor dispatch_by_type_ok(const torch::Tensor &x) {
  if (x.device().type() == torch::kCPU) {
    auto offset = torch::ones({3});
    return x + offset;
  }
  return x + torch::ones({3}).to(x.device());
}

// Moved only when it has to be.
torch::Tensor moved_when_different_ok(const torch::Tensor &x) {
  auto table = torch::ones({3});
  if (table.device() != x.device())
    table = table.to(x.device());
  return x * table;
}

torch::Tensor negated_check_early_return_ok(const torch::Tensor &x) {
  if (!x.is_cuda())
    return x;
  auto table = torch::ones({3}, torch::kCUDA);
  return x * table;
}

torch::Tensor negated_check_early_return_bad(const torch::Tensor &x) {
  if (!x.is_cuda())
    return x;
  auto table = torch::ones({3}, torch::kCPU);
  return x * table; // [[device-mixed-op]]
}

} // namespace lib

#ifdef DT_RUN
static torch::Tensor host() { return torch::rand({3}); }
static torch::Tensor cuda() { return torch::rand({3}, torch::kCUDA); }
static void run_scaled_cuda_bad() { lib::scaled_cuda_bad(cuda()); }
static void run_scaled_host_ok() { lib::scaled_host_ok(host()); }
static void run_checked_ok() { lib::checked_against_each_other_ok(cuda(), cuda()); }
static void run_dispatch_ok() { lib::dispatch_ok(host()) + lib::dispatch_ok(cuda()).cpu(); }
static void run_dispatch_by_type_bad() { lib::dispatch_by_type_bad(cuda()); }
static void run_dispatch_by_type_ok() {
  lib::dispatch_by_type_ok(host()) + lib::dispatch_by_type_ok(cuda()).cpu();
}
static void run_moved_when_different_ok() { lib::moved_when_different_ok(cuda()); }
static void run_negated_ok() { lib::negated_check_early_return_ok(cuda()); }
static void run_negated_bad() { lib::negated_check_early_return_bad(cuda()); }
DT_MAIN(run_scaled_cuda_bad, run_scaled_host_ok, run_checked_ok, run_dispatch_ok, run_dispatch_by_type_bad,
        run_dispatch_by_type_ok, run_moved_when_different_ok, run_negated_ok, run_negated_bad)
#endif
