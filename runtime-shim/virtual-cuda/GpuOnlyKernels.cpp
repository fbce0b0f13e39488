// Small operators that have no CPU kernel: loss scaling (automatic mixed precision), questions about cuDNN.
#include "Compat.h"
#include "Kernels.h"

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/op_registration/adaption.h>

#include <cmath>

namespace vcuda {
namespace {

void unscale(at::TensorList grads, at::Tensor &foundInf, const at::Tensor &invScale) {
  c10::optional<c10::Device> common;
  const std::string name = std::string(kMethodPrefix) + "__amp_foreach_non_finite_check_and_unscale_";
  const char *method = name.c_str();
  c10::impl::check_and_update_common_device(common, grads, method, "self");
  c10::impl::check_and_update_common_device(common, foundInf, method, "found_inf");
  c10::impl::check_and_update_common_device(common, invScale, method, "inv_scale");
  TORCH_CHECK(invScale.numel() == 1, "inv_scale must be a 1-element tensor.");
  TORCH_CHECK(foundInf.numel() == 1, "found_inf must be a 1-element tensor.");
  for (const at::Tensor &grad : grads) {
    if (!grad.isfinite().all().item<bool>())
      foundInf.fill_(1.0);
    const_cast<at::Tensor &>(grad).mul_(invScale.to(grad.scalar_type()));
  }
}

at::Tensor &updateScale(at::Tensor &scale, at::Tensor &growthTracker, const at::Tensor &foundInf,
                        double growthFactor, double backoffFactor, int64_t growthInterval) {
  c10::optional<c10::Device> common;
  const std::string name = std::string(kMethodPrefix) + "__amp_update_scale_";
  const char *method = name.c_str();
  c10::impl::check_and_update_common_device(common, scale, method, "self");
  c10::impl::check_and_update_common_device(common, growthTracker, method, "growth_tracker");
  c10::impl::check_and_update_common_device(common, foundInf, method, "found_inf");
  if (foundInf.item<float>() > 0) {
    scale.mul_(backoffFactor);
    growthTracker.zero_();
    return scale;
  }
  int64_t successes = growthTracker.item<int>() + 1;
  if (successes == growthInterval) {
    scale.mul_(growthFactor);
    successes = 0;
  }
  growthTracker.fill_(successes);
  return scale;
}

// There is neither cuDNN nor MIOpen here, so the native kernels are used.
bool useLibraryForCtcLoss(const at::Tensor &, const at::Tensor &, c10::IntArrayRef, c10::IntArrayRef,
                          int64_t) {
  return false;
}

bool useLibraryForCtcLossTensor(const at::Tensor &, const at::Tensor &, const at::Tensor &,
                                const at::Tensor &, int64_t) {
  return false;
}

// Whether torch.nn.TransformerEncoder may go on with a nested tensor, which virtual GPUs do not hold.
bool maskIsLeftAligned(const at::Tensor &, const at::Tensor &) { return false; }

#if TORCH_VERSION_MAJOR == 1
// torch.optim.Adam(fused=True), which only GPUs had.
void fusedAdam(at::TensorList parameters, at::TensorList grads, at::TensorList averages,
               at::TensorList squares, at::TensorList highest, at::TensorList steps, double lr, double beta1,
               double beta2, double decay, double eps, bool amsgrad, bool maximize,
               const c10::optional<at::Tensor> &gradScale, const c10::optional<at::Tensor> &foundInf) {
  if (foundInf && foundInf->item<float>() != 0)
    return;
  for (size_t i = 0; i < parameters.size(); ++i) {
    at::Tensor parameter = parameters[i], grad = grads[i], average = averages[i], square = squares[i];
    if (gradScale)
      grad.div_(*gradScale);
    if (maximize)
      grad = -grad;
    if (decay != 0)
      grad = grad.add(parameter, decay);
    average.mul_(beta1).add_(grad, 1 - beta1);
    square.mul_(beta2).addcmul_(grad, grad, 1 - beta2);
    if (amsgrad)
      at::maximum_out(const_cast<at::Tensor &>(highest[i]), highest[i], square);
    const double step = steps[i].item<double>();
    const at::Tensor denominator =
        (amsgrad ? highest[i] : square).sqrt().div_(std::sqrt(1 - std::pow(beta2, step))).add_(eps);
    parameter.addcdiv_(average, denominator, -lr / (1 - std::pow(beta1, step)));
  }
}
#endif

} // namespace

void registerGpuOnlyKernels(torch::Library &library) {
  for (const char *op : {"_use_cudnn_ctc_loss", "_use_miopen_ctc_loss"}) {
    library.impl(op, TORCH_FN(useLibraryForCtcLoss));
    library.impl((std::string(op) + ".Tensor").c_str(), TORCH_FN(useLibraryForCtcLossTensor));
  }
  library.impl("_nested_tensor_from_mask_left_aligned", TORCH_FN(maskIsLeftAligned));
#if TORCH_VERSION_MAJOR == 1
  library.impl("_fused_adam_", TORCH_FN(fusedAdam));
#endif
  library.impl("_amp_foreach_non_finite_check_and_unscale_", TORCH_FN(unscale));
  library.impl("_amp_update_scale_", TORCH_FN(updateScale));
}

} // namespace vcuda
