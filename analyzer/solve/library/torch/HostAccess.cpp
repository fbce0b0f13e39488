//===- HostAccess.cpp - host code and the memory of tensors --------===//
#include "analyzer/solve/library/torch/HostAccess.h"

#include "analyzer/facts/NameParts.h"
#include "analyzer/models/Models.h"
#include "analyzer/solve/domain/DeviceTerms.h"
#include "analyzer/solve/domain/HiddenFields.h"
#include "analyzer/solve/domain/Registers.h"
#include "analyzer/solve/domain/TermOps.h"
#include "analyzer/solve/engine/Library.h"
#include "analyzer/solve/library/torch/Words.h"

#include <algorithm>

namespace devicetidy {
namespace {

using models::Effect;

// A pointer that a join has made of several may have lost what they differed in.
Value fieldOf(const Value &pointer, Name field) {
  const auto found = pointer->fields.find(field);
  return found == pointer->fields.end() ? unknownValue() : found->second;
}

std::string textOf(const Value &pointer) {
  const Value text = fieldOf(pointer, hidden::text);
  const auto known = is(text, ValueKind::Scalar) ? devicetidy::textOf(text->term) : std::nullopt;
  return known ? known->str() : std::string();
}

// `memory` must be where `user` works; both are placed values. A view may never be read.
void requireMemory(Call &call, const TensorUse &memory, const TensorUse &user, std::string operation,
                   bool isView = false) {
  if (!is(memory.tensor, ValueKind::Tensor))
    return;
  Machine::Requirement requirement;
  requirement.operation = std::move(operation);
  requirement.kind = ConflictKind::HostAccess;
  requirement.isSure = !isView;
  call.machine.requireSame(call, {memory, user}, requirement);
}

void requireHost(Call &call, const Value &tensor, const Operand *operand, std::string text,
                 std::string operation, bool isView = false) {
  const TensorUse host{tensorValue(Placement::cpu(), someRank, nullptr), operand, "the host"};
  requireMemory(call, {tensor, operand, std::move(text)}, host, std::move(operation), isView);
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

// Is it a pointer that the caller of this entry has passed, and not by a name that says where its memory is?
bool isGivenPointer(const Call &call, const Value &pointer, const Operand &operand) {
  if (!models::findRole(operand.text.view(), "device_memory").empty())
    return false;
  const Term origin =
      is(pointer, ValueKind::Address) ? call.machine.memory.info(pointer->address.root).origin : nullptr;
  return origin && applies(origin, op::pointee) && applies(origin->args[0], op::parameter);
}

// Is `type` a pointer to pointers, or a container or iterator of pointers?
bool leadsToPointers(const Types &types, Name type) {
  const Type *known = types.program.type(type);
  const Name inner = types.inner(type);
  if (!inner.empty() && types.program.type(inner) && types.program.type(inner)->kind == TypeKind::Pointer)
    return true;
  return known && known->kind == TypeKind::Record &&
         std::any_of(known->args.begin(), known->args.end(),
                     [&](Name arg) { return leadsToPointers(types, arg); });
}

// Does the function work on pointers, as std::find among pointers and a std::vector of them do? Then the
// pointer is one of its values, and what it points to does not matter.
bool worksOnPointers(const Call &call) {
  const Types &types = call.machine.types;
  return (call.fact.kind == FactKind::Construct && leadsToPointers(types, call.fact.type)) ||
         std::any_of(call.fact.operands.begin(), call.fact.operands.end(),
                     [&](const Operand &operand) { return leadsToPointers(types, operand.type); });
}

// Does a library take the number at `operand`, which is given by reference (std::optional(p[0]),
// numbers.push_back(p[i]))? Not where it hands on the reference.
bool isReadBy(const Call &call, const Operand &operand) {
  const Fact &fact = call.fact;
  const Types &types = call.machine.types;
  return operand.isAddress && types.classOf(operand.type) == TypeClass::Scalar && !fact.resultIsAddress &&
         !types.isPointer(fact.type) && (fact.target.empty() || !types.program.function(fact.target)) &&
         !effectOf(call.machine, fact, "same_argument");
}

} // namespace

Value tensorBehind(const Value &pointer) { return fieldOf(pointer, hidden::tensor); }

TensorUse memoryUse(const Value &pointer, const Operand &operand) {
  return {tensorBehind(pointer), &operand, textOf(pointer)};
}

void meetHostAccess(Call &call) {
  const Operand &place = call.fact.operands[0];
  const Value pointer = registerOf(call.row, place.reg);
  // A store has the text of what is stored.
  requireHost(call, fieldOf(pointer, hidden::tensor), &place, textOf(pointer),
              call.fact.kind == FactKind::Store ? "=" : place.text.str());
}

void meetHostFunction(Call &call) {
  for (std::size_t i = call.first; i < call.fact.operands.size(); ++i) {
    const Operand &operand = call.fact.operands[i];
    const Value pointer = registerOf(call.row, operand.reg);
    if (!isTensorMemory(pointer) || worksOnPointers(call))
      continue;
    if (isReadBy(call, operand)) {
      requireHost(call, fieldOf(pointer, hidden::tensor), &operand, textOf(pointer), operand.text.str());
      continue;
    }
    const bool isView = models::hasRole(call.fact.name.view(), "host_view");
    if (isView || models::hasRole(call.fact.name.view(), "host_memory"))
      requireHost(call, fieldOf(pointer, hidden::tensor), &operand, textOf(pointer), call.fact.name.str(),
                  isView);
  }
}

namespace {

// A device by name is the caller's choice, too, where another way through the function takes the CPU: a
// switch over the kinds of devices. The way that comes second tells.
std::optional<Placement> chosenBesideHost(const Call &call, const Placement &placement) {
  auto &[onCpu, onCuda] = call.machine.agreements[call.fact.where];
  (placement.kind == PlacementKind::Cpu ? onCpu : onCuda) = true;
  if (!onCpu || !onCuda)
    return std::nullopt;
  return placement.kind == PlacementKind::Cpu ? Placement::cuda(currentCudaIndex()) : placement;
}

// Memory that a caller has passed together with the device that the tensor is made for: who does that may
// mean the tensor to be there, or to go there.
void meetGivenBlob(Call &call, const Placement &placement, const Operand &operand, std::string operation) {
  const std::optional<Placement> chosen =
      isConstant(placement) ? chosenBesideHost(call, placement) : placement;
  if (!chosen)
    return;
  Machine::Requirement requirement{std::move(operation), ConflictKind::HostAccess};
  requirement.isOpen = true;
  const TensorUse given{tensorValue(Placement::cpu(), someRank, nullptr), &operand, operand.text.str()},
      blob{tensorValue(*chosen, someRank, nullptr), &operand, "the result"};
  call.machine.requireSame(call, {given, blob}, requirement);
}

} // namespace

void meetBlob(Call &call, const Placement &placement) {
  if (call.fact.operands.size() <= call.first)
    return;
  const Operand &operand = call.fact.operands[call.first];
  const Value pointer = registerOf(call.row, operand.reg);
  const std::string operation(lastPart(call.fact.name.view()));
  const TensorUse blob{tensorValue(placement, someRank, nullptr), &operand, "the result"};
  // Which of several GPUs is meant is up to the memory when the options name no index.
  if (isTensorMemory(pointer) && placement.kind == PlacementKind::Cpu)
    requireMemory(call, memoryUse(pointer, operand), blob, operation);
  else if (isHostMemory(call, pointer) && placement.kind != PlacementKind::Cpu)
    requireMemory(call, {tensorValue(Placement::cpu(), someRank, nullptr), &operand, operand.text.str()},
                  blob, operation);
  else if (placement.isKnown() && isGivenPointer(call, pointer, operand))
    meetGivenBlob(call, placement, operand, operation);
}

namespace {

Value pointerInto(const Value &tensor, Name text) {
  return recordValue(hidden::memoryType,
                     {{hidden::tensor, tensor}, {hidden::text, scalarValue(textTerm(text))}});
}

// data_ptr<T>(), accessor<T, N>() and their like; data() gives a tensor when it is no template.
std::optional<Outcomes> tensorMemory(Call &call, const Effect &) {
  if (!is(call.object(), ValueKind::Tensor) ||
      call.machine.types.classOf(call.resultType()) == TypeClass::Tensor)
    return std::nullopt;
  const Operand &object = call.fact.operands[0];
  const Name text = call.fact.isObjectPointee ? Name("(*" + object.text.str() + ")") : object.text;
  return call.done(pointerInto(call.object(), text));
}

// What describes the memory of a tensor to a kernel is such a pointer as well.
Outcomes memoryOf(Call &call) {
  const Value tensor = call.arg(0);
  if (!is(tensor, ValueKind::Tensor))
    return call.done(unknownValue());
  return call.done(pointerInto(tensor, call.fact.operands[call.first].text));
}

// A pointer, and the device that its memory is said to be on.
std::optional<Outcomes> makeDataPtr(const Making &making, const Effect &) {
  for (const Argument &arg : making.args)
    if (is(arg.value, ValueKind::Device))
      meetBlob(making.call, making.call.machine.concrete(making.call.row, arg.value->placement));
  return making.done(recordValue(making.type));
}

// What a part of an accessor leads to is the same memory.
std::optional<Outcomes> partOfMemory(Call &call, const Effect &) {
  return isTensorMemory(call.object()) ? std::optional(call.done(call.object())) : std::nullopt;
}

} // namespace

Words hostAccessWords() {
  return {{{"tensor_memory", tensorMemory}, {"part_of_memory", partOfMemory}},
          {{"memory_of", memoryOf}},
          {{"make_data_ptr", makeDataPtr}}};
}

} // namespace devicetidy
