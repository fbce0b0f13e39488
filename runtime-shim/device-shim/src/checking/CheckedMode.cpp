#include <device_shim/CheckedMode.h>

#include <device_shim/Error.h>

#include <ATen/core/Tensor.h>
#include <ATen/record_function.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <atomic>
#include <exception>
#include <mutex>
#include <set>
#include <sstream>
#include <thread>

namespace device_shim {
namespace {

// A callback is a plain function, so it finds the log of its thread here. Autograd hands this information to
// the threads of a backward pass, together with the callback.
const auto kLogKind = c10::DebugInfoKind::TEST_INFO; // NOLINT(cert-err58-cpp)

/// What the modes of a thread write down; nested ones are a chain.
class CallLog : public c10::DebugInfoBase, public std::enable_shared_from_this<CallLog> {
public:
  using Call = CheckedMode::Call;

  /// That of the innermost mode of this thread; null without one.
  static std::shared_ptr<CallLog> current() {
    auto *log = dynamic_cast<CallLog *>(c10::ThreadLocalDebugInfo::get(kLogKind));
    return log ? log->shared_from_this() : nullptr;
  }

  explicit CallLog(std::shared_ptr<CallLog> outerLog)
      : outer(std::move(outerLog)), owner(std::this_thread::get_id()) {}
  bool isOutermost() const { return !outer; }

  /// `mixed`: not only tensors of no dimensions on the CPU are elsewhere.
  void note(const Call &call, bool mixed) {
    if (outer)
      outer->note(call, mixed);
    std::lock_guard<std::mutex> lock(mutex);
    if (!call.copies)
      lastOverDevices = call;
    if (!mixed)
      return;
    if (!call.copies)
      last = call;
    if (calls.size() < CheckedMode::most)
      calls.push_back(call);
  }

  /// An operator begins on this thread: what had failed there, or in a backward pass that this thread waited
  /// for, was caught.
  void begin() {
    if (outer)
      outer->begin();
    if (!hasFailed)
      return;
    std::lock_guard<std::mutex> lock(mutex);
    const auto thread = std::this_thread::get_id();
    if (thread == owner || thread == failedOn)
      hasFailed = false;
  }
  /// `call` ends with an exception. It may have been called by others that end so, too: the innermost counts.
  void fail(const Call &call) {
    if (outer)
      outer->fail(call);
    std::lock_guard<std::mutex> lock(mutex);
    if (hasFailed)
      return;
    failed = call;
    failedOn = std::this_thread::get_id();
    hasFailed = true;
  }

  /// The call that failed last, when its exception was not caught.
  Call failure() const { return hasFailed ? read(failed) : Call(); }
  std::vector<Call> all() const { return read(calls); }
  Call lastMixed() const { return read(last); }
  Call lastOver() const { return read(lastOverDevices); }

private:
  template <typename Value> Value read(const Value &value) const {
    std::lock_guard<std::mutex> lock(mutex);
    return value;
  }

  std::shared_ptr<CallLog> outer;
  mutable std::mutex mutex; // a backward pass has a thread per device
  std::vector<Call> calls;
  Call last, lastOverDevices, failed;
  std::thread::id owner, failedOn;
  std::atomic<bool> hasFailed{false};
};

/// A call over devices while it runs.
struct RunningCall final : at::ObserverContext {
  CheckedMode::Call call;
  int exceptions = std::uncaught_exceptions();
};

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
  const auto log = CallLog::current();
  if (!log)
    return nullptr;
  log->begin();
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
  auto running = std::make_unique<RunningCall>();
  running->call = {op, operands.str(), copies(op)};
  log->note(running->call, mixed);
  return running;
}

void afterOperator(const at::RecordFunction &, at::ObserverContext *context) {
  const auto *running = static_cast<const RunningCall *>(context);
  if (!running || running->call.copies || std::uncaught_exceptions() <= running->exceptions)
    return;
  if (const auto log = CallLog::current())
    log->fail(running->call);
}

std::string sentence(const CheckedMode::Call &call) {
  return call.op.empty() ? "" : call.op + " got " + call.operands;
}

} // namespace

struct CheckedMode::State {
  State() : log(std::make_shared<CallLog>(CallLog::current())), guard(kLogKind, log) {
    // One callback serves all modes of a thread.
    if (log->isOutermost())
      handle = at::addThreadLocalCallback(at::RecordFunctionCallback(beforeOperator, afterOperator)
                                              .needsInputs(true)
                                              .scopes({at::RecordScope::FUNCTION}));
  }
  ~State() {
    if (log->isOutermost())
      at::removeCallback(handle);
  }
  State(const State &) = delete;
  State &operator=(const State &) = delete;

  std::shared_ptr<CallLog> log;
  c10::DebugInfoGuard guard;
  at::CallbackHandle handle = 0;
};

CheckedMode::CheckedMode() : state(std::make_unique<State>()) {}
CheckedMode::~CheckedMode() = default;

std::vector<CheckedMode::Call> CheckedMode::mixed_calls() const { return state->log->all(); }
std::string CheckedMode::last_mixed_call() const { return sentence(state->log->lastMixed()); }
std::string CheckedMode::last_call_over_devices() const { return sentence(state->log->lastOver()); }
std::string CheckedMode::failed_call() const { return sentence(state->log->failure()); }

void detail::rethrowExplained(const CheckedMode &mode, const std::string &where) {
  const auto call = mode.failed_call();
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
