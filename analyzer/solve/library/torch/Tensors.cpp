//===- Tensors.cpp - at::Tensor methods, ATen operators, factories ----===//
#include "analyzer/solve/library/torch/Tensors.h"
#include "analyzer/solve/library/torch/Gradients.h"

#include "analyzer/solve/domain/DeviceTerms.h"
#include "analyzer/solve/domain/NameParts.h"
#include "analyzer/solve/domain/Registers.h"
#include "analyzer/solve/library/std/Callables.h"
#include "analyzer/solve/library/torch/Devices.h"
#include "analyzer/solve/library/torch/HostAccess.h"
#include "analyzer/solve/library/torch/LegacyTypes.h"
#include "analyzer/solve/library/torch/Ranks.h"

#include <algorithm>

namespace devicetidy {
namespace {

using models::Op;
using models::Rank0;
using models::Result;
using models::Rule;

// Text of the receiver for a witness step; a chain of calls is no name.
std::string receiverText(const Call &call) {
  return call.fact.operands.empty() ? std::string() : call.fact.operands[0].text.str();
}

Value selfValue(Call &call) {
  return call.fact.hasObject ? call.object() : call.argCount() ? call.arg(0) : unknownValue();
}

// How many pieces chunk(3) makes; 0 when nobody knows, or the operation makes none. A tensor that is too
// small for them is rare.
std::size_t pieceCount(const Call &call, const Op &op) {
  if ((op.name != "chunk" && op.name != "tensor_split") || call.fact.operands.size() < 2)
    return 0;
  const Value count = call.operand(1);
  const auto number = call.row.numberOf(count);
  const bool isListed = number && *number > 0 && canListElements(static_cast<std::size_t>(*number));
  return isListed ? static_cast<std::size_t>(*number) : 0;
}

// The value of an operation whose tensors are on `placement`; in-place operations give back their receiver.
Outcomes finish(Call &call, const Op &op, const Placement &placement, int rank, const History &history) {
  if (op.result == Result::None)
    return call.done(call.machine.unknownResult(call));
  if (call.fact.resultIsAddress) {
    Address self = call.fact.hasObject ? call.objectAddress() : call.addressOf(0);
    return call.done(self.valid() ? addressValue(self) : unknownValue());
  }
  const bool inPlace = op.result == Result::Self && op.name.size() > 1 && op.name.back() == '_';
  if (inPlace && call.machine.types.classOf(call.resultType()) == TypeClass::Tensor)
    return call.done(selfValue(call));
  Value result = call.machine.memory.filled(call.resultType(), placement, rank, history);
  if (const std::size_t count = pieceCount(call, op); count > 0 && is(result, ValueKind::List))
    result = listValue(call.resultType(), std::vector<Value>(count, tensorValue(placement, rank, history)));
  return call.done(std::move(result));
}

Outcomes move(Call &call, const std::optional<Placement> &target, bool mayBePinned = false) {
  Machine &machine = call.machine;
  Value self = selfValue(call);
  if (is(self, ValueKind::Null))
    return call.done(self);
  const int rank = is(self, ValueKind::Tensor) ? self->rank : unknownRank;
  const std::int64_t count = is(self, ValueKind::Tensor) ? self->count : -1;
  if (!target) {
    // Only the type changes.
    if (!is(self, ValueKind::Tensor))
      return call.done(unknownValue());
    return call.done(tensorValue(machine.memory.placementOf(call.row, self), rank,
                                 machine.memory.historyOf(call.row, self), count));
  }
  Placement placement = machine.concrete(call.row, *target);
  if (isAbsent(call.row, placement))
    return {};
  // A move that is thrown away is told of at the move: what the tensor meets later is its consequence.
  if (call.fact.isDiscarded && call.fact.hasObject && self->kind == ValueKind::Tensor) {
    const Placement kept = machine.memory.placementOf(call.row, self);
    History history;
    if (kept.isKnown() && kept.kind != PlacementKind::Symbol)
      history = machine.note(machine.memory.historyOf(call.row, self), StepKind::Discarded, call.fact.where,
                             receiverText(call), kept.describe());
    const bool isParameter = self->address.valid();
    machine.memory.write(call.row, isParameter ? self->address : call.objectAddress(),
                         tensorValue(Placement::unknown(), rank, std::move(history), count));
  }
  Step step{StepKind::Moved, call.fact.where, receiverText(call), placement.describe()};
  step.mayBePinned = mayBePinned;
  if (is(self, ValueKind::Tensor))
    if (const Placement before = machine.memory.placementOf(call.row, self); before.isKnown())
      step.from = before.describe();
  return call.done(tensorValue(placement, rank, extend(nullptr, std::move(step)), count));
}

// Tensor::to: a device, options, another tensor, or only a type.
Outcomes moveTo(Call &call) {
  static const Name backendType("c10::Backend");
  if (call.argCount() == 1 && call.fact.operands[call.first].type == backendType)
    return move(call, deviceOfBackend(call, call.arg(0)));
  const std::size_t first = call.fact.hasObject ? 0 : 1; // at::to(self, ...) does not exist, methods only
  for (std::size_t i = 0; i < call.argCount(); ++i) {
    const std::size_t operand = call.first + i + first;
    if (operand >= call.fact.operands.size())
      break;
    Value value = call.operand(operand);
    const TypeClass type = call.machine.types.classOf(call.fact.operands[operand].type);
    const bool maybeDevice = type == TypeClass::Device || type == TypeClass::Options ||
                             type == TypeClass::Tensor || type == TypeClass::Optional;
    if (is(value, ValueKind::Device) || is(value, ValueKind::Tensor))
      return move(call, deviceOf(call.machine.memory, call.row, value));
    if (is(value, ValueKind::Options))
      return move(call, deviceOf(call.machine.memory, call.row, value));
    if (is(value, ValueKind::Unknown) && maybeDevice && type != TypeClass::Optional)
      return move(call, Placement::unknown());
  }
  return move(call, std::nullopt);
}

bool takesUndefined(const Call &call) {
  for (std::size_t i = 0; i < call.fact.operands.size(); ++i)
    if (call.machine.types.classOf(call.fact.operands[i].type) == TypeClass::Tensor &&
        is(call.operand(i), ValueKind::Null))
      return true;
  return false;
}

// How deep the braces of tensor({{1, 2}, {3, 4}}) are: as many dimensions it has.
int depthOf(const Value &data) {
  int depth = 0;
  Value level = data;
  for (; is(level, ValueKind::List) && !isSummary(level) && !level->elements.empty(); ++depth)
    level = Value(level->elements.front());
  return depth > 0 && is(level, ValueKind::Scalar) ? depth : someRank;
}

// empty(sizes, dtype, layout, device, pin_memory), whose last is an optional<bool>.
bool asksForPinned(const Call &call) {
  for (std::size_t i = call.first; i < call.fact.operands.size(); ++i) {
    const Value value = call.operand(i);
    if (call.fact.operands[i].type.view().find("optional<bool>") != std::string_view::npos &&
        !is(value, ValueKind::Null) && !(is(value, ValueKind::Scalar) && constantOf(value->term) == 0))
      return true;
  }
  return false;
}

Outcomes factory(Call &call, const Op &op) {
  Machine &machine = call.machine;
  Placement placement = Placement::cpu();
  int rank = op.rank0 == Rank0::Size ? rankOfSizes(call) : op.rank0 == Rank0::Yes ? 0 : someRank;
  std::int64_t count = op.rank0 == Rank0::Size ? countOfSizes(call) : -1;
  if (op.name == "tensor") {
    Value data = call.operand(0);
    const bool isScalar =
        is(data, ValueKind::Scalar) ||
        (call.fact.operands.size() && machine.types.classOf(call.fact.operands[0].type) == TypeClass::Scalar);
    rank = isScalar ? 0 : depthOf(data);
    if (rank == 1 && is(data, ValueKind::List) && !isSummary(data))
      count = static_cast<std::int64_t>(data->elements.size());
  }
  Step step{StepKind::Created, call.fact.where, call.fact.name.str(), "cpu"};
  // Of a blob, whoever gives the memory knows what it is.
  step.mayBePinned = op.name == "from_blob" || asksForPinned(call);
  if (std::optional<Value> options = optionsArgument(call, 0)) {
    if (is(*options, ValueKind::Unknown))
      return call.done(tensorValue(Placement::unknown(), rank, nullptr));
    if ((*options)->hasDevice)
      placement = machine.concrete(call.row, (*options)->placement);
    step.device = placement.describe();
    step.mayBePinned |= (*options)->pinned;
  }
  if (isAbsent(call.row, placement))
    return {};
  if (op.name == "from_blob")
    meetBlob(call, placement);
  const History history = extend(nullptr, std::move(step));
  if (machine.types.classOf(call.resultType()) == TypeClass::Tensor)
    return call.done(tensorValue(placement, rank, history, count));
  return call.done(machine.memory.filled(call.resultType(), placement, rank, history));
}

Outcomes like(Call &call, const Op &op, const std::vector<TensorUse> &uses) {
  Machine &machine = call.machine;
  const std::optional<Value> options = optionsArgument(call, call.first);
  if (options && (is(*options, ValueKind::Unknown) || (*options)->hasDevice))
    return factory(call, op);
  if (uses.empty())
    return call.done(unknownValue());
  const Value &self = uses[0].tensor;
  const int rank = op.rank0 == Rank0::Keep ? self->rank : rankOfSizes(call);
  Placement placement = machine.memory.placementOf(call.row, self);
  Step step{StepKind::Inherited, call.fact.where, uses[0].operand ? uses[0].operand->text.str() : "",
            placement.describe()};
  step.mayBePinned = (options && (*options)->pinned) || asksForPinned(call);
  return call.done(
      tensorValue(placement, rank, extend(machine.memory.historyOf(call.row, self), std::move(step))));
}

History inherited(Call &call, const std::vector<TensorUse> &uses) {
  // The result's story is that of the tensor that decided the device.
  for (const TensorUse &use : uses) {
    const Placement placement = call.machine.memory.placementOf(call.row, use.tensor);
    if (placement.isKnown() && placement.kind != PlacementKind::Cpu)
      return call.machine.memory.historyOf(call.row, use.tensor);
  }
  return uses.empty() ? nullptr : call.machine.memory.historyOf(call.row, uses[0].tensor);
}

Outcomes indexPut(Call &call, const Op &op, const std::vector<TensorUse> &uses,
                  const Machine::Requirement &requirement) {
  // uses: self, tensors among the indices, value last. Basic indices copy; tensor indices need self and value
  // together.
  if (uses.size() > 2) {
    std::vector<TensorUse> pair{uses.front(), uses.back()};
    if (uses.back().tensor->rank != 0 && uses.back().tensor->rank != unknownRank)
      call.machine.requireSame(call, pair, requirement);
  }
  return finish(call, op, call.machine.memory.placementOf(call.row, uses.front().tensor), unknownRank,
                nullptr);
}

Outcomes indexed(Call &call, const Op &op, const std::vector<TensorUse> &uses,
                 const Machine::Requirement &requirement) {
  std::vector<TensorUse> bound{uses.front()};
  for (std::size_t i = 1; i < uses.size(); ++i)
    if (call.machine.memory.placementOf(call.row, uses[i].tensor).kind != PlacementKind::Cpu)
      bound.push_back(uses[i]);
  if (bound.size() > 1)
    call.machine.requireSame(call, bound, requirement);
  const Value &self = uses.front().tensor;
  const int rank = resultRank(call, op, uses);
  return finish(call, op, call.machine.memory.placementOf(call.row, self), rank,
                call.machine.memory.historyOf(call.row, self));
}

// The elements of a braced list as the user wrote them: "{a, f(b, c)}" is a and f(b, c). None for other text.
std::vector<std::string> elementsOf(std::string_view text) {
  std::vector<std::string> elements;
  if (text.size() < 2 || text.front() != '{' || text.back() != '}')
    return elements;
  text = text.substr(1, text.size() - 2);
  int depth = 0;
  std::size_t start = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    const char c = i < text.size() ? text[i] : ',';
    depth += c == '(' || c == '[' || c == '{' ? 1 : c == ')' || c == ']' || c == '}' ? -1 : 0;
    if (c != ',' || (depth > 0 && i < text.size()))
      continue;
    while (start < i && text[start] == ' ')
      ++start;
    elements.emplace_back(text.substr(start, i - start));
    start = i + 1;
  }
  return elements;
}

} // namespace

