// Dropout with a mask from the device's generator. The CPU's kernel takes no generator, so it would draw from
// the CPU's.
#include "Generator.h"
#include "Kernels.h"
#include "RunningOps.h"

#include <ATen/ATen.h>

#include <tuple>

namespace vcuda {
namespace {

std::tuple<at::Tensor, at::Tensor> nativeDropout(const at::Tensor &input, double probability,
                                                 c10::optional<bool> train) {
  noteOwnKernel();
  const at::TensorOptions maskOptions = input.options().dtype(at::kBool);
  if (!train.value_or(true))
    return {input.clone(), at::ones_like(input, maskOptions)};
  const double kept = 1 - probability;
  if (kept == 0) // nothing is drawn, and zeros are not made by multiplying: inputs may be infinite
    return {at::zeros_like(input), at::zeros_like(input, maskOptions)};
  at::Tensor mask = at::empty_like(input, maskOptions);
  mask.bernoulli_(kept, defaultGenerator(input.device().index()));
  return {input.mul(mask).mul_(1 / kept), mask};
}

} // namespace

void registerDropoutKernel(torch::Library &library) {
  library.impl("native_dropout", TORCH_FN(nativeDropout));
}

} // namespace vcuda
