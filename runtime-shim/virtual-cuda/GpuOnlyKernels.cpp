// Small operators that have no CPU kernel: loss scaling (automatic mixed precision), questions about cuDNN,
// products of half precision numbers that stay in float.
#include "Compat.h"
#include "DeviceCheck.h"
#include "Kernels.h"
#include "OpTable.h"
#include "RunningOps.h"

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/op_registration/adaption.h>

#include <cmath>
#include <initializer_list>

namespace vcuda {
namespace {

struct Input {
  const char *name;
  at::TensorList tensors;
};

// As the wrapper of a CUDA build does.
void requireOneDevice(const char *op, std::initializer_list<Input> inputs) {
  const std::string method = std::string(kMethodPrefix) + "_" + op;
  c10::optional<c10::Device> common;
  for (const Input &input : inputs)
    c10::impl::check_and_update_common_device(common, input.tensors, method.c_str(), input.name);
}

void unscale(at::TensorList grads, at::Tensor &foundInf, const at::Tensor &invScale) {
  requireOneDevice("_amp_foreach_non_finite_check_and_unscale_",
                   {{"self", grads}, {"found_inf", foundInf}, {"inv_scale", invScale}});
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
  requireOneDevice("_amp_update_scale_",
                   {{"self", scale}, {"growth_tracker", growthTracker}, {"found_inf", foundInf}});
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
bool maskIsLeftAligned(const at::Tensor &tensor, const at::Tensor &mask) {
  requireOneDevice("_nested_tensor_from_mask_left_aligned", {{"t", tensor}, {"mask", mask}});
  return false;
}

#if TORCH_VERSION_MAJOR == 1
// torch.optim.Adam(fused=True), which only GPUs had.
void fusedAdam(at::TensorList parameters, at::TensorList grads, at::TensorList averages,
               at::TensorList squares, at::TensorList highest, at::TensorList steps, double lr, double beta1,
               double beta2, double decay, double eps, bool amsgrad, bool maximize,
               const c10::optional<at::Tensor> &gradScale, const c10::optional<at::Tensor> &foundInf) {
  requireOneDevice("_fused_adam_", {{"self", parameters},
                                    {"grads", grads},
                                    {"exp_avgs", averages},
                                    {"exp_avg_sqs", squares},
                                    {"max_exp_avg_sqs", highest},
                                    {"state_steps", steps}});
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

// mm, bmm, addmm and baddbmm with out_dtype: the same with operands of that type.
class ProductInType final : public c10::OperatorKernel {
public:
  explicit ProductInType(OpInfo info) : info_(std::move(info)) {}

  void operator()(const c10::OperatorHandle &op, c10::DispatchKeySet, torch::jit::Stack *stack) {
    noteOwnKernel();
    const auto &arguments = op.schema().arguments();
    const std::vector<c10::IValue> values(stack->end() - static_cast<std::ptrdiff_t>(arguments.size()),
                                          stack->end());
    checkDevices(info_, values.data());
    torch::jit::drop(*stack, arguments.size());
    size_t typeAt = 0;
    while (arguments[typeAt].name() != "out_dtype")
      ++typeAt;
    const at::ScalarType type = values[typeAt].toScalarType();
    at::Tensor out;
    for (size_t i = 0; i < values.size(); ++i) {
      if (arguments[i].name() == "out")
        out = values[i].toTensor();
      else if (values[i].isTensor())
        torch::jit::push(*stack, operand(values[i].toTensor(), type));
      else if (i != typeAt)
        torch::jit::push(*stack, values[i]);
    }
    c10::Dispatcher::singleton().findSchemaOrThrow(op.schema().name().c_str(), "").callBoxed(stack);
    if (out.defined()) {
      TORCH_CHECK(out.scalar_type() == type,
                  "out_dtype must be the same as the dtype of the provided out tensor");
      const at::Tensor result = torch::jit::pop(*stack).toTensor();
      torch::jit::push(*stack, out.resize_(result.sizes()).copy_(result));
    }
  }

private:
  static at::Tensor operand(const at::Tensor &tensor, at::ScalarType type) {
    const at::ScalarType own = tensor.scalar_type();
    TORCH_CHECK(own == type || (type == at::kFloat && (own == at::kHalf || own == at::kBFloat16)),
                "out_dtype must be the same as input dtype or fp32 for fp16/bf16 inputs");
    return tensor.to(type);
  }

  OpInfo info_;
};

void registerProductsInType(torch::Library &library) {
  for (const OpRule &rule : opRules()) {
    const std::string op = rule.op;
    const size_t dot = op.find(".dtype");
    const std::string name = op.substr(0, dot);
    if (dot == std::string::npos || (name != "mm" && name != "bmm" && name != "addmm" && name != "baddbmm"))
      continue;
    const c10::OperatorName full("aten::" + name, op.substr(dot + 1));
    if (const auto handle = c10::Dispatcher::singleton().findSchema(full))
      library.impl(rule.op, torch::CppFunction::makeFromBoxedFunctor(std::make_unique<ProductInType>(
                                describe(handle->schema(), rule.rule, rule.method))));
  }
}

} // namespace

void registerGpuOnlyKernels(torch::Library &library) {
  registerProductsInType(library);
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
