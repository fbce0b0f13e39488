// The rules of TensorIterator operators against PyTorch itself: on the meta device every structured
// operator runs its real TensorIterator, device checks included, and treats "meta" as CUDA is treated.
#include "TestSupport.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include <algorithm>
#include <fstream>
#include <sstream>

namespace {

using c10::IValue;
using c10::TypeKind;

enum class Outcome { Accepted, WrongDevice, Other };

struct Operator {
  std::string name, rule;
};

std::vector<Operator> iteratorOperators() {
  std::vector<Operator> operators;
  std::ifstream file(OP_RULES);
  for (std::string line; std::getline(file, line);) {
    std::istringstream cells(line);
    std::string version;
    Operator row;
    std::getline(cells, version, ',');
    std::getline(cells, row.name, ',');
    std::getline(cells, row.rule, ',');
    if (version == "1.13.1" && row.rule.rfind("iterator", 0) == 0)
      operators.push_back(row);
  }
  return operators;
}

c10::optional<c10::OperatorHandle> find(const std::string &name) {
  size_t dot = name.find('.');
  return c10::Dispatcher::singleton().findSchema(
      {"aten::" + name.substr(0, dot), dot == std::string::npos ? "" : name.substr(dot + 1)});
}

bool isTensor(const c10::Argument &argument) { return argument.type()->kind() == TypeKind::TensorType; }

c10::optional<IValue> anyValue(const c10::Argument &argument) {
  if (argument.default_value())
    return argument.default_value();
  switch (argument.type()->kind()) {
  case TypeKind::NumberType:
    return IValue(at::Scalar(1));
  case TypeKind::FloatType:
    return IValue(0.5);
  case TypeKind::IntType:
    return IValue(int64_t(0));
  case TypeKind::BoolType:
    return IValue(false);
  case TypeKind::OptionalType:
    return IValue();
  default:
    return c10::nullopt;
  }
}

Outcome call(const c10::OperatorHandle &op, const std::vector<at::Tensor> &tensors) {
  torch::jit::Stack stack;
  size_t next = 0;
  for (const c10::Argument &argument : op.schema().arguments()) {
    c10::optional<IValue> value =
        isTensor(argument) ? c10::optional<IValue>(tensors[next++]) : anyValue(argument);
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
  for (const Operator &row : iteratorOperators()) {
    auto op = find(row.name);
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