std::vector<TensorUse> tensorUses(Call &call, std::size_t from) {
  std::vector<TensorUse> uses;
  for (std::size_t i = from; i < call.fact.operands.size(); ++i) {
    std::vector<Value> tensors;
    const Operand &operand = call.fact.operands[i];
    call.machine.collectTensors(call.row, call.operand(i), tensors);
    std::vector<std::string> names = elementsOf(operand.text.view());
    names.resize(names.size() == tensors.size() ? tensors.size() : 0);
    for (std::size_t j = 0; j < tensors.size(); ++j)
      uses.push_back({std::move(tensors[j]), &operand, names.empty() ? std::string() : std::move(names[j])});
  }
  return uses;
}

Outcomes applyOp(Call &call, const Op &op, std::vector<TensorUse> uses, const std::string &operation) {
  Machine &machine = call.machine;
  Machine::Requirement requirement;
  requirement.operation = operation;
  requirement.kind = op.isLoss ? ConflictKind::Loss : ConflictKind::Operation;
  requirement.firstIsOutput = op.result == Result::Self;
  switch (op.rule) {
  case Rule::Factory:
    return factory(call, op);
  case Rule::Like:
    return like(call, op, uses);
  case Rule::Move:
    return moveTo(call);
  case Rule::ToCpu:
    return move(call, Placement::cpu());
  case Rule::PinMemory:
    return move(call, Placement::cpu(), /*mayBePinned=*/true);
  case Rule::ToCuda:
    return move(call, Placement::cuda(currentCudaIndex()));
  case Rule::TypeAs:
    if (uses.size() < 2)
      return call.done(unknownValue());
    return move(call, machine.memory.placementOf(call.row, uses[1].tensor));
  default:
    break;
  }
  if (uses.empty())
    return finish(call, op, op.result == Result::Cpu ? Placement::cpu() : Placement::unknown(), unknownRank,
                  nullptr);
  const int rank = resultRank(call, op, uses);
  const History history = inherited(call, uses);
  switch (op.rule) {
  case Rule::Strict:
    return finish(call, op, machine.requireSame(call, uses, requirement), rank, history);
  case Rule::Where:
    // 0-dim tensors follow the others, the condition included.
    requirement.firstIsOutput = false;
    requirement.cpuScalars = true;
    return finish(call, op, machine.requireSame(call, uses, requirement), rank, history);
  case Rule::Broadcast:
    requirement.expandsScalars = true;
    [[fallthrough]];
  case Rule::Iterator: {
    if (takesUndefined(call)) // throws, or the analysis has lost sight of the tensor
      return finish(call, op, Placement::unknown(), unknownRank, nullptr);
    requirement.cpuScalars = true;
    Placement placement = machine.requireSame(call, uses, requirement);
    if (op.result == Result::Self)
      placement = machine.memory.placementOf(call.row, uses[0].tensor);
    return finish(call, op, placement, rank, history);
  }
  case Rule::Rnn:
    return finish(call, op, machine.requireSame(call, uses, requirement), someRank, history);
  case Rule::Index:
    return indexed(call, op, uses, requirement);
  case Rule::IndexPut:
    return indexPut(call, op, uses, requirement);
  case Rule::MaskedFill: {
    std::vector<TensorUse> pair(uses.begin(),
                                uses.begin() + std::min<std::ptrdiff_t>(2, std::ptrdiff_t(uses.size())));
    machine.requireSame(call, pair, requirement);
    // A value on a GPU picks the GPU's kernel, which takes no CPU tensor; to a GPU tensor it is a number.
    const bool isHost = machine.memory.placementOf(call.row, uses[0].tensor).kind == PlacementKind::Cpu;
    if (uses.size() > 2 && isHost &&
        machine.memory.placementOf(call.row, uses[2].tensor).kind == PlacementKind::Cuda)
      machine.requireSame(call, {uses[0], uses[2]}, requirement);
    return finish(call, op, machine.memory.placementOf(call.row, uses[0].tensor), rank, history);
  }
  case Rule::CpuLengths:
    if (uses.size() > 1 && machine.memory.placementOf(call.row, uses[1].tensor).kind == PlacementKind::Cuda) {
      TensorUse lengths{tensorValue(Placement::cpu(), someRank, nullptr), nullptr, "the 'lengths' argument"};
      machine.requireSame(call, {lengths, uses[1]}, requirement);
    }
    return finish(call, op, machine.memory.placementOf(call.row, uses[0].tensor), rank, history);
  case Rule::SetData: {
    if (uses.size() > 1) {
      Address self = call.objectAddress();
      Value current = call.object();
      const Value data = tensorValue(machine.memory.placementOf(call.row, uses[1].tensor),
                                     machine.memory.rankOf(call.row, uses[1].tensor),
                                     machine.memory.historyOf(call.row, uses[1].tensor));
      machine.memory.write(
          call.row, is(current, ValueKind::Tensor) && current->address.valid() ? current->address : self,
          data);
    }
    return finish(call, op, Placement::unknown(), rank, nullptr);
  }
  default: {
    const Value &self = uses[0].tensor;
    Placement placement = op.result == Result::Cpu       ? Placement::cpu()
                          : op.result == Result::Unknown ? Placement::unknown()
                                                         : machine.memory.placementOf(call.row, self);
    return finish(call, op, placement, rank, machine.memory.historyOf(call.row, self));
  }
  }
}

