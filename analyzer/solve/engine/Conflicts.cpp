//===- Conflicts.cpp - operations whose tensors must share a device ---===//
#include "analyzer/solve/domain/DeviceTerms.h"
#include "analyzer/solve/domain/Registers.h"
#include "analyzer/solve/domain/TermOps.h"
#include "analyzer/solve/engine/Decided.h"
#include "analyzer/solve/engine/Evidence.h"
#include "analyzer/solve/engine/Library.h"
#include "analyzer/solve/engine/Movers.h"
#include "analyzer/solve/engine/Purpose.h"

#include <algorithm>

namespace devicetidy {
namespace {

struct Placed {
  const TensorUse *use;
  Placement kept;      ///< as values hold it: for any iteration
  Placement placement; ///< in the iteration this row is in
  int rank;
  bool isFromOutside;
};

Level levelOf(Verdict verdict) {
  return verdict == Verdict::Definite ? Level::Definite
         : verdict == Verdict::Likely ? Level::Likely
                                      : Level::Latent;
}

bool isOnCpu(const Placed &placed) { return placed.placement.kind == PlacementKind::Cpu; }

// 0-dim CPU tensors may meet CUDA tensors in pointwise operations. A saved number was saved on the CPU.
bool isCpuScalar(const Placed &placed) {
  return placed.rank == 0 && (isOnCpu(placed) || isSaved(placed.placement));
}
bool mayBeCpuScalar(const Placed &placed) { return isOpenRank(placed.rank) && isOnCpu(placed); }

// A number on a device that is chosen, which may be the CPU, and a GPU that is not.
bool mayBeChosenScalar(const Placed &placed, const Placed &other) {
  return placed.rank == 0 && placed.placement.kind == PlacementKind::Symbol &&
         placed.placement.role == SymbolRole::DeviceChoice && other.placement.kind == PlacementKind::Cuda;
}

// A tensor without elements stands where there will be one. Where it is not put together with others (cat),
// its sizes rarely fit, on one device either: the program hardly comes there with it.
bool isPlaceholder(const Placed &placed) { return placed.use->tensor->count == 0 && !placed.use->isOfList; }

// A tensor from outside stays one in a branch that has asked for its device: the program fixed nothing there
// that a device choice could differ from.
Verdict comparePlaced(const Placed &a, const Placed &b, bool currentDeviceIsOpen) {
  const Verdict verdict = compare(a.placement, b.placement, currentDeviceIsOpen);
  const bool isAgreement =
      (isChoice(a.placement) && b.isFromOutside) || (isChoice(b.placement) && a.isFromOutside);
  return isAgreement ? std::min(verdict, Verdict::Latent) : verdict;
}

bool isNameless(const Placed &placed) { return placed.placement.describe().empty(); }

// Has nothing put it on the CPU but that a way of the program found it there? A module may be there on that
// way.
bool isUntold(const Call &call, const Placed &placed, const Placed &other) {
  const bool isOfModule =
      other.placement.kind == PlacementKind::Symbol && other.placement.role == SymbolRole::Module;
  return isOfModule && isOnCpu(placed) && !placed.use->isWanted && !placed.use->owner &&
         !placed.use->tensor->address.valid() && !call.machine.memory.historyOf(call.row, placed.use->tensor);
}

bool isSlot(const Memory &memory, const Placed &placed) {
  return placed.placement.kind == PlacementKind::Symbol && memory.choices.isSlot(placed.placement.index);
}

Placement pinned(const Row &row, Placement placement) {
  if (placement.kind == PlacementKind::Cuda)
    placement.index = row.pinned(placement.index);
  return placement;
}

// Has the row asked whether they are equal, and is on the branch where they are?
bool knowsSame(const Row &row, const Placement &a, const Placement &b) {
  return constantOf(row.resolve(sameDeviceTerm(a, b))) == 1;
}

// Is it what a caller has passed and the code has found on a GPU, beside something on a device that a
// variable holds? Whether they differ is up to the caller.
bool isForCaller(const Call &call, const Placed &given, const Placed &other) {
  const History history = call.machine.memory.historyOf(call.row, other.use->tensor);
  const Step *step = decidingStep(history);
  return given.placement.kind == PlacementKind::Cuda && isOutside(given.placement) && step &&
         step->isByVariable;
}

// Does the program move to a GPU what it was given, where a condition is so that is not so in this row?
bool isLeftForCpu(const Call &call, const Placed &placed) {
  const auto moved = call.machine.movedUnder.find(placed.kept.index);
  if (placed.kept.kind != PlacementKind::Symbol || moved == call.machine.movedUnder.end())
    return false;
  return std::any_of(call.row.known.begin(), call.row.known.end(), [&](const Condition &condition) {
    return moved->second.count({condition.first, 1 - condition.second}) && !moved->second.count(condition);
  });
}

// Does the object at hand keep a tensor on the CPU?
bool keepsOnCpu(const Call &call) {
  const Address self = entryOf(call.frame).self;
  const Value object = self.valid() ? call.machine.memory.read(call.row, self) : unknownValue();
  return std::any_of(object->fields.begin(), object->fields.end(), [](const auto &field) {
    return is(field.second, ValueKind::Tensor) && field.second->placement.kind == PlacementKind::Cpu;
  });
}

// Is it about what a callable has given that the caller passed, or about a part of that?
bool isAnswer(Term term) {
  return applies(term, op::call) ||
         (term->kind == TermKind::Apply && std::any_of(term->args.begin(), term->args.end(), isAnswer));
}

// Is the row on the branch where what a caller passes is no tensor, now or when the object was made? What is
// made of it is where the caller may expect it.
bool foundNoTensor(const Call &call) {
  return std::any_of(call.row.known.begin(), call.row.known.end(), [&](const Condition &condition) {
    if (condition.second != 0 || !applies(condition.first, op::isTensor))
      return false;
    const std::string given = callThatWasGiven(condition.first);
    const Function *earlier = call.machine.program.function(Name(given));
    return given.empty() || given == call.machine.entryCall || isAnswer(condition.first) ||
           (earlier && earlier->isConstructor && keepsOnCpu(call));
  });
}

// Does the row know something of a member that was forgotten?
bool hasAskedForgotten(const Call &call) {
  const Address self = entryOf(call.frame).self;
  const std::set<Name> &forgotten = call.machine.forgottenFields;
  if (forgotten.empty() || !self.valid())
    return false;
  const Value object = call.machine.memory.read(call.row, self);
  return std::any_of(forgotten.begin(), forgotten.end(), [&](Name name) {
    const auto field = object->fields.find(name);
    const Term told = field == object->fields.end() ? nullptr
                      : isOpen(field->second)       ? field->second->origin
                                                    : field->second->term;
    return told && std::any_of(call.row.known.begin(), call.row.known.end(),
                               [&](const Condition &condition) { return contains(condition.first, told); });
  });
}

bool hasAskedForCuda(const Row &row) {
  return std::any_of(row.known.begin(), row.known.end(),
                     [](const Condition &condition) { return asksForCuda(condition.first); });
}

// Was it made while the entry's own call of something is under way?
bool isMadeBelowEntry(const Call &call, const Value &tensor) {
  const History history = call.machine.memory.historyOf(call.row, tensor);
  const Step *step = decidingStep(history);
  for (const Frame *frame = &call.frame; step && frame->caller && frame->call; frame = frame->caller)
    if (step->kind != StepKind::ModuleMade && isWrittenIn(*step, frame->function))
      return true;
  return false;
}

// Has the program asked where it is, and is on the way where it was found there?
bool isFound(const Placed &placed) {
  return placed.kept.kind == PlacementKind::Symbol &&
         (placed.kept.role == SymbolRole::Tensor || placed.kept.role == SymbolRole::Module) &&
         placed.placement.kind != PlacementKind::Symbol;
}

// Where it was found says nothing of what was not asked for: callers keep the two together.
Placed beside(Placed placed, const Placed &other) {
  if (isFound(placed) && isOutside(other.placement))
    placed.placement = placed.kept;
  return placed;
}

// A callee that asks something where it is has a branch for each answer: none tells what the entry was given
// beside what the entry itself has made.
void forgetAnswers(const Call &call, std::vector<Placed> &placed) {
  const bool isInCallee = call.frame.caller && call.frame.call;
  const auto isOfEntry = [&](const Placed &each) {
    return !isFound(each) && !isMadeBelowEntry(call, each.use->tensor);
  };
  if (isInCallee && std::any_of(placed.begin(), placed.end(), isOfEntry))
    for (Placed &each : placed)
      if (isFound(each))
        each.placement = each.kept;
}

// The operand to move is the one that stayed behind, that was loaded, the one on the CPU, or the later one.
bool shouldMoveFirst(const Placed &a, const Placed &b) {
  if (isFormer(a.placement) || isFormer(b.placement))
    return isFormer(a.placement);
  if (isSaved(a.placement) || isSaved(b.placement))
    return isSaved(a.placement);
  return a.placement.kind == PlacementKind::Cpu && b.placement.kind != PlacementKind::Cpu;
}

// The object of a call as written; empty for `*this`, and where there is none.
std::string objectOf(const Fact &call) {
  static const Name self("this");
  return call.hasObject && call.operands[0].text != self ? call.operands[0].text.str() : std::string();
}

} // namespace

const Frame &entryOf(const Frame &frame) {
  return frame.caller && frame.call ? entryOf(*frame.caller) : frame;
}

std::vector<CallSite> callersOf(const Types &types, const Frame &frame) {
  std::vector<CallSite> callers;
  for (const Frame *each = &frame; each->caller && each->call; each = each->caller) {
    if (each->site)
      continue;
    // What a model of a library calls is called where the library is.
    const Fact &call = each->caller->site ? *each->caller->site : *each->call;
    CallSite &site = callers.emplace_back(CallSite{call.where, each->function.name.str()});
    site.isOfModule = types.isModule(each->function.className);
    if (site.isOfModule)
      site.module = objectOf(call);
  }
  return callers;
}

History Machine::note(History before, StepKind kind, Location where, std::string subject,
                      std::string device) const {
  Step step;
  step.kind = kind;
  step.where = where;
  step.subject = std::move(subject);
  step.device = std::move(device);
  return extend(std::move(before), std::move(step));
}

PlacedOperand Machine::describe(const Call &call, const TensorUse &use, const Placement &placement) const {
  PlacedOperand result;
  const Operand *operand = use.operand;
  result.text = !use.text.empty() ? use.text : operand ? operand->text.str() : std::string();
  result.isCode = operand && !use.isDescribed;
  if (use.isOfModule)
    result.module = objectOf(call.fact);
  result.where = operand && operand->where.valid() ? operand->where : call.fact.where;
  result.device = placement.describe();
  if (isOfEarlierCall(call, placement) && !isFormer(placement))
    result.device += " of an earlier call";
  result.history = steps(memory.historyOf(call.row, use.tensor));
  if (use.owner && use.owner->step.kind == StepKind::Member)
    result.history.push_back(use.owner->step);
  else if (owners && use.tensor->address.valid())
    for (Step &step : owners->historyOf(call.frame, call.row, use.tensor->address.root))
      result.history.push_back(std::move(step));
  return result;
}

void Machine::collectTensors(const Row &row, const Value &value, std::vector<Value> &out,
                             std::size_t limit) const {
  if (out.size() >= limit)
    return;
  switch (value->kind) {
  case ValueKind::Tensor:
    out.push_back(value);
    return;
  case ValueKind::List:
    for (const auto *list : {&value->elements, &value->summary})
      for (const Value &element : *list)
        collectTensors(row, element, out, limit);
    return;
  case ValueKind::Record:
    // Tuples of tensors (LSTM states), and the options of torch::nn functions that hold tensors (class
    // weights).
    if (types.classOf(value->type) == TypeClass::Tuple || types.classOf(value->type) == TypeClass::Pair ||
        value->type.view().substr(0, 11) == "torch::nn::")
      for (const auto &[name, field] : value->fields)
        collectTensors(row, field, out, limit);
    return;
  default:
    return;
  }
}

namespace {

// What was found on one device says something of where else callers keep it.
void noteTogether(const Call &call, const std::vector<Placed> &placed) {
  const Placement &placement = placed[0].placement;
  const bool isOnCuda = placement.kind == PlacementKind::Cuda;
  if ((isOnCuda || isOnCpu(placed[0])) && hasAskedForCuda(call.row)) {
    auto &[onCpu, onCuda] = call.machine.agreements[call.fact.where];
    (isOnCuda ? onCuda : onCpu) = true;
  }
  const Frame &entry = entryOf(call.frame);
  // On the CPU is also what nobody has put anywhere.
  const bool isSome =
      isOnCpu(placed[0]) ? std::any_of(placed.begin(), placed.end(),
                                       [&](const Placed &each) { return wasBrought(call, each.use->tensor); })
                         : placement.isKnown();
  if (&entry == &call.frame || !isSome)
    return;
  if (std::set<Name> &entries = call.machine.togetherFor[call.fact.where]; entries.size() < 2)
    entries.insert(entry.function.id);
}

} // namespace

// f(x, out=y) of Python is f_out(y, x) in C++.
static std::string asWritten(const Call &call, std::string operation) {
  constexpr std::string_view form = "_out";
  if (isPython(call.fact.where.file.view()) && endsWith(operation, form))
    operation.resize(operation.size() - form.size());
  return operation;
}

Placement Machine::requireSame(Call &call, const std::vector<TensorUse> &uses,
                               const Requirement &requirement) {
  std::vector<Placed> placed;
  for (const TensorUse &use : uses) {
    const Placement kept = memory.placementKept(call.row, use.tensor);
    placed.push_back({&use, kept, pinned(call.row, call.row.resolve(kept)),
                      memory.rankOf(call.row, use.tensor), memory.isFromOutside(call.row, use.tensor)});
  }
  forgetAnswers(call, placed);
  auto mayBeScalar = [&](std::size_t i) {
    return requirement.cpuScalars && (i == 2 || !requirement.onlyThird) &&
           (i != 0 || !requirement.firstIsOutput);
  };
  auto exempt = [&](std::size_t i) {
    return (mayBeScalar(i) && isCpuScalar(placed[i])) || isPlaceholder(placed[i]);
  };
  auto perhapsExempt = [&](std::size_t i) { return mayBeScalar(i) && mayBeCpuScalar(placed[i]); };
  Verdict worst = Verdict::Same;
  std::size_t worstA = 0, worstB = 0;
  for (std::size_t i = 0; i < placed.size(); ++i)
    for (std::size_t j = i + 1; j < placed.size(); ++j) {
      if (exempt(i) || exempt(j))
        continue;
      const Placed first = beside(placed[i], placed[j]), second = beside(placed[j], placed[i]);
      Verdict verdict = comparePlaced(first, second, currentDeviceIsOpen);
      if (verdict <= std::min(worst, Verdict::Silent) || isAssumed(call.row, first.placement) ||
          isAssumed(call.row, second.placement))
        continue;
      if (verdict > Verdict::Silent && verdict < Verdict::Definite && !isAboutMemory(requirement.kind))
        verdict = weigh(call, verdict, {first.use, &first.placement, i == 0 && requirement.firstIsOutput},
                        {second.use, &second.placement});
      if ((verdict == Verdict::Open || verdict == Verdict::Latent) && !perhapsExempt(i) &&
          !perhapsExempt(j) && first.placement.index && second.placement.index)
        met.emplace(std::pair(first.placement.index, second.placement.index), call.fact.where);
      if (verdict == Verdict::Latent && requirement.kind == ConflictKind::HostAccess)
        verdict = weighAccess(call, first.placement);
      if (requirement.kind == ConflictKind::HostAccess && verdict < Verdict::Definite &&
          isNamedAsOperation(call))
        verdict = std::min(verdict, Verdict::Latent);
      // Whoever chose the class knew where the tensor is, though another part of the code has asked only now.
      const bool isFixed = !isOutside(first.placement) && !isOutside(second.placement);
      if ((verdict < Verdict::Definite || !isFixed) && isAboutMemory(requirement.kind) &&
          isChosenByObject(call.frame, call.row))
        verdict = std::min(verdict, Verdict::Silent);
      if (requirement.isOpen && verdict >= Verdict::Open)
        verdict = Verdict::Latent;
      // On another way the program moves what it is given: this one is for the CPU.
      if (verdict > Verdict::Silent &&
          ((isOnCpu(first) && isLeftForCpu(call, second)) || (isOnCpu(second) && isLeftForCpu(call, first))))
        verdict = Verdict::Silent;
      if (verdict > Verdict::Silent && verdict < Verdict::Definite &&
          ((isOnCpu(first) && isMovedAlong(call, *first.use)) ||
           (isOnCpu(second) && isMovedAlong(call, *second.use))))
        verdict = Verdict::Silent;
      // One part of the object may say where another one is, and has been forgotten.
      if (isFixed && hasAskedForgotten(call))
        verdict = std::min(verdict, Verdict::Silent);
      // Two from outside may turn out to be fixed by what the program puts into a member.
      if (verdict == Verdict::Open && !isSlot(memory, first) && !isSlot(memory, second))
        verdict = Verdict::Silent;
      // The code asked, and this is its way for the CPU.
      if (verdict == Verdict::Latent && isRunOnCpu(call.row) &&
          (isOnCpu(first) || isOnCpu(second) || requirement.kind == ConflictKind::HostAccess))
        verdict = Verdict::Silent;
      const bool isFoundThere = !isAboutMemory(requirement.kind) &&
                                (isUntold(call, first, second) || isUntold(call, second, first));
      const bool isUnknown = // nobody could be told of it
          isFoundThere || isNameless(first) || isNameless(second);
      const bool isPerhapsExempt = perhapsExempt(i) || perhapsExempt(j) ||
                                   (mayBeScalar(i) && mayBeChosenScalar(first, second)) ||
                                   (mayBeScalar(j) && mayBeChosenScalar(second, first));
      if (isStateOutside(first.placement) || isStateOutside(second.placement) || isPerhapsExempt || isUnknown)
        verdict = std::min(verdict, Verdict::Latent);
      if (verdict > Verdict::Latent && first.placement.kind != second.placement.kind &&
          (isRunOnCpu(call.row) || foundNoTensor(call)))
        verdict = std::min(verdict, Verdict::Latent);
      if (verdict > Verdict::Latent && (hasRaised(call.row) || isBounded(call.row)))
        verdict = Verdict::Latent;
      if (verdict == Verdict::Definite &&
          (!requirement.isSure || isGuessed(call.row) || isForCaller(call, first, second) ||
           isForCaller(call, second, first)))
        verdict = Verdict::Likely;
      if (verdict > worst && !knowsSame(call.row, first.placement, second.placement)) {
        worst = verdict;
        worstA = i;
        worstB = j;
      }
    }
  const bool isTold = !otherwise || call.row.isOtherWay;
  if (isTold &&
      (worst >= Verdict::Likely || worst == Verdict::Open || (worst == Verdict::Latent && reportLatent))) {
    // A loss is fixed by moving the target, an in-place operation by moving the other operand.
    const bool isLoad = !isAboutMemory(requirement.kind) &&
                        (isSaved(placed[worstA].placement) || isSaved(placed[worstB].placement));
    const bool fixed =
        !isLoad && (requirement.kind != ConflictKind::Operation || placed[worstA].use->isWanted ||
                    (requirement.firstIsOutput && worstA == 0));
    const bool swap = !fixed && shouldMoveFirst(placed[worstA], placed[worstB]);
    const std::size_t indexA = swap ? worstB : worstA, indexB = swap ? worstA : worstB;
    const Placed &first = placed[indexA], &second = placed[indexB];
    Conflict conflict;
    conflict.level = levelOf(worst);
    conflict.where = call.fact.where;
    conflict.operation = asWritten(call, requirement.operation);
    conflict.kind = isLoad ? ConflictKind::Load : requirement.kind;
    conflict.first = describe(call, *first.use, first.placement);
    conflict.second = describe(call, *second.use, second.placement);
    const Frame &frame = call.frame.site ? *call.frame.user : call.frame;
    conflict.functionId = frame.function.id.str();
    conflict.callers = callersOf(types, call.frame);
    conflict.entryId = entryOf(call.frame).function.id.str();
    const bool isPartial = this->isPartial && worst == Verdict::Open;
    solution.conflicts.push_back(std::move(conflict));
    conflictContexts.push_back({first.placement, second.placement, mayBeScalar(indexA), mayBeScalar(indexB),
                                first.rank == partRank, second.rank == partRank, isMeantForDevices(call),
                                isPartial, worst == Verdict::Open, hasAskedForCuda(call.row)});
  }
  if (worst == Verdict::Same && placed.size() > 1)
    noteTogether(call, placed);
  if (worst == Verdict::Definite) {
    ++definiteConflicts;
    failed[operationOf(call.fact)] = placed.size();
    call.row.failed = true;
  } else {
    library.hooks.useTensors(*this, call.row, uses);
  }
  if (requirement.kind == ConflictKind::HostAccess && worst < Verdict::Likely)
    for (const Placed &each : placed) // what the host has read is there
      if (isOutside(each.placement) && each.placement.role == SymbolRole::Tensor)
        call.row.assumeDevice(each.placement, false);
  // Where it has failed of operands of which one is not known any more, what it gives is none the better.
  const auto before = failed.find(operationOf(call.fact));
  const bool isDisputed = worst >= Verdict::Likely ||
                          (before != failed.end() && placed.size() < before->second) ||
                          std::any_of(placed.begin(), placed.end(),
                                      [](const Placed &each) { return each.placement.isDisputed(); });
  if (isDisputed)
    return Placement::disputed();
  // Where the code is right, it is because what the program made may be anywhere: a number, most often.
  if ((worst == Verdict::Open || worst == Verdict::Latent) && !placed.empty()) {
    // What the program has brought to the host meets what is there, unless it is a number.
    const bool isBrought = placed.size() > 1 && isOnCpu(placed[0]) && wasBrought(call, placed[0].use->tensor);
    if (isBrought && perhapsExempt(0))
      return Placement::unknown();
    const bool isSecond = placed.size() > 1 && !isBrought &&
                          (perhapsExempt(0) || (isOnCpu(placed[0]) && isOutside(placed[1].placement)) ||
                           (mayBeScalar(0) && placed[0].rank == partRank && placed[1].rank != partRank));
    return placed[isSecond ? 1 : 0].kept;
  }
  // One device: that of the first tensor that is known and is no CPU scalar among CUDA tensors.
  Placement common = placed.empty() ? Placement::unknown() : placed[0].kept;
  for (std::size_t i = 0; i < placed.size(); ++i) {
    if (!placed[i].placement.isKnown())
      return Placement::unknown();
    if (exempt(i))
      continue;
    const bool mayBeElsewhere =
        isOnCpu(placed[i]) && std::any_of(placed.begin() + i, placed.end(),
                                          [](const Placed &each) { return !each.placement.isKnown(); });
    return mayBeElsewhere ? Placement::unknown() : placed[i].kept;
  }
  return common;
}

} // namespace devicetidy
