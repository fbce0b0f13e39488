// A function that is registered with the dispatcher for a device is called with tensors of that device.
#include "../cases.h"

#include <torch/library.h>
#include <torch/torch.h>

namespace {

torch::Tensor shift_on_gpu(const torch::Tensor &x) {
  return x + torch::ones({3}); // [[device-mixed-op]]
}
torch::Tensor shift_on_cpu(const torch::Tensor &x) { return x + torch::ones({3}); }
torch::Tensor scale_on_gpu(torch::Tensor x, double factor) {
  return x * factor + torch::ones({3}, x.options());
}
// The first tensor is on the GPU; the other one may be a list of lengths.
torch::Tensor pad_on_gpu(const torch::Tensor &x, const torch::Tensor &lengths) {
  auto longest = (lengths + torch::ones({3})).max();
  return x + longest;
}
torch::Tensor mask_on_gpu(const torch::Tensor &x) {
  return x * torch::ones({3}); // [[device-mixed-op]]
}
torch::Tensor any_shift(const torch::Tensor &x) { return x + torch::ones({3}, x.options()); }

torch::Tensor call(const char *name, const torch::Tensor &x) {
  return c10::Dispatcher::singleton()
      .findSchemaOrThrow(name, "")
      .typed<torch::Tensor(const torch::Tensor &)>()
      .call(x);
}

void registered_bad() { call("dt_cases::shift", torch::rand({3}, torch::kCUDA)); }
void registered_for_cpu_ok() { call("dt_cases::shift", torch::rand({3})); }
void wrapped_bad() { call("dt_cases::mask", torch::rand({3}, torch::kCUDA)); }
void registered_ok() {
  c10::Dispatcher::singleton()
      .findSchemaOrThrow("dt_cases::pad", "")
      .typed<torch::Tensor(const torch::Tensor &, const torch::Tensor &)>()
      .call(torch::rand({3}, torch::kCUDA), torch::rand({3}));
  c10::Dispatcher::singleton()
      .findSchemaOrThrow("dt_cases::scale", "")
      .typed<torch::Tensor(torch::Tensor, double)>()
      .call(torch::rand({3}, torch::kCUDA), 2.0);
}
void composite_ok() { call("dt_cases::any", torch::rand({3}, torch::kCUDA)); }

} // namespace

TORCH_LIBRARY(dt_cases, m) {
  m.def("shift(Tensor x) -> Tensor");
  m.def("scale(Tensor x, float factor) -> Tensor");
  m.def("pad(Tensor x, Tensor lengths) -> Tensor");
  m.def("mask(Tensor x) -> Tensor");
  m.def("any(Tensor x) -> Tensor");
}
TORCH_LIBRARY_IMPL(dt_cases, CUDA, m) {
  m.impl("shift", &shift_on_gpu);
  m.impl("scale", scale_on_gpu);
  m.impl("pad", pad_on_gpu);
  m.impl("mask", TORCH_FN(mask_on_gpu));
}
TORCH_LIBRARY_IMPL(dt_cases, CPU, m) { m.impl("shift", shift_on_cpu); }
TORCH_LIBRARY_IMPL(dt_cases, CompositeImplicitAutograd, m) { m.impl("any", any_shift); }

DT_MAIN(registered_bad, registered_for_cpu_ok, wrapped_bad, registered_ok, composite_ok)
