//===- HostAccess.cpp - host code and the memory of tensors --------===//
#include "analyzer/solve/library/torch/HostAccess.h"

#include "analyzer/models/Models.h"
#include "analyzer/solve/domain/NameParts.h"
#include "analyzer/solve/domain/Registers.h"

#include <set>

namespace devicetidy {
namespace {

const Name &memoryType() {
  static const Name type("@tensor memory");
  return type;
}
const Name &tensorField() {
  static const Name field("@tensor");
  return field;
}
const Name &textField() {
  static const Name field("@text");
  return field;
}

// A pointer that a join has made of several may have lost what they differed in.
Value fieldOf(const Value &pointer, Name field) {
  const auto found = pointer->fields.find(field);
  return found == pointer->fields.end() ? unknownValue() : found->second;
}

std::string textOf(const Value &pointer) {
  const Value text = fieldOf(pointer, textField());
  const auto known = is(text, ValueKind::Scalar) ? devicetidy::textOf(text->term) : std::nullopt;
  return known ? known->str() : std::string();
}

// `memory` must be where `user` works; both are placed values.
void requireMemory(Call &call, const TensorUse &memory, const TensorUse &user, std::string operation) {
  if (!is(memory.tensor, ValueKind::Tensor))
    return;
  Machine::Requirement requirement;
  requirement.operation = std::move(operation);
  requirement.kind = ConflictKind::HostAccess;
  call.machine.requireSame(call, {memory, user}, requirement);
}

void requireHost(Call &call, const Value &tensor, const Operand *operand, std::string text,
                 std::string operation) {
  const TensorUse host{tensorValue(Placement::cpu(), someRank, nullptr), operand, "the host"};
  requireMemory(call, {tensor, operand, std::move(text)}, host, std::move(operation));
}

// Is it the address of something that lies in the host's memory: a local variable or array, what `new` made,
// or the elements of a library container?
bool isHostMemory(const Call &call, const Value &pointer) {
  if (!is(pointer, ValueKind::Address))
    return false;
  const Address &address = pointer->address;
  const RootKind root = kindOf(address.root);
  if (root == RootKind::Local || root == RootKind::Heap)
    return true;
  return is(call.machine.memory.read(call.row, address), ValueKind::List);
}

// Does the function work on pointers, as std::find among pointers and a std::vector of them do? Then the
// pointer is one of its values, and nobody looks at what it points to.
bool worksOnPointers(const Call &call) {
  const Types &types = call.machine.types;
  const Name container = call.fact.kind == FactKind::Construct ? call.fact.type
                         : call.fact.hasObject                 ? call.fact.operands[0].type
                                                               : Name();
  if (!container.empty() && types.classOf(types.inner(container)) == TypeClass::Pointer)
    return true;
  for (const Operand &operand : call.fact.operands)
    if (operand.type.view().find("**") != std::string_view::npos ||
        operand.type.view().find("* *") != std::string_view::npos)
      return true;
  return false;
}

} // namespace

bool isTensorMemory(const Value &value) {
  return value && is(value, ValueKind::Record) && value->type == memoryType();
}

TensorUse memoryUse(const Value &pointer, const Operand &operand) {
  return {fieldOf(pointer, tensorField()), &operand, textOf(pointer)};
}

std::optional<Value> tensorMemory(Call &call, std::string_view method, const Value &tensor) {
  static const std::set<std::string_view> pointers = {"data_ptr", "const_data_ptr", "mutable_data_ptr",
                                                      "data"};
  if (!is(tensor, ValueKind::Tensor) || call.fact.operands.empty())
    return std::nullopt;
  const Operand &object = call.fact.operands[0];
  const bool isPointer =
      pointers.count(method) && call.machine.types.classOf(call.resultType()) == TypeClass::Pointer;
  if (!isPointer && !endsWith(method, "accessor") && !startsWith(method, "packed_accessor"))
    return std::nullopt;
  const Name text = call.fact.isObjectPointee ? Name("(*" + object.text.str() + ")") : object.text;
  return recordValue(memoryType(), {{tensorField(), tensor}, {textField(), scalarValue(textTerm(text))}});
}

std::optional<Outcomes> modelElementOfAccessor(Call &call) {
  const std::string_view name = call.fact.name.view();
  const bool isAccessor = startsWith(name, "at::TensorAccessor") ||
                          startsWith(name, "at::GenericPackedTensorAccessor") ||
                          startsWith(name, "at::PackedTensorAccessor");
  if (!isAccessor || !call.fact.hasObject || !isTensorMemory(call.object()) ||
      !isOneOf(lastPart(name), {"operator[]", "data"}))
    return std::nullopt;
  return call.done(call.object());
}

void meetHostAccess(Call &call) {
  const Operand &place = call.fact.operands[0];
  const Value pointer = registerOf(call.row, place.reg);
  // A store has the text of what is stored.
  requireHost(call, fieldOf(pointer, tensorField()), &place, textOf(pointer),
              call.fact.kind == FactKind::Store ? "=" : place.text.str());
}

void meetHostFunction(Call &call) {
  if (models::api(call.fact.name.view()).role != "host_memory" || worksOnPointers(call))
    return;
  for (std::size_t i = call.first; i < call.fact.operands.size(); ++i) {
    const Value pointer = registerOf(call.row, call.fact.operands[i].reg);
    if (isTensorMemory(pointer))
      requireHost(call, fieldOf(pointer, tensorField()), &call.fact.operands[i], textOf(pointer),
                  call.fact.name.str());
  }
}

void meetBlob(Call &call, const Placement &placement) {
  if (call.fact.operands.size() <= call.first)
    return;
  const Operand &operand = call.fact.operands[call.first];
  const Value pointer = registerOf(call.row, operand.reg);
  const TensorUse blob{tensorValue(placement, someRank, nullptr), &operand, "the result"};
  // Which of several GPUs is meant is up to the memory when the options name no index.
  if (isTensorMemory(pointer) && placement.kind == PlacementKind::Cpu)
    requireMemory(call, memoryUse(pointer, operand), blob, "from_blob");
  else if (isHostMemory(call, pointer) && placement.kind != PlacementKind::Cpu)
    requireMemory(call, {tensorValue(Placement::cpu(), someRank, nullptr), &operand, operand.text.str()},
                  blob, "from_blob");
}

} // namespace devicetidy