namespace {

// Methods of Tensor that tell about it, or that rebind it: not operators in the sense of the table.
std::optional<Outcomes> modelAccessor(Call &call, std::string_view method) {
  Machine &machine = call.machine;
  Value self = call.object();
  const bool known = is(self, ValueKind::Tensor);
  Placement placement = known ? machine.memory.placementOf(call.row, self) : Placement::unknown();
  if (std::optional<Value> memory = tensorMemory(call, method, self))
    return call.done(std::move(*memory));
  if (method == "device")
    return call.done(known ? deviceValue(placement, machine.memory.historyOf(call.row, self))
                           : deviceValue(Placement::unknown()));
  if (method == "options")
    return call.done(known ? optionsValue(&placement, machine.memory.historyOf(call.row, self))
                           : unknownValue());
  if (method == "is_cuda" || method == "is_cpu") {
    if (!placement.isKnown())
      return call.done(machine.unknownResult(call));
    return call.done(scalarValue(method == "is_cuda" ? isCudaTerm(placement)
                                                     : sameDeviceTerm(placement, Placement::cpu())));
  }
  if (method == "register_hook" && known && call.argCount() && is(call.arg(0), ValueKind::Function)) {
    // The hook is handed the gradient, which is where the tensor is.
    callValue(call, call.row, call.arg(0),
              {{tensorValue(placement, self->rank, machine.memory.historyOf(call.row, self)), {}}});
    return call.done(machine.unknownResult(call));
  }
  if (method == "numel" && known && self->count >= 0)
    return call.done(scalarValue(intTerm(self->count)));
  if ((method == "dim" || method == "ndimension") && known && self->rank >= 0)
    return call.done(scalarValue(intTerm(self->rank)));
  if (method == "type" && call.argCount() == 0)
    return call.done(legacyTypeOf(placement, machine.memory.historyOf(call.row, self)));
  if (method == "get_device" && placement.isKnown())
    return call.done(indexValue(call, placement));
  if (method == "defined") {
    if (is(self, ValueKind::Null))
      return call.done(scalarValue(intTerm(0)));
    if (known && placement.kind != PlacementKind::Symbol)
      return call.done(scalarValue(intTerm(1)));
    const Term isDefined = machine.freshScalar(call);
    return call.done(scalarValue(is(self, ValueKind::Unknown) ? guess(isDefined) : isDefined));
  }
  if (method == "operator=") {
    // On a variable it rebinds; on the temporary of `t[i] = x` it copies into `t`, which stays where it is.
    Value value = call.argCount() ? call.arg(0) : unknownValue();
    Address target = call.objectAddress();
    if (target.valid() &&
        (is(value, ValueKind::Tensor) || is(value, ValueKind::Null) || is(value, ValueKind::Unknown)))
      machine.memory.write(call.row, target, value);
    return call.done(call.fact.resultIsAddress ? addressValue(target) : value);
  }
  if (method == "reset") {
    machine.memory.write(call.row, call.objectAddress(), nullValue());
    return call.done(unknownValue());
  }
  if ((method == "mutable_grad" || method == "grad") && call.fact.resultIsAddress) {
    Address temporary = machine.allocate(call.row, call.frame, call.fact, "at::Tensor");
    machine.memory.write(call.row, temporary,
                         known ? tensorValue(placement, self->rank, machine.memory.historyOf(call.row, self))
                               : unknownValue());
    return call.done(addressValue(temporary));
  }
  return std::nullopt;
}

std::optional<Outcomes> applyNamed(Call &call, std::string_view base) {
  const Op *op = models::atenOp(base, call.machine.version);
  if (!op)
    return std::nullopt;
  // Operators are known by their sign.
  constexpr std::string_view operatorWord = "operator";
  const std::string_view shown =
      base.substr(0, operatorWord.size()) == operatorWord ? base.substr(operatorWord.size()) : base;
  return applyOp(call, *op, tensorUses(call, 0), std::string(shown));
}

std::optional<Outcomes> modelFunctional(Call &call, std::string_view name) {
  const Op *op = models::functional(name, call.machine.version);
  if (!op)
    return std::nullopt;
  return applyOp(call, *op, tensorUses(call, 0), std::string(name));
}

} // namespace

