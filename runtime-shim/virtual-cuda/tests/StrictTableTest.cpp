// Every operator that the table calls strict: with one operand on another device it throws what the
// generated wrapper of a CUDA build throws, with the argument's and the method's name, whatever its shapes
// and other arguments are.
#include "RuleTable.h"

#include <algorithm>

using namespace support;
using c10::IValue;

namespace {

// Which arguments are tensors, optional tensors or lists of them.
bool holdsTensors(const c10::TypePtr &type) {
  if (type->kind() == c10::TypeKind::OptionalType)
    return holdsTensors(type->expectRef<c10::OptionalType>().getElementType());
  if (type->kind() == c10::TypeKind::ListType)
    return holdsTensors(type->expectRef<c10::ListType>().getElementType());
  return type->kind() == c10::TypeKind::TensorType;
}

bool isList(const c10::TypePtr &type) {
  if (type->kind() == c10::TypeKind::OptionalType)
    return isList(type->expectRef<c10::OptionalType>().getElementType());
  return type->kind() == c10::TypeKind::ListType;
}

IValue tensorValue(const c10::TypePtr &type, torch::Device device) {
  auto tensor = torch::ones({2, 2}, on(device));
  if (!isList(type))
    return tensor;
  c10::TypePtr element = type->kind() == c10::TypeKind::OptionalType
                             ? type->expectRef<c10::OptionalType>().getElementType()
                             : type;
  if (element->expectRef<c10::ListType>().getElementType()->kind() == c10::TypeKind::OptionalType)
    return c10::List<c10::optional<at::Tensor>>({c10::optional<at::Tensor>(tensor)});
  return c10::List<at::Tensor>({tensor});
}

c10::optional<IValue> otherValue(const c10::Argument &argument) {
  if (auto value = anyValue(argument))
    return value;
  if (argument.type()->kind() != c10::TypeKind::ListType)
    return c10::nullopt;
  switch (argument.type()->expectRef<c10::ListType>().getElementType()->kind()) {
  case c10::TypeKind::IntType:
    return IValue(c10::List<int64_t>({1, 1}));
  case c10::TypeKind::FloatType:
    return IValue(c10::List<double>({1.0}));
  case c10::TypeKind::BoolType:
    return IValue(c10::List<bool>({true, true, true}));
  default:
    return c10::nullopt;
  }
}

// The text with operand `moved` (counted among the tensor arguments) on `elsewhere`; none when the operator
// cannot be called this way.
c10::optional<std::string> textOf(const c10::OperatorHandle &op, size_t moved, torch::Device elsewhere) {
  torch::jit::Stack stack;
  size_t operand = 0;
  for (const c10::Argument &argument : op.schema().arguments()) {
    bool tensors = holdsTensors(argument.type());
    auto value =
        tensors ? c10::optional<IValue>(tensorValue(argument.type(), operand++ == moved ? elsewhere : gpu0))
                : otherValue(argument);
    if (!value)
      return c10::nullopt;
    stack.push_back(*value);
  }
  return thrown([&] { op.callBoxed(stack); });
}

TEST(StrictTable, EveryStrictOperatorThrowsTheWrappersText) {
  int operators = 0, calls = 0;
  std::vector<std::string> others;
  for (const Operator &row : operatorsWithRule("strict")) {
    auto op = findOperator(row.name);
    if (!op || !op->hasKernelForDispatchKey(c10::DispatchKey::CUDA))
      continue;
    const auto &arguments = op->schema().arguments();
    auto count = static_cast<size_t>(std::count_if(
        arguments.begin(), arguments.end(), [](auto &argument) { return holdsTensors(argument.type()); }));
    if (count < 2)
      continue;
    ++operators;
    for (size_t moved = 0; moved < count; ++moved) {
      torch::Device elsewhere = moved % 2 ? gpu1 : cpu;
      auto text = textOf(*op, moved, elsewhere);
      if (!text)
        continue;
      ++calls;
      std::string method = std::string(isTorch1 ? "wrapper_" : "wrapper_CUDA_") + row.method + ")";
      bool fits = text->rfind(kTwoDevices, 0) == 0 && text->size() > method.size() &&
                  text->compare(text->size() - method.size(), method.size(), method) == 0;
      if (!fits)
        others.push_back(row.name + ", operand " + std::to_string(moved) + ": " + *text);
    }
  }
  for (const std::string &other : others)
    ADD_FAILURE() << other;
  EXPECT_GT(operators, 250);
  EXPECT_GT(calls, 700);
}

} // namespace
