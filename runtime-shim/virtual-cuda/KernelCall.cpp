#include "KernelCall.h"

#include "Allocator.h"
#include "Devices.h"
#include "Generator.h"
#include "SparseTensors.h"

#include <ATen/ATen.h>
#include <ATen/core/LegacyTypeDispatch.h>

namespace vcuda {
namespace {

const c10::DispatchKeySet kCpuKeys(c10::DispatchKey::CPU);
const c10::DispatchKeySet kSparseCpuKeys(c10::DispatchKey::SparseCPU);
const c10::DispatchKeySet kCudaKeys(c10::DispatchKey::CUDA);

c10::StorageImpl *storageOf(const at::Tensor &tensor) {
  return tensor.has_storage() ? tensor.storage().unsafeGetStorageImpl() : nullptr;
}

at::Tensor tensorOn(c10::Storage storage, c10::DispatchKeySet keys, const at::Tensor &likeness) {
  at::Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(std::move(storage), keys, likeness.dtype());
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(likeness.sizes(), likeness.strides(),
                                                      likeness.storage_offset());
  if (likeness.is_conj())
    tensor._set_conj(true);
  if (likeness.is_neg())
    tensor._set_neg(true);
  return tensor;
}

// "to have one of the following scalar types: Float, Double; but got CPUBFloat16Type instead": of an argument
// that may be float, as opposed to an index.
bool wantsFloat(const std::string &error) {
  size_t types = error.find("to have one of the following scalar types:");
  return types != std::string::npos &&
         error.substr(types, error.find(';', types) - types).find("Float") != std::string::npos;
}

// Some CPU kernels take float for granted and fail while reading. `uniform` says that no operand has
// another floating point type, which would be an error on a GPU too.
bool isMissingHalfKernel(const std::string &error, bool uniform) {
  for (const char *text :
       {"not implemented for '", "not implemented for Half", "not implemented for BFloat16",
        "not implemented for half on CPU", "bf16 path needs the cpu support",
        "half to float conversion is not supported on CPU"})
    if (error.find(text) != std::string::npos)
      return true;
  return uniform && (error.find("expected scalar type ") != std::string::npos || wantsFloat(error));
}

// Normalization takes half inputs with float weights and statistics.
bool mayMixWithFloat(const std::string &op) {
  return op.find("batch_norm") != std::string::npos || op.find("layer_norm") != std::string::npos;
}

bool hasOneFloatingType(const OpInfo &info, const c10::IValue *values) {
  c10::optional<at::ScalarType> common;
  bool same = true;
  forEachTensor(info, values, [&](const Arg &, const at::Tensor &tensor) {
    if (!tensor.is_floating_point())
      return;
    same &= !common || *common == tensor.scalar_type();
    common = tensor.scalar_type();
  });
  return same;
}

bool isDense(const at::Tensor &tensor) { return tensor.layout() == at::kStrided && tensor.has_storage(); }

} // namespace

void KernelCall::run(const c10::OperatorHandle &op) {
  DeviceScope device(device_.index());
  KernelMemoryScope memory(device_.index());
  at::AutoDispatchBelowADInplaceOrView belowAutograd;
  if (hasHalfArgument(op.schema()))
    runHalf(op);
  else
    runOnce(op);
}

void KernelCall::runOnce(const c10::OperatorHandle &op) {
  enter();
  op.redispatchBoxed(sparse_ ? kSparseCpuKeys : kCpuKeys, &stack_);
  writeBack();
  leave();
}

// GPUs have half precision kernels for nearly everything, CPUs for little. What is missing is computed
// in float and rounded once, which is also how GPUs accumulate.
void KernelCall::runHalf(const c10::OperatorHandle &op) {
  torch::jit::Stack saved(stack_.end() - static_cast<std::ptrdiff_t>(info_.argCount), stack_.end());
  size_t below = stack_.size() - info_.argCount;
  bool uniform = mayMixWithFloat(op.schema().name()) || hasOneFloatingType(info_, saved.data());
  if (!takesTransposedForPlain(op.schema())) {
    try {
      return runOnce(op);
    } catch (const c10::Error &error) {
      if (!isMissingHalfKernel(error.what_without_backtrace(), uniform))
        throw;
      TORCH_CHECK(uniform || info_.rule != Rule::Strict, "expected scalar type ", *narrowType_,
                  " but found another floating point type in ", op.schema().name());
    }
    stack_.resize(below);
    for (const c10::IValue &value : saved)
      stack_.push_back(value);
    aliases_.clear();
  }
  inFloat_ = true;
  widenTypeArguments(op.schema());
  runOnce(op);
}

// The CPU's kernel for bfloat16 convolutions ignores that they are transposed.
bool KernelCall::takesTransposedForPlain(const c10::FunctionSchema &schema) {
  c10::optional<int> index = schema.argumentIndexWithName("transposed");
  return narrowType_ == at::kBFloat16 && index && arguments()[*index].isBool() &&
         arguments()[*index].toBool();
}

// Arguments that say which type comes out, for a call that computes in float.
void KernelCall::widenTypeArguments(const c10::FunctionSchema &schema) {
  auto argument = [&](const char *name) -> c10::IValue * {
    c10::optional<int> index = schema.argumentIndexWithName(name);
    return index ? &arguments()[*index] : nullptr;
  };
  c10::IValue *dtype = argument("dtype");
  c10::IValue *halfToFloat = argument("half_to_float");
  c10::IValue *inputType = argument("input_dtype");
  if (dtype && !dtype->isNone())
    narrowType_ = c10::nullopt;
  if (halfToFloat && halfToFloat->toBool()) {
    *halfToFloat = false;
    narrowType_ = c10::nullopt;
  }
  if (inputType && inputType->isInt())
    *inputType = static_cast<int64_t>(at::kFloat);
}

bool KernelCall::hasHalfArgument(const c10::FunctionSchema &schema) {
  forEachTensor(info_, arguments(), [&](const Arg &, const at::Tensor &tensor) {
    if (tensor.is_cuda() && isHalf(tensor.scalar_type()))
      narrowType_ = tensor.scalar_type();
  });
  // The gradient of softmax(half, dtype=float) has only float operands.
  if (!narrowType_ && info_.hasInputType) {
    const c10::IValue &type = arguments()[*schema.argumentIndexWithName("input_dtype")];
    if (type.isInt() && isHalf(type.toScalarType()))
      narrowType_ = type.toScalarType();
  }
  return narrowType_.has_value();
}

void KernelCall::enter() {
  c10::IValue *values = arguments();
  for (const Arg &arg : info_.args) {
    c10::IValue &value = values[arg.index];
    switch (arg.kind) {
    case ArgKind::Tensor:
      if (value.isTensor() && value.toTensor().defined()) {
        at::Tensor host = aliasOf(value.toTensor(), arg.written);
        value = std::move(host);
      }
      break;
    case ArgKind::TensorList:
      if (value.isList())
        enterList(arg, value);
      break;
    case ArgKind::Generator:
      value = value.isGenerator() ? hostGenerator(value.toGenerator(), onlyOnCpu())
                                  : hostGenerator(defaultGenerator(device_.index()), false);
      break;
    case ArgKind::Device:
      if (value.isDevice())
        value = c10::Device(c10::kCPU);
      break;
    }
  }
}

// A CUDA generator brings a call here whose tensors are all on the CPU.
bool KernelCall::onlyOnCpu() const {
  for (const Alias &alias : aliases_)
    if (alias.original.is_cuda())
      return false;
  return !aliases_.empty();
}

void KernelCall::enterList(const Arg &arg, c10::IValue &value) {
  if (value.isTensorList()) {
    c10::List<at::Tensor> hosts;
    hosts.reserve(value.toListRef().size());
    for (const c10::IValue &element : value.toListRef())
      hosts.push_back(element.toTensor().defined() ? aliasOf(element.toTensor(), arg.written) : at::Tensor());
    value = std::move(hosts);
    return;
  }
  c10::List<c10::optional<at::Tensor>> hosts;
  hosts.reserve(value.toListRef().size());
  for (const c10::IValue &element : value.toListRef()) {
    if (element.isTensor() && element.toTensor().defined())
      hosts.push_back(aliasOf(element.toTensor(), arg.written));
    else
      hosts.push_back(c10::nullopt);
  }
  value = std::move(hosts);
}

const at::Tensor &KernelCall::aliasOf(const at::Tensor &tensor, bool written) {
  for (Alias &alias : aliases_) {
    if (alias.original.is_same(tensor)) {
      alias.written |= written;
      return alias.host;
    }
  }
  at::Tensor host = tensor.is_cuda() ? makeAlias(tensor) : tensor;
  at::Tensor narrow;
  if (inFloat_ && isHalf(host.scalar_type())) {
    narrow = host;
    host = host.to(at::kFloat);
  }
  aliases_.push_back({tensor, std::move(host), std::move(narrow), written});
  return aliases_.back().host;
}

at::Tensor KernelCall::makeAlias(const at::Tensor &tensor) {
  if (isSparse(tensor)) {
    // Kernels grow both: also the indices of a tensor that had no element get memory.
    at::Tensor indices = aliasOf(sparseIndices(tensor), /*written=*/true);
    at::Tensor values = aliasOf(sparseValues(tensor), /*written=*/true);
    return sparseLike(tensor, indices, values);
  }
  TORCH_CHECK(isDense(tensor), "virtual-cuda supports dense and COO tensors, but got ", tensor.toString());
  c10::StorageImpl *storage = storageOf(tensor);
  // Storage that has no cached view still needs one view per call.
  c10::Storage view;
  for (const Alias &alias : aliases_)
    if (storageOf(alias.original) == storage)
      view = (alias.narrow.defined() ? alias.narrow : alias.host).storage();
  if (!view)
    view = c10::Storage(hostView(*storage));
  at::Tensor host = tensorOn(std::move(view), kCpuKeys, tensor);
  if (tensor.unsafeGetTensorImpl()->is_wrapped_number())
    host.unsafeGetTensorImpl()->set_wrapped_number(true);
  return host;
}

void KernelCall::writeBack() {
  for (const Alias &alias : aliases_) {
    if (!alias.written || alias.original.is_same(alias.host))
      continue;
    if (isSparse(alias.original)) {
      assignSparse(alias.original, alias.host, resultOf(sparseIndices(alias.host)),
                   resultOf(sparseValues(alias.host)));
      continue;
    }
    if (alias.narrow.defined()) {
      if (alias.narrow.sizes() != alias.host.sizes())
        alias.narrow.resize_(alias.host.sizes());
      alias.narrow.copy_(alias.host);
    }
    const at::Tensor &host = alias.narrow.defined() ? alias.narrow : alias.host;
    adoptResized(*storageOf(alias.original), *storageOf(host));
    if (host.sizes() != alias.original.sizes() || host.strides() != alias.original.strides() ||
        host.storage_offset() != alias.original.storage_offset())
      alias.original.unsafeGetTensorImpl()->set_sizes_and_strides(host.sizes(), host.strides(),
                                                                  host.storage_offset());
  }
}

void KernelCall::leave() {
  for (size_t i = stack_.size() - info_.returnCount; i < stack_.size(); ++i) {
    c10::IValue &value = stack_[i];
    if (value.isTensor()) {
      value = resultOf(value.toTensor());
    } else if (value.isTensorList()) {
      c10::List<at::Tensor> results;
      for (const c10::IValue &element : value.toListRef())
        results.push_back(resultOf(element.toTensor()));
      value = std::move(results);
    }
  }
}

at::Tensor KernelCall::resultOf(const at::Tensor &host) {
  if (!host.defined())
    return host;
  for (const Alias &alias : aliases_)
    if (alias.host.is_same(host))
      return alias.original;
  if (isSparse(host))
    return sparseLike(host, resultOf(sparseIndices(host)), resultOf(sparseValues(host)));
  TORCH_CHECK(isDense(host), "virtual-cuda supports dense and COO tensors, but an operator returned ",
              host.toString());
  if (inFloat_)
    return relabelled(narrowType_ && host.scalar_type() == at::kFloat ? host.to(*narrowType_) : host.clone());
  c10::StorageImpl *storage = storageOf(host);
  for (const Alias &alias : aliases_)
    if (storageOf(alias.host) == storage)
      return alias.original.is_cuda() ? tensorOn(alias.original.storage(), kCudaKeys, host) : host;
  return relabelled(host);
}

at::Tensor KernelCall::relabelled(const at::Tensor &host) {
  labelAsDevice(*storageOf(host), device_.index());
  return tensorOn(host.storage(), kCudaKeys, host);
}

} // namespace vcuda
