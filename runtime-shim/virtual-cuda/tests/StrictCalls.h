// Calling any operator by its schema, with one tensor on another device.
#pragma once

#include "RuleTable.h"

namespace support {

using c10::IValue;

// Which arguments are tensors, optional tensors or lists of them.
inline bool holdsTensors(const c10::TypePtr &type) {
  if (type->kind() == c10::TypeKind::OptionalType)
    return holdsTensors(type->expectRef<c10::OptionalType>().getElementType());
  if (type->kind() == c10::TypeKind::ListType)
    return holdsTensors(type->expectRef<c10::ListType>().getElementType());
  return type->kind() == c10::TypeKind::TensorType;
}

inline bool isList(const c10::TypePtr &type) {
  if (type->kind() == c10::TypeKind::OptionalType)
    return isList(type->expectRef<c10::OptionalType>().getElementType());
  return type->kind() == c10::TypeKind::ListType;
}

inline IValue tensorValue(const c10::TypePtr &type, torch::Device device) {
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

inline c10::optional<IValue> otherValue(const c10::Argument &argument) {
  if (auto value = anyValue(argument))
    return value;
  if (argument.type()->kind() != c10::TypeKind::ListType)
    return c10::nullopt;
  switch (argument.type()->expectRef<c10::ListType>().getElementType()->kind()) {
  case c10::TypeKind::IntType:
    return IValue(c10::List<int64_t>({1, 1}));
  case c10::TypeKind::FloatType:
    return IValue(c10::List<double>({1.0}));
  case c10::TypeKind::BoolType: {
    c10::List<bool> flags;
    flags.resize(argument.N().value_or(3), true);
    return IValue(flags);
  }
  default:
    return c10::nullopt;
  }
}

// Whether CUDA's wrapper looks at an argument: not at inputs after the '*' of the schema.
inline bool isCompared(const c10::Argument &argument) {
  return holdsTensors(argument.type()) && (!argument.kwarg_only() || argument.is_out());
}

// The text with operand `moved` (counted among the tensor arguments) on `elsewhere`; none when the operator
// cannot be called this way, or when CUDA's wrapper does not look at the operand.
inline c10::optional<std::string> textOf(const c10::OperatorHandle &op, size_t moved,
                                         torch::Device elsewhere) {
  torch::jit::Stack stack;
  size_t operand = 0;
  for (const c10::Argument &argument : op.schema().arguments()) {
    bool tensors = holdsTensors(argument.type());
    if (tensors && operand == moved && !isCompared(argument))
      return c10::nullopt;
    auto value =
        tensors ? c10::optional<IValue>(tensorValue(argument.type(), operand++ == moved ? elsewhere : gpu0))
                : otherValue(argument);
    if (!value)
      return c10::nullopt;
    stack.push_back(*value);
  }
  return thrown([&] { op.callBoxed(stack); });
}

} // namespace support
