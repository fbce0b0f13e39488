#include "ErrorRecords.h"

#include "ForwardCalls.h"
#include "Json.h"
#include "Origins.h"
#include "Records.h"
#include "RunningOps.h"

#include <ATen/core/dispatch/Dispatcher.h>

namespace vcuda {
namespace {

// What LibTorch says when devices do not fit, by the words that are the same in all its releases.
const char *const kDeviceTexts[] = {
    "to be on the same device",
    "are not at the same device",
    "to be on same device",
    "be either on cpu or on the same device",
    "Trying to pass too many CPU scalars",
    "CPU Scalar support for ",
    "and weight type (",
    "and bias type (",
    "on different devices",
    "storage on different device",
    "does not match device of data",
    "tensor on the same device",
    "tensors on the same device",
    "must be on the same device",
    "must be placed on the same device",
    "to have the same device",
    "device type for generator but found",
    "should be a 1D CPU int64 tensor",
    "requires tensor_indices_or_sections to be on cpu",
    "only dense CPU tensors can be pinned",
    "Tensors must be CUDA and dense",
    "resides on host memory",
    "must all be on the same device",
    "should be on the same device",
    "to be in the same device",
    "must have the same device type",
    "expected 'other' to be a CPU tensor",
    "does not match recording stream's device index",
};

bool isMixedDevices(const std::string &text) {
  for (const char *known : kDeviceTexts)
    if (text.find(known) != std::string::npos)
      return true;
  // "expected device cuda:0 but got device cpu", "expected device cuda:0 but got cpu"
  size_t expected = text.find("expected device ");
  return expected != std::string::npos && text.find(" but got ", expected) != std::string::npos;
}

std::string madeOf(const Origin &origin) {
  JsonLine made;
  made.text("how", origin.moved ? "moved" : "created");
  if (!origin.op.empty())
    made.text("op", origin.op);
  if (!origin.copied.empty()) {
    std::string places;
    for (const CallStack &place : origin.copied)
      places += (places.empty() ? "" : ", ") + JsonLine().stack("stack", place).take();
    made.json("copied", "[" + places + "]");
  }
  return made.stack("stack", origin.stack).take();
}

std::string describe(const at::Tensor &tensor, size_t index, const std::string &name, int element) {
  JsonLine line;
  line.integer("index", static_cast<long long>(index)).text("name", name);
  if (element >= 0)
    line.integer("element", element);
  line.text("device", tensor.device().str());
  if (tensor.layout() != at::kStrided || !tensor.has_storage())
    return line.take();
  line.integers("shape", tensor.sizes());
  c10::StorageImpl *storage = tensor.storage().unsafeGetStorageImpl();
  if (auto origin = originOf(originKey(*storage)))
    line.json("made", madeOf(*origin));
  return line.take();
}

// Numbers that LibTorch converted to tensors are not tensors of the program.
bool isProgramsTensor(const c10::IValue &value) {
  return value.isTensor() && value.toTensor().defined() &&
         !value.toTensor().unsafeGetTensorImpl()->is_wrapped_number();
}

// The tensors among an operator's arguments, in schema order.
std::string describeArguments(const RunningOp &op) {
  std::string list;
  auto append = [&](const std::string &entry) { list += (list.empty() ? "" : ", ") + entry; };
  auto handle = c10::Dispatcher::singleton().findSchema(*op.operatorName);
  for (size_t i = 0; i < op.inputs.size(); ++i) {
    const c10::IValue &value = op.inputs[i];
    bool named = handle && i < handle->schema().arguments().size();
    std::string name = named ? handle->schema().arguments()[i].name() : "";
    if (isProgramsTensor(value)) {
      append(describe(value.toTensor(), i, name, -1));
    } else if (value.isList()) {
      int element = 0;
      for (const c10::IValue &each : value.toListRef()) {
        if (each.isTensor() && each.toTensor().defined())
          append(describe(each.toTensor(), i, name, element));
        ++element;
      }
    }
  }
  return "[" + list + "]";
}

struct Node {
  std::string name;
  uint64_t forwardThread;
  int64_t sequenceNumber;
};

// The node that is running or, when the engine does not accept what a node returned, the one that has run.
c10::optional<Node> nodeToBlame(const std::string &text) {
  const std::string before = "Function ", after = " returned an invalid gradient";
  size_t begin = text.rfind(before, 0), end = text.find(after);
  if (begin == 0 && end != std::string::npos) {
    FinishedNode node = lastFinishedNode();
    return Node{text.substr(before.size(), end - before.size()), node.forwardThread, node.sequenceNumber};
  }
  if (const RunningOp *node = runningNode())
    return Node{node->name, node->forwardThread, node->sequenceNumber};
  return c10::nullopt;
}

void write(const char *errorClass, const std::string &text, const std::string &op, const std::string &args) {
  JsonLine line;
  line.text("kind", "error").text("error", text).text("class", errorClass);
  line.text("op", op).json("args", args);
  line.number("ts_us", nowInMicroseconds()).integer("tid", threadNumber());
  line.stack("stack", CallStack::ofCaller());
  if (const auto node = nodeToBlame(text)) {
    JsonLine backward;
    backward.text("node", node->name);
    if (const auto call = forwardCall(node->forwardThread, node->sequenceNumber))
      backward.stack("stack", *call);
    line.json("backward", backward.take());
  }
  if (traceFile())
    traceFile()->flush();
  errorFile()->write(line.take());
}

// An error of the operator, or of the function named where there is none.
void writeOfOp(const char *errorClass, const std::string &text, const RunningOp *op, const char *function) {
  write(errorClass, text, op ? op->name : function, op && op->operatorName ? describeArguments(*op) : "[]");
}

} // namespace

void recordInvalidOrdinal(const std::string &text) {
  if (errorFile())
    writeOfOp("invalid-ordinal", text, allocatingOp(), "");
}

void recordOutOfMemory(const std::string &text) {
  if (errorFile())
    writeOfOp("out-of-memory", text, allocatingOp(), "");
}

void recordIfMixedDevices(const std::string &text, const char *function) {
  if (errorFile() && isMixedDevices(text))
    writeOfOp("mixed-devices", text, innermostOp(), function);
}

void recordHostAccess(const std::string &text, int device, const c10::optional<Origin> &origin) {
  if (!errorFile())
    return;
  std::string args = "[]";
  if (device >= 0) {
    JsonLine tensor;
    tensor.integer("index", 0).text("name", "memory").text("device", "cuda:" + std::to_string(device));
    if (origin)
      tensor.json("made", madeOf(*origin));
    args = "[" + tensor.take() + "]";
  }
  write("host-access", text, "host code", args);
}

} // namespace vcuda
