// The rules of TensorIterator operators against PyTorch itself: on the meta device every structured
// operator runs its real TensorIterator, device checks included, and treats "meta" as CUDA is treated.
#include "RuleTable.h"

#include <algorithm>

namespace {

using c10::IValue;

enum class Outcome { Accepted, WrongDevice, Other };

bool isTensor(const c10::Argument &argument) { return argument.type()->kind() == c10::TypeKind::TensorType; }

Outcome call(const c10::OperatorHandle &op, const std::vector<at::Tensor> &tensors) {
  torch::jit::Stack stack;
  size_t next = 0;
  for (const c10::Argument &argument : op.schema().arguments()) {
    c10::optional<IValue> value =
        isTensor(argument) ? c10::optional<IValue>(tensors[next++]) : support::anyValue(argument);
    if (!value)
      return Outcome::Other;
    stack.push_back(*value);
  }
  std::string text = support::thrown([&] { op.callBoxed(stack); });
  if (text.empty())
    return Outcome::Accepted;
  bool device = text.find("to be on the same device") != std::string::npos ||
                text.find("too many CPU scalars") != std::string::npos;
  return device ? Outcome::WrongDevice : Outcome::Other;
}

// Outcome with operand `slot` replaced by a CPU tensor; Other when the operator does not run as it is.
Outcome callMixed(const c10::OperatorHandle &op, at::Device device, size_t count, size_t slot, bool scalar) {
  auto options = at::TensorOptions().device(device);
  auto fresh = [&] {
    std::vector<at::Tensor> tensors;
    for (size_t i = 0; i < count; ++i)
      tensors.push_back(at::ones({2}, options));
    return tensors;
  };
  if (call(op, fresh()) != Outcome::Accepted)
    return Outcome::Other;
  std::vector<at::Tensor> tensors = fresh();
  tensors[slot] = scalar ? at::ones({}) : at::ones({2});
  return call(op, tensors);
}

TEST(IteratorOracle, RulesAgreeWithTensorIterator) {
  int compared = 0;
  for (const support::Operator &row : support::operatorsWithRule("iterator")) {
    auto op = support::findOperator(row.name);
    // Hand-written meta kernels check nothing.
    if (!op || !op->hasComputedKernelForDispatchKey(c10::DispatchKey::Meta) ||
        row.name == "floor_divide_.Tensor")
      continue;
    const auto &arguments = op->schema().arguments();
    auto count = static_cast<size_t>(std::count_if(arguments.begin(), arguments.end(), isTensor));
    for (size_t slot = 0; count > 1 && slot < count; ++slot) {
      for (bool scalar : {false, true}) {
        Outcome expected = callMixed(*op, at::kMeta, count, slot, scalar);
        Outcome actual = callMixed(*op, support::gpu0, count, slot, scalar);
        if (expected == Outcome::Other || actual == Outcome::Other)
          continue;
        ++compared;
        EXPECT_EQ(actual == Outcome::Accepted, expected == Outcome::Accepted)
            << row.name << " [" << row.rule << "] operand " << slot << (scalar ? " 0-dim" : "")
            << " on the CPU";
      }
    }
  }
  EXPECT_GT(compared, 500);
}

} // namespace
