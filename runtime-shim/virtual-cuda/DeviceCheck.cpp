#include "DeviceCheck.h"

#include "Compat.h"
#include "Devices.h"

#include <ATen/core/op_registration/adaption.h>
#include <c10/util/Optional.h>
#include <c10/util/SmallVector.h>

#include <algorithm>

namespace vcuda {
namespace {

struct Operand {
  const Arg *arg;
  const at::Tensor *tensor;
};
using Operands = c10::SmallVector<Operand, 8>;

Operands operandsOf(const OpInfo &info, const c10::IValue *values) {
  Operands operands;
  forEachTensor(info, values,
                [&](const Arg &arg, const at::Tensor &tensor) { operands.push_back({&arg, &tensor}); });
  return operands;
}

const at::Tensor *tensorArg(const OpInfo &info, const c10::IValue *values, const char *name) {
  for (const Arg &arg : info.args)
    if (arg.name == name && values[arg.index].isTensor() && values[arg.index].toTensor().defined())
      return &values[arg.index].toTensor();
  return nullptr;
}

c10::Device firstCuda(const Operands &operands) {
  for (const Operand &operand : operands)
    if (operand.tensor->is_cuda())
      return operand.tensor->device();
  return withIndex(c10::kCUDA);
}

void checkStrict(const OpInfo &info, const Operands &operands) {
  c10::optional<c10::Device> common;
  const std::string method = kMethodPrefix + info.method;
  for (const Operand &operand : operands)
    if (!operand.arg->isKeyword)
      c10::impl::check_and_update_common_device(common, *operand.tensor, method.c_str(),
                                                operand.arg->name.c_str());
}

bool sameDevice(const Operands &operands) {
  for (const Operand &operand : operands)
    if (operand.tensor->device() != operands.front().tensor->device())
      return false;
  return true;
}

// TensorIterator::compute_types: the first operand that is not on the CPU decides.
void checkIterator(const Operands &operands, bool allowCpuScalar) {
  c10::Device common = firstCuda(operands);
  bool scalarSeen = false;
  for (const Operand &operand : operands) {
    const at::Tensor &tensor = *operand.tensor;
    if (allowCpuScalar && !operand.arg->written && tensor.is_cpu() && tensor.dim() == 0) {
      TORCH_CHECK(!scalarSeen, "Trying to pass too many CPU scalars to non-CPU kernel!");
      scalarSeen = true;
      continue;
    }
    TORCH_CHECK(tensor.device() == common,
                "Expected all tensors to be on the same device, but found at least two devices, ", common,
                " and ", tensor.device(), "!");
  }
}

Operands without(const Operands &operands, const char *name) {
  Operands rest;
  for (const Operand &operand : operands)
    if (operand.arg->name != name)
      rest.push_back(operand);
  return rest;
}

void checkIndex(const OpInfo &info, const c10::IValue *values, const Operands &operands) {
  const at::Tensor *self = tensorArg(info, values, "self");
  for (const Operand &operand : operands)
    if (operand.arg->name == "indices")
      TORCH_CHECK(operand.tensor->is_cpu() || operand.tensor->device() == self->device(),
                  "indices should be either on ", c10::kCPU, " or on the same device as the indexed tensor (",
                  self->device(), ")");
  checkIterator(without(operands, "indices"), /*allowCpuScalar=*/false);
}

void checkMaskPair(const at::Tensor &self, const at::Tensor &mask) {
  TORCH_CHECK(self.device() == mask.device(),
              "expected self and mask to be on the same device, but got mask on ", mask.device(),
              " and self on ", self.device());
}

// index_put_ with one mask beside self and a CPU value of one element becomes masked_fill_ with a number
// (canDispatchToMaskedFill).
bool becomesMaskedFill(const Operands &operands, const at::Tensor &self, const at::Tensor &value) {
  int indices = 0, masks = 0;
  for (const Operand &operand : operands) {
    if (operand.arg->name != "indices")
      continue;
    ++indices;
    const auto type = operand.tensor->scalar_type();
    masks += (type == at::kBool || type == at::kByte) && operand.tensor->device() == self.device();
  }
  return value.numel() == 1 && value.is_cpu() && indices == 1 && masks == 1;
}

bool flag(const OpInfo &info, const c10::IValue *values, size_t fromEnd) {
  const c10::IValue &value = values[info.argCount - fromEnd];
  return value.isBool() && value.toBool();
}

void checkIndexPut(const OpInfo &info, const c10::IValue *values, const Operands &operands) {
  const at::Tensor *self = tensorArg(info, values, "self");
  const at::Tensor *value = tensorArg(info, values, "values");
  // _index_put_impl_(self, indices, values, accumulate, unsafe)
  bool accumulate = flag(info, values, 2);
  if (value->device() == self->device() || (value->numel() == 1 && value->dim() == 0) ||
      (!accumulate && becomesMaskedFill(operands, *self, *value)))
    return;
  TORCH_CHECK(!self->is_cuda() || !accumulate, "expected device ", self->device(), " but got device ",
              value->device(), " for value tensor");
  checkIterator(without(operands, "indices"), /*allowCpuScalar=*/false);
}

void checkMaskedFill(const OpInfo &info, const c10::IValue *values) {
  const at::Tensor *self = tensorArg(info, values, "self");
  const at::Tensor *mask = tensorArg(info, values, "mask");
  if (const at::Tensor *value = tensorArg(info, values, "value")) {
    TORCH_CHECK(value->dim() == 0,
                "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with ", value->dim(),
                " dimension(s).");
    TORCH_CHECK(!self->is_cpu(), "masked_fill_: Expected inputs to be on same device");
  }
  checkMaskPair(*self, *mask);
}

// The loss is built from input and target; the weight multiplies it afterwards.
void checkBinaryCrossEntropy(const Operands &operands) {
  checkIterator(without(operands, "weight"), /*allowCpuScalar=*/false);
  Operands product;
  for (const Operand &operand : operands)
    if (operand.arg->name == "self" || operand.arg->name == "weight")
      product.push_back(operand);
  checkIterator(product, /*allowCpuScalar=*/true);
}

void checkAddcmul(const Operands &operands) {
  checkIterator(operands, /*allowCpuScalar=*/true);
  for (const Operand &operand : operands) {
    const std::string &name = operand.arg->name;
    if (operand.arg->written || name == "tensor2" || !operand.tensor->is_cpu())
      continue;
    TORCH_CHECK(false, "CPU Scalar support for ", name,
                " argument is not supported when calling addcmul on CUDA tensors.",
                name == "self" ? ""
                               : " However, CPU Scalar support for tensor2 is supported, please swap "
                                 "your tensor1 and tensor2 terms.");
  }
}

void checkLerp(const Operands &operands) {
  const at::Tensor &weight = *operands.back().tensor;
  const bool isScalar = weight.is_cpu() && weight.dim() == 0;
  checkIterator(isScalar ? without(operands, "weight") : operands, /*allowCpuScalar=*/false);
}

void checkWhere(const Operands &operands) {
  Operands inputs, fixed;
  for (const Operand &operand : operands) {
    if (!operand.arg->written)
      inputs.push_back(operand);
    if (operand.arg->written || operand.tensor->dim() != 0)
      fixed.push_back(operand);
  }
  bool anyCuda =
      std::any_of(inputs.begin(), inputs.end(), [](const Operand &input) { return input.tensor->is_cuda(); });
  if (!kWhereMovesScalars || !anyCuda)
    return checkIterator(operands, /*allowCpuScalar=*/false);
  // 0-dim inputs, of the CPU and of other GPUs, move to the first input that is not on the CPU.
  c10::Device device = firstCuda(inputs);
  for (const Operand &operand : fixed)
    TORCH_CHECK(operand.tensor->device() == device,
                "Expected all tensors to be on the same device, but found at least two devices, ", device,
                " and ", operand.tensor->device(), "!");
}

void checkConvolution(const OpInfo &info, const c10::IValue *values, const Operands &operands) {
  const at::Tensor *input = tensorArg(info, values, "input");
  const at::Tensor *weight = tensorArg(info, values, "weight");
  const at::Tensor *bias = tensorArg(info, values, "bias");
  const char *hint =
      input->is_cpu() ? " or input should be a MKLDNN tensor and weight is a dense tensor" : "";
  auto sameType = [&](const at::Tensor &other, const char *name) {
    TORCH_CHECK(input->options().type_equal(other.options()), "Input type (", input->toString(), ") and ",
                name, " type (", other.toString(), ") should be the same", hint);
  };
  sameType(*weight, "weight");
  if (bias)
    sameType(*bias, "bias");
  checkStrict(info, without(operands, "bias"));
  // cuDNN convolves first, then adds the bias.
  checkIterator(operands, /*allowCpuScalar=*/false);
}

void checkRule(const OpInfo &info, const c10::IValue *values, const Operands &operands) {
  switch (info.rule) {
  case Rule::Strict:
    return checkStrict(info, operands);
  case Rule::Iterator:
    return checkIterator(operands, /*allowCpuScalar=*/false);
  case Rule::IteratorScalar:
    return checkIterator(operands, /*allowCpuScalar=*/true);
  case Rule::Index:
    return checkIndex(info, values, operands);
  case Rule::IndexPut:
    return checkIndexPut(info, values, operands);
  case Rule::MaskedFill:
    return checkMaskedFill(info, values);
  case Rule::IndexFill:
    return checkIterator(without(operands, "value"), /*allowCpuScalar=*/false);
  case Rule::Where:
    return checkWhere(operands);
  case Rule::BinaryCrossEntropy:
    return checkBinaryCrossEntropy(operands);
  case Rule::Addcmul:
    return checkAddcmul(operands);
  case Rule::Lerp:
    return checkLerp(operands);
  case Rule::Convolution:
    return checkConvolution(info, values, operands);
  case Rule::Foreach:
  case Rule::Any:
    return;
  }
}

c10::Device requestedDevice(const OpInfo &info, const c10::IValue *values) {
  for (const Arg &arg : info.args)
    if (arg.kind == ArgKind::Device && values[arg.index].isDevice() && values[arg.index].toDevice().is_cuda())
      return withIndex(values[arg.index].toDevice());
  return withIndex(c10::kCUDA);
}

} // namespace

Placement checkDevices(const OpInfo &info, const c10::IValue *values) {
  Operands operands = operandsOf(info, values);
  if (operands.empty())
    return {requestedDevice(info, values), false};
  if (sameDevice(operands))
    return {firstCuda(operands), false};
  if (info.rule == Rule::Foreach)
    return {firstCuda(operands), true};
  checkRule(info, values, operands);
  return {firstCuda(operands), false};
}

} // namespace vcuda
