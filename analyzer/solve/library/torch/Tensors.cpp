//===- Tensors.cpp - ATen operators and factories ----===//
//
// The tables say of each operator by which rule its tensors may meet and where its result is; here is what
// the rules mean.
//
//===----------------------------------------------------------------------===//
#include "analyzer/solve/library/torch/Tensors.h"

#include "analyzer/facts/Language.h"
#include "analyzer/solve/domain/TermOps.h"

#include "analyzer/facts/NameParts.h"
#include "analyzer/solve/domain/DeviceTerms.h"
#include "analyzer/solve/domain/Positions.h"
#include "analyzer/solve/domain/Registers.h"
#include "analyzer/solve/library/torch/Devices.h"
#include "analyzer/solve/library/torch/HostAccess.h"
#include "analyzer/solve/library/torch/LegacyTypes.h"
#include "analyzer/solve/library/torch/RankDevices.h"
#include "analyzer/solve/library/torch/Ranks.h"
#include "analyzer/solve/library/torch/Words.h"

#include <algorithm>

namespace devicetidy {
namespace {

using models::Op;
using models::Rank;
using models::Result;
using models::Rule;

// Text of the receiver for a history step; a chain of calls is no name.
std::string receiverText(const Call &call) {
  return call.fact.operands.empty() ? std::string() : call.fact.operands[0].text.str();
}

Value selfValue(Call &call) {
  return call.fact.hasObject ? call.object() : call.argCount() ? call.arg(0) : unknownValue();
}

// How many pieces chunk(3) makes; 0 when that is not known, or the operation makes none. A tensor that is too
// small for them is rare.
std::size_t pieceCount(const Call &call, const Op &op) {
  if (op.result != Result::Pieces || call.fact.operands.size() < 2)
    return 0;
  const Value count = call.operand(1);
  const auto number = call.row.numberOf(count);
  const bool isListed = number && *number > 0 && canListElements(static_cast<std::size_t>(*number));
  return isListed ? static_cast<std::size_t>(*number) : 0;
}

// The value of an operation whose tensors are on `placement`; in-place operations give back their receiver.
Outcomes finish(Call &call, const Op &op, const Placement &placement, int rank, const History &before) {
  const History history = ofResult(before);
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
  // What is made of a tensor without elements has none either, unless it is a number.
  if (const Value self = selfValue(call);
      is(self, ValueKind::Tensor) && self->count == 0 && rank != 0 && is(result, ValueKind::Tensor))
    result = tensorValue(placement, rank, history, 0);
  return call.done(std::move(result));
}

// Is the device that the call is given written as a variable, and not as a text or a name of a device?
bool isByVariable(const Call &call, std::size_t from) {
  for (std::size_t i = from; i < call.fact.operands.size(); ++i) {
    const std::string_view text = call.fact.operands[i].text.view();
    const bool isDevice = is(call.operand(i), ValueKind::Device) || is(call.operand(i), ValueKind::Options) ||
                          (is(call.operand(i), ValueKind::Null) && endsWith(text, "device"));
    if (isDevice && !text.empty())
      return text.find_first_of("\"'") == std::string_view::npos && text.find("kC") == std::string_view::npos;
  }
  return false;
}

// `isToOther`: x.to(y) is written in Python for the type of y as often as for its device, and x.to(y.device)
// to be on the safe side: unless the program has put y on a device, neither says that x may be elsewhere.
Outcomes move(Call &call, const std::optional<Placement> &target, bool isPinned = false,
              bool isToOther = false) {
  Machine &machine = call.machine;
  const bool isInPython = isPython(call.fact.where.file.view());
  isToOther &= isInPython;
  Value self = selfValue(call);
  if (is(self, ValueKind::Null))
    return call.done(self);
  const int rank = is(self, ValueKind::Tensor) ? self->rank : unknownRank;
  const std::int64_t count = is(self, ValueKind::Tensor) ? self->count : -1;
  if (!target) {
    // Only the type changes.
    if (!is(self, ValueKind::Tensor))
      return call.done(unknownValue());
    return call.done(tensorValue(machine.memory.placementKept(call.row, self), rank,
                                 machine.memory.historyOf(call.row, self), count));
  }
  Placement placement = machine.concrete(call.row, *target);
  if (isAbsent(call.row, placement))
    return {};
  const bool isDiscarded = call.fact.isDiscarded && call.fact.hasObject && self->kind == ValueKind::Tensor;
  const bool isThere = is(self, ValueKind::Tensor) && placement.isKnown() &&
                       machine.memory.placementOf(call.row, self) == placement;
  if (isDiscarded)
    machine.discardedChange[call.fact.where] |= !isThere;
  if (isThere && (isToOther || isDiscarded))
    return call.done(tensorValue(placement, rank, machine.memory.historyOf(call.row, self), count));
  isToOther &= isOutside(placement);
  meetPlacement(call, placement);
  // A move that is thrown away is told of at the move: what the tensor meets later is its consequence.
  if (isDiscarded) {
    const Placement kept = machine.memory.placementOf(call.row, self);
    History history;
    if (kept.isKnown() && kept.kind != PlacementKind::Symbol)
      history = machine.note(machine.memory.historyOf(call.row, self), StepKind::Discarded, call.fact.where,
                             receiverText(call), kept.describe());
    const bool isParameter = self->address.valid();
    machine.memory.write(call.row, isParameter ? self->address : call.objectAddress(),
                         tensorValue(Placement::unknown(), rank, std::move(history), count));
  }
  if (placement.kind == PlacementKind::Cpu && !isPinned)
    machine.copiesToHost.insert(call.frame.function.id);
  Step step{StepKind::Moved, call.fact.where, receiverText(call), placement.describe()};
  step.isPinned = isPinned;
  step.isByVariable = isByVariable(call, call.first);
  if (is(self, ValueKind::Tensor))
    if (const Placement before = machine.memory.placementOf(call.row, self); before.isKnown()) {
      step.from = before.describe();
      // To the device of another one that was passed: callers keep those together.
      const bool isWithGiven = isInPython && placement.kind == PlacementKind::Symbol &&
                               placement.role == SymbolRole::Tensor &&
                               callThatWasGiven(placement) == machine.entryCall;
      if ((before.role == SymbolRole::Tensor || before.kind == PlacementKind::Cuda) &&
          callThatWasGiven(before) == machine.entryCall && !isWithGiven && !isToOther &&
          !(isInPython && holderOf(before)))
        step.givenTo = machine.entryCall;
      if (isWithGiven && before.role == SymbolRole::Tensor && callThatWasGiven(before) != machine.entryCall)
        machine.keptAndMoved[before.index].insert(entryOf(call.frame).function.id);
      if (placement.kind == PlacementKind::Cuda && before.kind == PlacementKind::Symbol)
        machine.movedUnder[before.index].insert(call.row.known.begin(), call.row.known.end());
      if (const Term holder = holderOf(before); holder && !isToOther)
        machine.movedFrom.insert(holder);
      if (before.index && placement.index && before != placement && before.role != SymbolRole::Module &&
          !isToOther)
        machine.moves.emplace(before.index, placement.index);
      const Term group = groupOf(placement);
      if (group && (!step.givenTo.empty() || machine.broughtTo.count(groupOf(before))))
        machine.broughtTo[group].insert(originOf(before));
    }
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
      return move(call, deviceOf(call.machine.memory, call.row, value), false,
                  is(value, ValueKind::Tensor) || value->pinned);
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

// empty(sizes, dtype, layout, device, pin_memory), whose last is an optional<bool>.
bool asksForPinned(const Call &call) {
  for (std::size_t i = call.first; i < call.fact.operands.size(); ++i) {
    const Value value = call.operand(i);
    const Types &types = call.machine.types;
    const Type *held = types.classOf(call.fact.operands[i].type) == TypeClass::Optional
                           ? types.program.type(types.inner(call.fact.operands[i].type))
                           : nullptr;
    if (held && held->kind == TypeKind::Bool && !is(value, ValueKind::Null) && call.row.numberOf(value) != 0)
      return true;
  }
  return false;
}

// Is the memory that a blob is given that of a container? Nobody has page-locked that.
bool isOfContainer(const Call &call) {
  const Memory &memory = call.machine.memory;
  const Value first = call.argCount() ? asPosition(memory, call.row, call.arg(0)) : unknownValue();
  return isPosition(first) && is(memory.read(call.row, sequenceOf(first->address)), ValueKind::List);
}

Outcomes factory(Call &call, const Op &op, const std::vector<TensorUse> &uses) {
  Machine &machine = call.machine;
  const bool isBlob = op.rule == Rule::Blob;
  Placement placement = Placement::cpu();
  const int rank = resultRank(call, op, uses);
  Step step{StepKind::Created, call.fact.where, call.fact.name.str(), "cpu"};
  step.isLent = isBlob && !isOfContainer(call);
  step.isPinned = !isBlob && asksForPinned(call);
  step.isByVariable = isByVariable(call, 0);
  if (std::optional<Value> options = optionsArgument(call, 0)) {
    if (is(*options, ValueKind::Unknown))
      return call.done(tensorValue(Placement::unknown(), rank, nullptr));
    if ((*options)->hasDevice)
      placement = machine.concrete(call.row, (*options)->placement);
    step.device = placement.describe();
    step.isPinned |= (*options)->pinned;
  }
  if (isAbsent(call.row, placement))
    return {};
  meetPlacement(call, placement);
  if (isBlob)
    meetBlob(call, placement);
  const History history = extend(nullptr, std::move(step));
  if (machine.types.classOf(call.resultType()) == TypeClass::Tensor)
    return call.done(tensorValue(placement, rank, history, resultCount(call, op)));
  return call.done(machine.memory.filled(call.resultType(), placement, rank, history));
}

Outcomes like(Call &call, const Op &op, const std::vector<TensorUse> &uses) {
  Machine &machine = call.machine;
  const std::optional<Value> options = optionsArgument(call, call.first);
  if (options && (is(*options, ValueKind::Unknown) || (*options)->hasDevice))
    return factory(call, op, uses);
  if (uses.empty())
    return call.done(unknownValue());
  const Value &self = uses[0].tensor;
  Placement placement = machine.memory.placementKept(call.row, self);
  Step step{StepKind::Inherited, call.fact.where, uses[0].operand ? uses[0].operand->text.str() : "",
            placement.describe()};
  step.isPinned = (options && (*options)->pinned) || asksForPinned(call);
  return call.done(tensorValue(placement, resultRank(call, op, uses),
                               extend(machine.memory.historyOf(call.row, self), std::move(step))));
}

History inherited(Call &call, const std::vector<TensorUse> &uses) {
  // The result's history is that of the tensor that decided the device.
  for (const TensorUse &use : uses) {
    const Placement placement = call.machine.memory.placementOf(call.row, use.tensor);
    if (placement.isKnown() && placement.kind != PlacementKind::Cpu)
      return call.machine.memory.historyOf(call.row, use.tensor);
  }
  return uses.empty() ? nullptr : call.machine.memory.historyOf(call.row, uses[0].tensor);
}

// An operator that is applied: `requirement` is what its tensors have to meet, where they have to.
struct Operation {
  Call &call;
  const Op &op;
  const std::vector<TensorUse> &uses;
  int rank;
  Machine::Requirement requirement;

  Placement placeOf(std::size_t i) const { return call.machine.memory.placementOf(call.row, uses[i].tensor); }
  Placement keptOf(std::size_t i) const {
    return call.machine.memory.placementKept(call.row, uses[i].tensor);
  }
  Placement require(const std::vector<TensorUse> &together) {
    return call.machine.requireSame(call, together, requirement);
  }
  Outcomes done(const Placement &placement) {
    return finish(call, op, placement, rank, inherited(call, uses));
  }
  Outcomes withHistoryOfSelf(const Placement &placement) {
    return finish(call, op, placement, rank, call.machine.memory.historyOf(call.row, uses[0].tensor));
  }
};

// One 0-dim CPU tensor may join the others; an in-place result is where it was.
Outcomes iterate(Operation &on) {
  if (takesUndefined(on.call)) // throws, or the analysis has lost sight of the tensor
    return finish(on.call, on.op, Placement::unknown(), unknownRank, nullptr);
  on.requirement.cpuScalars = true;
  const Placement placement = on.require(on.uses);
  return on.done(on.op.result == Result::Self ? on.keptOf(0) : placement);
}

// 0-dim tensors follow the others, the condition included.
Outcomes choose(Operation &on) {
  on.requirement.firstIsOutput = false;
  on.requirement.cpuScalars = true;
  return on.done(on.require(on.uses));
}

// Indices are on the CPU or where the first tensor is; one number is read wherever it is.
Outcomes readIndexed(Operation &on) {
  std::vector<TensorUse> bound{on.uses.front()};
  const bool isOfCpu = on.placeOf(0).kind == PlacementKind::Cpu;
  const auto mayBeOnCpu = [&](const Placement &index) { // a member may turn out to be kept there
    return index.kind == PlacementKind::Cpu || (index.kind == PlacementKind::Symbol && !isOfCpu &&
                                                on.call.machine.memory.choices.isSlot(index.index));
  };
  for (std::size_t i = 1; i < on.uses.size(); ++i)
    if (!mayBeOnCpu(on.placeOf(i)) && on.call.machine.memory.rankOf(on.call.row, on.uses[i].tensor) != 0)
      bound.push_back(on.uses[i]);
  const Placement met = bound.size() > 1 ? on.require(bound) : Placement::unknown();
  return on.withHistoryOfSelf(met.isDisputed() ? met : on.keptOf(0));
}

// Tensors: self, those among the indices, the value last. Basic indices copy; tensor indices need self and
// value together.
Outcomes writeIndexed(Operation &on) {
  const int rank = on.call.machine.memory.rankOf(on.call.row, on.uses.back().tensor);
  const std::size_t count = on.call.argCount();
  const bool isNumber =
      count > 0 && is(on.call.arg(count - 1), ValueKind::Scalar); // the last is an index, then
  on.requirement.isSure &= !isOpenRank(rank);                     // a number is written wherever it is
  on.requirement.cpuScalars = true;
  if (!isNumber && on.uses.size() > 2 && rank != 0)
    on.require({on.uses.front(), on.uses.back()});
  return finish(on.call, on.op, on.keptOf(0), unknownRank, nullptr);
}

// A value on a GPU picks the GPU's kernel, which takes no CPU tensor; to a GPU tensor it is a number.
Outcomes fillMasked(Operation &on) {
  on.require(
      {on.uses.begin(), on.uses.begin() + std::min<std::ptrdiff_t>(2, std::ptrdiff_t(on.uses.size()))});
  if (on.uses.size() > 2 && on.placeOf(0).kind == PlacementKind::Cpu &&
      on.placeOf(2).kind == PlacementKind::Cuda)
    on.require({on.uses[0], on.uses[2]});
  return on.done(on.keptOf(0));
}

Outcomes takeLengths(Operation &on) {
  if (on.uses.size() > 1 && on.placeOf(1).kind == PlacementKind::Cuda)
    on.require({lengthsOnCpu(), on.uses[1]});
  return on.done(on.keptOf(0));
}

Outcomes setData(Operation &on) {
  Call &call = on.call;
  if (on.uses.size() > 1) {
    const Value current = call.object();
    const bool isParameter = is(current, ValueKind::Tensor) && current->address.valid();
    call.machine.memory.write(call.row, isParameter ? current->address : call.objectAddress(),
                              call.machine.memory.snapshot(call.row, on.uses[1].tensor));
  }
  return finish(call, on.op, Placement::unknown(), on.rank, nullptr);
}

// What makes a tensor or moves one; nothing for the other rules.
std::optional<Outcomes> place(Call &call, const Op &op, const std::vector<TensorUse> &uses) {
  switch (op.rule) {
  case Rule::Factory:
  case Rule::Blob:
    return factory(call, op, uses);
  case Rule::Like:
    return like(call, op, uses);
  case Rule::Move:
    return moveTo(call);
  case Rule::ToCpu:
    return move(call, Placement::cpu());
  case Rule::PinMemory:
    return move(call, Placement::cpu(), /*isPinned=*/true);
  case Rule::ToCuda:
    return move(call, Placement::cuda(currentCudaIndex()));
  case Rule::TypeAs:
    return uses.size() < 2
               ? call.done(unknownValue())
               : move(call, call.machine.memory.placementKept(call.row, uses[1].tensor), false, true);
  default:
    return std::nullopt;
  }
}

Outcomes combine(Operation &on) {
  switch (on.op.rule) {
  case Rule::Strict:
    return on.done(on.require(on.uses));
  case Rule::Where:
    return choose(on);
  case Rule::Third:
    on.requirement.onlyThird = true;
    return iterate(on);
  case Rule::Iterator:
    return iterate(on);
  case Rule::Index:
    return readIndexed(on);
  case Rule::IndexPut:
    return writeIndexed(on);
  case Rule::MaskedFill:
    return fillMasked(on);
  case Rule::CpuLengths:
    return takeLengths(on);
  case Rule::SetData:
    return setData(on);
  default:
    return on.withHistoryOfSelf(on.op.result == Result::Cpu       ? Placement::cpu()
                                : on.op.result == Result::Unknown ? Placement::unknown()
                                                                  : on.keptOf(0));
  }
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

namespace {

// Where each element of a list is on a device of its own, one of them stands for two.
void addOtherElement(std::vector<TensorUse> &uses, const Value &list, const Operand &operand) {
  if (!is(list, ValueKind::List))
    return;
  const Term other = applyTerm(op::previous, {elementIndex()});
  for (const Value &element : list->summary)
    if (is(element, ValueKind::Tensor) && element->placement.index &&
        contains(element->placement.index, elementIndex()))
      uses.push_back({substitute(element, elementIndex(), other), &operand,
                      "another element of '" + operand.text.str() + "'", nullptr, false, true});
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
      uses.push_back({std::move(tensors[j]), &operand, names.empty() ? std::string() : std::move(names[j]),
                      nullptr, false, false, is(call.operand(i), ValueKind::List)});
    addOtherElement(uses, call.operand(i), operand);
  }
  return uses;
}

TensorUse lengthsOnCpu() {
  TensorUse use{tensorValue(Placement::cpu(), someRank, nullptr), nullptr, "the 'lengths' argument"};
  use.isWanted = true;
  return use;
}

Outcomes applyOp(Call &call, const Op &op, const std::vector<TensorUse> &uses, const std::string &operation) {
  if (std::optional<Outcomes> outcomes = place(call, op, uses))
    return std::move(*outcomes);
  if (uses.empty())
    return finish(call, op, op.result == Result::Cpu ? Placement::cpu() : Placement::unknown(), unknownRank,
                  nullptr);
  Operation on{call, op, uses, resultRank(call, op, uses), {}};
  on.requirement.operation = operation;
  on.requirement.kind = op.isLoss ? ConflictKind::Loss : ConflictKind::Operation;
  on.requirement.firstIsOutput = op.result == Result::Self;
  return combine(on);
}

namespace {

using models::Effect;

// The operator that is called like the last part of the function's name, or like the row says.
std::optional<Outcomes> aten(Call &call, const Effect &effect) {
  const std::string_view base = effect.args.empty() ? lastPart(call.fact.name.view()) : effect.detail();
  const Op *op = models::atenOp(base, call.machine.version);
  if (!op)
    return std::nullopt;
  // Operators are known by their sign.
  constexpr std::string_view operatorWord = "operator";
  const std::size_t shown = startsWith(base, operatorWord) ? operatorWord.size() : 0;
  return applyOp(call, *op, tensorUses(call, 0), std::string(base.substr(shown)));
}

std::optional<Outcomes> functional(Call &call, const Effect &) {
  const std::string_view name = lastPart(call.fact.name.view());
  const Op *op = models::functional(name, call.machine.version);
  return op ? std::optional(applyOp(call, *op, tensorUses(call, 0), std::string(name))) : std::nullopt;
}

// A factory that is no operator of the tables.
std::optional<Outcomes> makeTensor(Call &call, const Effect &) {
  const Op op{lastPart(call.fact.name.view()), Rule::Factory, Result::Cpu, Rank::Some, false, false};
  return factory(call, op, {});
}

} // namespace

Words tensorWords() {
  return {{{"aten", aten}, {"functional", functional}, {"factory", makeTensor}}, {}, {}};
}

} // namespace devicetidy
