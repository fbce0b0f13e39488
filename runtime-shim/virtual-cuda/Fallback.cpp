// The boxed kernel behind nearly every CUDA operator: check devices, then run the CPU kernel in place.
#include "Determinism.h"
#include "DeviceCheck.h"
#include "KernelCall.h"
#include "Kernels.h"
#include "OpTable.h"
#include "Origins.h"
#include "RunningOps.h"
#include "Trace.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include <unordered_map>

namespace vcuda {
namespace {

// A foreach kernel that lacks half precision fails in the middle of its list, with the tensors before it
// changed: running it again in float would change them twice.
bool holdsHalf(const OpInfo &info, const c10::IValue *values) {
  bool found = false;
  forEachTensor(info, values, [&](const Arg &, const at::Tensor &tensor) {
    found |= tensor.is_cuda() && isHalf(tensor.scalar_type());
  });
  return found;
}

class CpuBackedKernel final : public c10::OperatorKernel {
public:
  CpuBackedKernel(OpInfo info, const NonDeterministic *varies, bool sparse)
      : info_(std::move(info)), varies_(varies), sparse_(sparse), copies_(info_.method == kCopyMethod) {}

  void operator()(const c10::OperatorHandle &op, c10::DispatchKeySet, torch::jit::Stack *stack) {
    noteOwnKernel();
    const c10::IValue *values = stack->data() + stack->size() - info_.argCount;
    Placement placement = checkDevices(info_, values);
    if (varies_)
      alertIfNotDeterministic(*varies_, op.schema(), values);
    if (copies_ && values[0].toTensor().device() != values[1].toTensor().device())
      noteCopy(values[0].toTensor(), values[1].toTensor());
    TracedOp traced(op, values, placement.device);
    if (info_.rule == Rule::Index || info_.rule == Rule::IndexPut)
      traceIndexCopies(op, info_, values, placement.device);
    if (placement.mixed || (info_.rule == Rule::Foreach && holdsHalf(info_, values)))
      // The CPU kernels of foreach operators call one operator per tensor, and that is what CUDA does
      // with lists it cannot fuse. Each of those calls checks its own devices, and has its own type.
      op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack);
    else
      KernelCall(info_, placement.device, sparse_, *stack).run(op);
  }

private:
  OpInfo info_;
  const NonDeterministic *varies_;
  bool sparse_;
  bool copies_;
};

torch::CppFunction kernelFor(const c10::FunctionSchema &schema, Rule rule, const std::string &method,
                             bool sparse) {
  return torch::CppFunction::makeFromBoxedFunctor(
      std::make_unique<CpuBackedKernel>(describe(schema, rule, method), nonDeterministic(schema), sparse));
}

c10::OperatorName operatorName(const std::string &op) {
  size_t dot = op.find('.');
  return dot == std::string::npos ? c10::OperatorName("aten::" + op, "")
                                  : c10::OperatorName("aten::" + op.substr(0, dot), op.substr(dot + 1));
}

// Operators of the CPU alone that kernels of this library call for devices.
constexpr const char *kForCpu[] = {"_scaled_dot_product_flash_attention_for_cpu",
                                   "_scaled_dot_product_flash_attention_for_cpu_backward"};

} // namespace

void registerCpuBackedKernels(torch::Library &library) {
  for (const char *op : kForCpu)
    if (auto handle = c10::Dispatcher::singleton().findSchema(operatorName(op)))
      library.impl(op, kernelFor(handle->schema(), Rule::Strict, "_" + std::string(op), /*sparse=*/false));
  for (const OpRule &rule : opRules()) {
    auto handle = c10::Dispatcher::singleton().findSchema(operatorName(rule.op));
    // An operator without any CPU kernel stays unregistered: calling it gives the dispatcher's error.
    if (!handle || handle->hasKernelForDispatchKey(c10::DispatchKey::CUDA) ||
        !handle->hasComputedKernelForDispatchKey(c10::DispatchKey::CPU))
      continue;
    library.impl(rule.op, kernelFor(handle->schema(), rule.rule, rule.method, /*sparse=*/false));
  }
}

void registerSparseKernels(torch::Library &library) {
  std::unordered_map<std::string, OpRule> rules;
  for (const OpRule &rule : opRules())
    rules.emplace(rule.op, rule);
  for (const c10::OperatorName &name : c10::Dispatcher::singleton().getAllOpNames()) {
    auto handle = c10::Dispatcher::singleton().findSchema(name);
    if (name.name.rfind("aten::", 0) != 0 || !handle ||
        !handle->hasKernelForDispatchKey(c10::DispatchKey::SparseCPU))
      continue;
    std::string op = name.name.substr(6) + (name.overload_name.empty() ? "" : "." + name.overload_name);
    auto known = rules.find(op);
    Rule rule = known == rules.end() ? Rule::Strict : known->second.rule;
    std::string method = known == rules.end() ? "_" + op : known->second.method;
    library.impl(op.c_str(), kernelFor(handle->schema(), rule, method, /*sparse=*/true));
  }
}

} // namespace vcuda
