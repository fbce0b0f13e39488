#include "Trace.h"

#include "Blocks.h"
#include "Devices.h"
#include "Json.h"
#include "OthersDevices.h"
#include "Records.h"
#include "RunningOps.h"
#include "SparseTensors.h"

#include <unistd.h>

namespace vcuda {
namespace {

std::string nameOf(const c10::OperatorHandle &op) { return op.schema().name(); }

size_t bytesOf(const at::Tensor &tensor) {
  return tensor.layout() == at::kStrided ? tensor.nbytes()
                                         : sparseIndices(tensor).nbytes() + sparseValues(tensor).nbytes();
}

std::string describe(const at::Tensor &tensor, const std::string &name, int element) {
  JsonLine line;
  line.text("name", name);
  if (element >= 0)
    line.integer("element", element);
  return line.text("device", tensor.device().str()).integers("shape", tensor.sizes()).take();
}

// The tensors among the arguments, in schema order, as records of errors have them.
std::string operandsOf(const c10::OperatorHandle &op, const c10::IValue *values) {
  constexpr int mostElements = 16; // of a list
  const auto &arguments = op.schema().arguments();
  std::string list;
  const auto append = [&](const at::Tensor &tensor, const std::string &name, int element) {
    if (tensor.defined())
      list += (list.empty() ? "" : ", ") + describe(tensor, name, element);
  };
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (values[i].isTensor())
      append(values[i].toTensor(), arguments[i].name(), -1);
    else if (values[i].isList()) {
      int element = 0;
      for (const c10::IValue &each : values[i].toListRef()) {
        if (each.isTensor() && element < mostElements)
          append(each.toTensor(), arguments[i].name(), element);
        ++element;
      }
    }
  }
  return "[" + list + "]";
}

// Older releases of LibTorch give the threads of the backward pass no name of their own.
std::string currentThreadName() {
  char name[16] = "";
  if (runningNode() && threadNumber() != getpid())
    return "backward pass";
  pthread_getname_np(pthread_self(), name, sizeof(name));
  return name;
}

void nameThread() {
  thread_local bool named = false;
  if (named)
    return;
  named = true;
  traceFile()->add(JsonLine()
                       .text("kind", "thread")
                       .integer("tid", threadNumber())
                       .text("name", currentThreadName())
                       .take());
}

} // namespace

TracedOp::TracedOp(const c10::OperatorHandle &op, const c10::IValue *values, c10::Device device)
    : op_(op), device_(device) {
  if (!traceFile())
    return;
  operands_ = operandsOf(op, values);
  start_ = nowInMicroseconds();
  std::string name = nameOf(op);
  if (name == "aten::copy_") {
    const at::Tensor &target = values[0].toTensor(), &source = values[1].toTensor();
    if (target.device() == source.device())
      return;
    from_ = source.device();
    to_ = target.device();
    bytes_ = bytesOf(source);
  } else if (name == "aten::_local_scalar_dense") {
    from_ = device;
    to_ = c10::Device(c10::kCPU);
    bytes_ = values[0].toTensor().itemsize();
  }
}

TracedOp::~TracedOp() {
  if (start_ == 0)
    return;
  double duration = nowInMicroseconds() - start_;
  nameThread();
  JsonLine line;
  line.text("kind", from_ ? "copy" : "op").text("op", nameOf(op_));
  line.number("ts_us", start_).number("dur_us", duration).integer("tid", threadNumber());
  if (from_)
    line.text("from", from_->str()).text("to", to_->str()).integer("bytes", static_cast<long long>(bytes_));
  else
    line.text("device", device_.str()).integer("stream", currentStream(device_.index()).id());
  traceFile()->add(line.json("args", operands_).stack("stack", callStackOfOp()).take());
}

void traceIndexCopies(const c10::OperatorHandle &op, const OpInfo &info, const c10::IValue *values,
                      c10::Device device) {
  if (!traceFile())
    return;
  forEachTensor(info, values, [&](const Arg &arg, const at::Tensor &tensor) {
    if (arg.name != "indices" || !tensor.is_cpu())
      return;
    nameThread();
    JsonLine line;
    line.text("kind", "copy").text("op", nameOf(op));
    line.number("ts_us", nowInMicroseconds()).number("dur_us", 0).integer("tid", threadNumber());
    line.text("from", "cpu").text("to", device.str());
    line.integer("bytes", static_cast<long long>(bytesOf(tensor)));
    traceFile()->add(line.stack("stack", callStackOfOp()).take());
  });
}

void recordMemory() {
  // Where memory is limited the launcher says how much was used, with a trace or without; of several ranks,
  // who used whose device.
  bool told = (memoryLimit() != 0 || isOneOfManyRanks()) && errorFile();
  if (!traceFile() && !told)
    return;
  for (int device = 0; device < deviceCount(); ++device) {
    MemoryUse use = memoryUse(device);
    if (use.bytes.highest == 0)
      continue;
    JsonLine line;
    line.text("kind", "memory").text("device", "cuda:" + std::to_string(device));
    line.number("ts_us", nowInMicroseconds()).integer("peak", static_cast<long long>(use.bytes.highest));
    line.integer("now", static_cast<long long>(use.bytes.current));
    if (memoryLimit())
      line.integer("limit", static_cast<long long>(memoryLimit()));
    if (const auto largest = largestAllocation(device))
      line.integer("largest", static_cast<long long>(largest->bytes)).stack("stack", largest->stack);
    std::string record = line.take();
    if (traceFile())
      traceFile()->add(record);
    if (told)
      errorFile()->write(record);
  }
  if (traceFile())
    traceFile()->flush();
}

} // namespace vcuda
