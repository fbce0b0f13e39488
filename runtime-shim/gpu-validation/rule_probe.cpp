// Runs the rule table on the devices that are there, and prints what happened, one JSON object per line:
//
//   {"part": "family"|"strict"|"iterator", "op": ..., "placement": ..., "expected": "runs"|"throws",
//    "observed": "runs"|"throws"|"other error", "text": ...}
//
//   rule_probe [--from N]
//
// Before each operator it prints {"begin": N}: after a crash the next run starts behind it. A CUDA error
// stays with the process, so the program ends with code 3 after one.

#include "OpCases.h"
#include "StrictCalls.h"

#include <torch/cuda.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <string>

namespace {

using namespace opcases;
using namespace support;

constexpr int kExitBroken = 3;

std::string escaped(const std::string &text) {
  std::string result;
  for (const char c : text.substr(0, 400)) {
    if (c == '"' || c == '\\')
      result += '\\';
    result += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  }
  return result;
}

class Probe {
public:
  explicit Probe(int firstOperator) : first(firstOperator) {}

  /// Whether this operator is to be run; counts it.
  bool begin() {
    if (count++ < first)
      return false;
    std::cout << "{\"begin\": " << count - 1 << "}" << std::endl;
    return true;
  }

  void record(const char *part, const std::string &op, const std::string &placement, Expect expected,
              const std::string &text) {
    const char *observed = text.empty() ? "runs" : isDeviceError(text) ? "throws" : "other error";
    std::cout << "{\"part\": \"" << part << "\", \"op\": \"" << op << "\", \"placement\": \"" << placement
              << "\", \"expected\": \"" << (expected == y ? "runs" : "throws") << "\", \"observed\": \""
              << observed << "\", \"text\": \"" << escaped(text) << "\"}" << std::endl;
    if (text.find("CUDA error") != std::string::npos)
      std::exit(kExitBroken);
  }

private:
  int first;
  int count = 0;
};

bool twoGpus() { return torch::cuda::device_count() > 1; }

// Errors of kernels show when the device is waited for.
template <typename Run> std::string outcome(Run run) {
  return thrown([&] {
    run();
    torch::cuda::synchronize();
  });
}

void runFamily(Probe &probe, const Case &op) {
  const auto check = [&](Expect expected, Tensors tensors, const std::string &placement) {
    probe.record("family", op.name, placement, expected, outcome([&] { op.run(tensors); }));
  };
  check(y, op.make(), "all on cpu");
  check(y, onFirst(op), "all on cuda:0");
  const size_t operands = op.make().size();
  for (size_t i = 0; i < operands; ++i) {
    const std::string operand = "operand " + std::to_string(i);
    check(op.toCpu[i], movedTo(onFirst(op), i, cpu), operand + " on cpu, others on cuda:0");
    if (twoGpus())
      check(op.toOther[i], movedTo(onFirst(op), i, gpu1), operand + " on cuda:1, others on cuda:0");
  }
  for (size_t i = 0; i < op.scalar.size(); ++i) {
    Tensors tensors = onFirst(op);
    tensors[i] = tensors[i].flatten()[0].clone().cpu();
    const std::string operand = "0-dim operand " + std::to_string(i);
    check(op.scalar[i], tensors, operand + " on cpu, others on cuda:0");
    if (twoGpus() && op.toOther[i] == n)
      check(movesForeignScalar(op, i) ? y : n, movedTo(tensors, i, gpu1),
            operand + " on cuda:1, others on cuda:0");
  }
}

// What the table calls strict throws before anything else is looked at, so the arguments need not fit.
void runStrict(Probe &probe, const std::string &name) {
  const auto op = findOperator(name);
  if (!op || !op->hasKernelForDispatchKey(c10::DispatchKey::CUDA))
    return;
  const auto &arguments = op->schema().arguments();
  const auto tensors =
      static_cast<size_t>(std::count_if(arguments.begin(), arguments.end(),
                                        [](const auto &argument) { return holdsTensors(argument.type()); }));
  if (std::count_if(arguments.begin(), arguments.end(), isCompared) < 2)
    return;
  for (size_t moved = 0; moved < tensors; ++moved) {
    const bool toOther = twoGpus() && moved % 2 == 1;
    if (const auto text = textOf(*op, moved, toOther ? gpu1 : cpu))
      probe.record("strict", name,
                   "operand " + std::to_string(moved) + (toOther ? " on cuda:1" : " on cpu") +
                       ", others on cuda:0",
                   n, *text);
  }
}

bool isTensor(const c10::Argument &argument) { return argument.type()->kind() == c10::TypeKind::TensorType; }

bool isWritten(const c10::Argument &argument) {
  return argument.alias_info() && argument.alias_info()->isWrite();
}

// The text of a call with these tensors; none when another argument has no obvious value.
c10::optional<std::string> call(const c10::OperatorHandle &op, const Tensors &tensors) {
  torch::jit::Stack stack;
  size_t next = 0;
  for (const c10::Argument &argument : op.schema().arguments()) {
    auto value = isTensor(argument) ? c10::optional<c10::IValue>(tensors[next++]) : anyValue(argument);
    if (!value)
      return c10::nullopt;
    stack.push_back(*value);
  }
  return outcome([&] { op.callBoxed(stack); });
}

// Operators on TensorIterator that run with vectors of two elements: none of them may be elsewhere, and
// whether a 0-dim CPU tensor may is the difference between the two rules.
void runIterator(Probe &probe, const std::string &name, bool takesScalar) {
  const auto op = findOperator(name);
  if (!op || !op->hasKernelForDispatchKey(c10::DispatchKey::CUDA))
    return;
  std::vector<const c10::Argument *> operands;
  for (const c10::Argument &argument : op->schema().arguments())
    if (isTensor(argument))
      operands.push_back(&argument);
  if (operands.size() < 2)
    return;
  const auto fresh = [&] {
    Tensors tensors;
    for (size_t i = 0; i < operands.size(); ++i)
      tensors.push_back(torch::ones({2}, on(gpu0)));
    return tensors;
  };
  const auto plain = call(*op, fresh());
  if (!plain || !plain->empty())
    return;
  for (size_t i = 0; i < operands.size(); ++i) {
    auto tensors = fresh();
    tensors[i] = torch::ones({2});
    const std::string operand = "operand " + std::to_string(i);
    probe.record("iterator", name, operand + " on cpu, others on cuda:0", n, *call(*op, tensors));
    tensors = fresh();
    tensors[i] = torch::ones({});
    const Expect expected = takesScalar && !isWritten(*operands[i]) ? y : n;
    probe.record("iterator", name, "0-dim " + operand + " on cpu, others on cuda:0", expected,
                 *call(*op, tensors));
  }
}

} // namespace

int main(int argc, char **argv) {
  const int first = argc == 3 && std::string(argv[1]) == "--from" ? std::atoi(argv[2]) : 0;
  if (!torch::cuda::is_available()) {
    std::cerr << "rule_probe: no CUDA device is visible\n";
    return 2;
  }
  torch::NoGradGuard noGrad;
  Probe probe(first);
  for (const Case &op : cases())
    if (probe.begin())
      runFamily(probe, op);
  for (const Operator &row : operatorsWithRule("strict"))
    if (probe.begin())
      runStrict(probe, row.name);
  for (const char *rule : {"iterator", "gpu_kernel"})
    for (const Operator &row : operatorsWithRule(rule))
      if (probe.begin())
        runIterator(probe, row.name, row.rule == "iterator_scalar");
  std::cout << "{\"done\": true}" << std::endl;
  return 0;
}