std::optional<Outcomes> modelTensors(Call &call) {
  std::string_view name = call.fact.name.view();
  for (std::string_view prefix : {"at::Tensor::", "at::TensorBase::"})
    if (startsWith(name, prefix)) {
      std::string_view method = name.substr(prefix.size());
      if (method == "mutable_grad")
        forgetGradients(call.machine, call.row);
      if (std::optional<Outcomes> outcomes = modelAccessor(call, method))
        return outcomes;
      if (method == "backward")
        meetBackward(call);
      return applyNamed(call, method);
    }
  constexpr std::string_view functionalPrefix = "torch::nn::functional::";
  if (startsWith(name, functionalPrefix)) {
    name.remove_prefix(functionalPrefix.size());
    if (startsWith(name, "detail::"))
      name.remove_prefix(8);
    return modelFunctional(call, name);
  }
  const models::Api api = models::api(call.fact.name.view());
  if (api.role == "op")
    return applyNamed(call, api.detail);
  if (api.role == "factory") {
    const std::string_view base = name.substr(name.rfind("::") + 2);
    if (const Op *op = models::atenOp(base, call.machine.version); op && op->rule == Rule::Factory)
      return factory(call, *op);
    Op plain{base, Rule::Factory, Result::Cpu, Rank0::No, false, false, {}};
    return factory(call, plain);
  }
  if (api.role == "like")
    return applyNamed(call, name.substr(name.rfind("::") + 2));
  if (startsWith(name, "at::") || startsWith(name, "torch::")) {
    std::string_view base = name.substr(name.rfind("::") + 2);
    const std::size_t depth = static_cast<std::size_t>(std::count(name.begin(), name.end(), ':')) / 2;
    if (depth == 1 && api.role.empty())
      return applyNamed(call, base);
  }
  return std::nullopt;
}

} // namespace devicetidy
