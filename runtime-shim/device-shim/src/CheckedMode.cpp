#include <device_shim/CheckedMode.h>

#include <device_shim/Error.h>

#include <ATen/core/Tensor.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <memory>
#include <set>
#include <sstream>

namespace device_shim {
namespace {

// A callback is a plain function, and backward passes call it on threads of their own.
std::mutex activeMutex;
std::vector<CheckedMode *> active; // NOLINT(cert-err58-cpp)

void collect(const c10::IValue &value, std::vector<at::Tensor> &tensors) {
  if (value.isTensor() && value.toTensor().defined())
    tensors.push_back(value.toTensor());
  else if (value.isTensorList())
    for (const at::Tensor &tensor : value.toTensorVector())
      tensors.push_back(tensor);
}

// Operators that take tensors of several devices on purpose; indices may be on the CPU.
bool allowsSeveral(const std::string &op) {
  static const std::set<std::string> names = {"aten::index", "aten::index_put_", "aten::_index_put_impl_",
                                              "aten::index_put"};
  return names.count(op) > 0;
}

bool copies(const std::string &op) {
  static const std::set<std::string> names = {"aten::copy_", "aten::_to_copy", "aten::to", "aten::set_data"};
  return names.count(op) > 0;
}

std::unique_ptr<at::ObserverContext> beforeOperator(const at::RecordFunction &function) {
  std::vector<at::Tensor> tensors;
  for (const auto &input : function.inputs())
    collect(input, tensors);
  const at::Tensor *first = nullptr;
  bool mixed = false, differ = false;
  for (const auto &tensor : tensors) {
    differ = differ || tensor.device() != tensors.front().device();
    if (tensor.dim() == 0 && tensor.is_cpu())
      continue;
    mixed = mixed || (first && first->device() != tensor.device());
    first = first ? first : &tensor;
  }
  const std::string op = function.name();
  if (!differ || allowsSeveral(op))
    return nullptr;
  std::ostringstream operands;
  for (size_t i = 0; i < tensors.size(); ++i)
    operands << (i ? ", " : "") << tensors[i].device() << " " << tensors[i].sizes();
  std::lock_guard<std::mutex> lock(activeMutex);
  for (auto *mode : active)
    mode->note({op, operands.str(), copies(op)}, mixed);
  return nullptr;
}

std::string sentence(const CheckedMode::Call &call) {
  return call.op.empty() ? "" : call.op + " got " + call.operands;
}

} // namespace

CheckedMode::CheckedMode() {
  {
    std::lock_guard<std::mutex> lock(activeMutex);
    active.push_back(this);
  }
  handle = at::addThreadLocalCallback(
      at::RecordFunctionCallback(beforeOperator).needsInputs(true).scopes({at::RecordScope::FUNCTION}));
}

CheckedMode::~CheckedMode() {
  at::removeCallback(handle);
  std::lock_guard<std::mutex> lock(activeMutex);
  active.erase(std::remove(active.begin(), active.end(), this), active.end());
}

void CheckedMode::note(Call call, bool mixed) {
  std::lock_guard<std::mutex> lock(mutex);
  if (!call.copies)
    lastOverDevices = call;
  if (!mixed)
    return;
  if (!call.copies)
    last = call;
  if (calls.size() < most)
    calls.push_back(std::move(call));
}

std::vector<CheckedMode::Call> CheckedMode::mixed_calls() const {
  std::lock_guard<std::mutex> lock(mutex);
  return calls;
}

std::string CheckedMode::last_mixed_call() const {
  std::lock_guard<std::mutex> lock(mutex);
  return sentence(last);
}

std::string CheckedMode::last_call_over_devices() const {
  std::lock_guard<std::mutex> lock(mutex);
  return sentence(lastOverDevices);
}

void detail::rethrowExplained(const CheckedMode &mode, const std::string &where) {
  const auto call = mode.last_call_over_devices();
  try {
    throw;
  } catch (const c10::Error &error) {
    const std::string text = error.what_without_backtrace();
    if (call.empty() || text.find("device") == std::string::npos)
      throw;
    throw DeviceError(where + ": " + call + "; LibTorch says: " + text.substr(0, text.find('\n')));
  }
}

} // namespace device_shim
