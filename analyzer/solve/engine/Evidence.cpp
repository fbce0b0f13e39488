#include "analyzer/solve/engine/Evidence.h"

#include "analyzer/facts/Language.h"
#include "analyzer/facts/NameParts.h"
#include "analyzer/models/Models.h"
#include "analyzer/solve/domain/DeviceTerms.h"
#include "analyzer/solve/domain/TermOps.h"
#include "analyzer/solve/engine/Movers.h"
#include "analyzer/solve/engine/Purpose.h"
#include "analyzer/solve/engine/UnitTests.h"

#include <algorithm>

namespace devicetidy {
namespace {

// Does only a test call it, beside which nothing is somewhere else unless the test says so?
bool isOnlyTested(const Call &call, const Placement &a, const Placement &b) {
  return isOfTestFile(entryOf(call.frame).function) && !isChoice(a) && !isChoice(b);
}

// Does it stand behind something that a function without a body gave: in C++, the handle of an object of the
// caller?
bool isBehindHandle(Term term) {
  return applies(term, op::written) || applies(term, op::call) ||
         (term->kind == TermKind::Apply && std::any_of(term->args.begin(), term->args.end(), isBehindHandle));
}

// Is it that of a tensor that the caller of this entry has passed, itself, in an object or by a handle?
bool isGiven(const Call &call, const Placement &placement) {
  if (!isOutside(placement) || placement.role == SymbolRole::DeviceChoice ||
      placement.role == SymbolRole::Module || isStateOutside(placement) ||
      applies(placement.index, askedForDevice)) // what a call gave
    return false;
  const std::string given = callThatWasGiven(placement);
  return given == call.machine.entryCall ||
         (given.empty() && placement.index && !isPython(call.fact.where.file.view()) &&
          isBehindHandle(placement.index));
}

// Does an object that the caller has passed keep it, and does the entry leave it to the object where that is?
bool isKeptByGiven(const Call &call, const Placement &placement) {
  const Term holder =
      placement.role == SymbolRole::Module ? nullptr : holderOf(placement); // modules are whole
  return holder && applies(holder, op::parameter) && !call.machine.movedFrom.count(holder);
}

// Has the code put something else into the object that holds the tensor? Then it keeps its state there.
bool isOfWrittenObject(const Call &call, const Placement &placement) {
  bool isWritten = false;
  call.row.store.forEach(RootKind::Outside, [&](RootId root, const Value &) {
    const Term origin = call.machine.memory.info(root).origin;
    isWritten |=
        origin != placement.index && applies(origin, op::parameter) && contains(placement.index, origin);
  });
  return isWritten;
}

// Has a caller passed it to an earlier call, whose object kept it as it was, though it moves others?
bool isKept(const Call &call, const Placement &placement) {
  return call.machine.objectMovesGiven && isOfEarlierCall(call, placement);
}

// Do other functions of the file move what they are given under that name, as this one does not?
bool isMovedBySiblings(const Call &call, const Placement &placement) {
  constexpr std::size_t enough = 3;
  const Function &entry = entryOf(call.frame).function;
  const std::string_view text = placement.text.view();
  const Name name(text.substr(0, text.find('.')));
  const auto movers = call.machine.usage.movesParameter.find({entry.where.file, name});
  return movers != call.machine.usage.movesParameter.end() && movers->second.size() >= enough &&
         !movers->second.count(entry.id) && isGiven(call, placement) && isCalledFromOutside(call);
}

// Was that the step that put it where it is?
bool isPutBy(const Call &call, const Witness &witness, StepKind kind) {
  const History history = call.machine.memory.historyOf(call.row, witness.use->tensor);
  const Step *step = decidingStep(history);
  return step && step->kind == kind;
}

// Has the program made it there, on a device that it asked something for? Then what it makes beside it
// without saying where is left out.
bool isMadeThere(const Call &call, const Witness &witness) {
  return isPutBy(call, witness, StepKind::Created);
}

// Was it made for what an earlier call was given, and kept? What each call adds to is the sum over one
// stream of calls, which are given what is on one device. What a constructor was given says where the
// object is: callers keep the object and what they pass to it together.
bool isMadeEarlier(const Call &call, const Witness &witness) {
  if (witness.isWritten || !isOfEarlierCall(call, *witness.placement))
    return false;
  const Function *maker = call.machine.program.function(Name(callThatWasGiven(*witness.placement)));
  if (maker && maker->isConstructor)
    return false;
  return isMadeThere(call, witness);
}

// Was that call one that makes the object? What it was given and what the object's methods are given belong
// together.
bool isOfMaker(const Call &call, const Placement &placement) {
  const Function *earlier = call.machine.program.function(Name(callThatWasGiven(placement)));
  return earlier && (earlier->isConstructor || earlier->isStatic);
}

// Was it made in the function at hand, and not for a module? What callers give may be what something unknown
// was made of, too.
bool isMadeHere(const Call &call, const Witness &witness) {
  const History history = call.machine.memory.historyOf(call.row, witness.use->tensor);
  const Step *step = decidingStep(history);
  return step && step->kind != StepKind::ModuleMade && isWrittenIn(*step, call.frame.function);
}

// The member of the object at hand that a term is of.
Name memberOfSelf(Term term) {
  for (; term->kind == TermKind::Apply && !term->args.empty(); term = term->args[0])
    if (term->args.size() > 1 && term->args[0]->name == op::self)
      return term->args[1]->name;
  return {};
}

// Is it part of the object at hand, of which the entry knows a part only?
bool isPartial(const Call &call, const Placement &placement) {
  const std::set<Name> &fields = call.machine.partialFields;
  return call.machine.isPartial && placement.index && applies(placement.index, op::self) &&
         (fields.empty() || fields.count(memberOfSelf(placement.index)));
}

// Is it a module that the program made and did not move, but may have handed out?
bool isReleased(const Placement &module) {
  return module.index->kind == TermKind::Apply && module.index->name == op::deviceOfParameter &&
         module.index->args.size() == 2;
}

// Was the tensor, or what it was computed from, passed by a caller and moved here?
bool wasMovedHere(const Call &call, const Witness &witness) {
  const std::vector<Step> history = steps(call.machine.memory.historyOf(call.row, witness.use->tensor));
  return std::any_of(history.begin(), history.end(), [&](const Step &step) {
    return !step.givenTo.empty() && step.givenTo == call.machine.entryCall;
  });
}

// Was it brought to the CPU by code that moves what callers pass to a device? They pass the rest on the CPU,
// too.
bool isBroughtBack(const Call &call, const Witness &witness) {
  const History history = call.machine.memory.historyOf(call.row, witness.use->tensor);
  const Step *step = decidingStep(history);
  return witness.placement->kind == PlacementKind::Cpu && step && step->kind == StepKind::Moved &&
         !step->from.empty() && step->givenTo.empty() && !call.machine.broughtTo.empty();
}

// Does the entry bring what it is given to where the tensor is?
bool isWhereGivenGoes(const Call &call, const Placement &placement) {
  const Term group = groupOf(placement);
  return group && call.machine.broughtTo.count(group) != 0;
}

// Is it part of something that a caller has passed, of which the entry brings another part to `device`?
bool isRestOfBrought(const Call &call, const Placement &placement, const Placement &device) {
  const auto brought = call.machine.broughtTo.find(groupOf(device));
  return brought != call.machine.broughtTo.end() && placement.index &&
         applies(placement.index, op::element) && brought->second.count(originOf(placement)) != 0;
}

// Does the entry move something from the one device to the other?
bool isMovedBetween(const Call &call, const Placement &a, const Placement &b) {
  const auto &moves = call.machine.moves;
  const Term group = groupOf(a); // elements of one list are compared by their positions
  return (!group || group != groupOf(b)) && a.describe() != b.describe() &&
         (moves.count({a.index, b.index}) || moves.count({b.index, a.index}));
}

// Has another operation of the entry had operands on the two devices before, and counted on one? That of the
// last iteration is the same.
bool haveMet(const Call &call, const Placement &a, const Placement &b) {
  const auto isElsewhere = [&](Term first, Term second) {
    const auto found = call.machine.met.find({first, second});
    return found != call.machine.met.end() && found->second != call.fact.where;
  };
  return isElsewhere(a.index, b.index) || isElsewhere(b.index, a.index);
}

// Is it what the object was made with, and does another of its methods move it to what that is given?
bool isMovedElsewhere(const Call &call, const Placement &kept, const Placement &given) {
  const auto found = call.machine.keptAndMoved.find(kept.index);
  return found != call.machine.keptAndMoved.end() && isOfMaker(call, kept) && !holderOf(kept) &&
         found->second.size() > found->second.count(entryOf(call.frame).function.id) &&
         isGiven(call, given) && !isKeptByGiven(call, given);
}

// The open position in a list at which something stands: of past[i][0] it is i.
Term positionOf(Term term) {
  for (; term && applies(term, op::element) && term->args.size() == 2; term = term->args[0])
    if (!constantOf(term->args[1]))
      return term->args[1];
  return nullptr;
}

// Are both at one position of their lists? Callers put the i-th of what they pass on the i-th device.
bool areParallel(const Placement &a, const Placement &b) {
  const Term position = positionOf(a.index);
  return position && position == positionOf(b.index);
}

} // namespace

bool isRunOnCpu(const Row &row) {
  return std::any_of(row.known.begin(), row.known.end(), [](const Condition &condition) {
    return (asksForCuda(condition.first) && condition.second == 0) ||
           (applies(condition.first, isDeviceOfUnknown) && condition.second == 1);
  });
}

bool isWrittenIn(const Step &step, const Function &function) {
  return step.where.file == function.where.file && step.where.line >= function.where.line &&
         step.where.line <= function.lastLine();
}

bool isOfEarlierCall(const Call &call, const Placement &placement) {
  if (placement.kind != PlacementKind::Symbol || placement.role != SymbolRole::Tensor ||
      isStateOutside(placement))
    return false;
  const std::string given = callThatWasGiven(placement);
  return !given.empty() && given != call.machine.entryCall;
}

bool hasRaised(const Row &row) {
  return std::find(row.known.begin(), row.known.end(), raisedCondition()) != row.known.end();
}

bool wasBrought(const Call &call, const Value &tensor) {
  const History history = call.machine.memory.historyOf(call.row, tensor);
  const Step *step = decidingStep(history);
  return step && step->kind == StepKind::Moved;
}

bool isNamedAsOperation(const Call &call) {
  return lastPart(entryOf(call.frame).function.name.view()) == lastPart(call.fact.name.view());
}

Verdict weighAccess(const Call &call, const Placement &memory) {
  if (isPartial(call, memory))
    return Verdict::Silent;
  if (isChoice(memory) && hasOwnCallers(call))
    return Verdict::Latent;
  if (models::hasRole(lastPart(call.fact.name.view()), "stages"))
    return Verdict::Latent;
  const Machine &machine = call.machine;
  bool copies = false, choosesDevice = false, isExport = true, knowsModels = false;
  for (const Frame *frame = &call.frame; frame; frame = frame->caller) {
    const Function &function = frame->function;
    copies |= machine.copiesToHost.count(function.id) != 0;
    knowsModels |=
        machine.usage.asksForDevice.count(function.id) || machine.usage.leavesAutograd.count(function.id);
    choosesDevice |= holdsDevice(machine.types, function.className);
    isExport &= takesOutOfTensors(machine.types, function);
  }
  // A method's class may say what it is given; a plain function, that of a C interface above all, cannot.
  const Function &entry = entryOf(call.frame).function;
  isExport &= isCalledFromOutside(call) && isBesideDeviceCode(machine, call.frame.function) &&
              (isPython(entry.where.file.view()) ? entry.className.empty() && !entry.isLambda
                                                 : entry.className.empty() || entry.isLambda);
  const bool isModule = memory.kind == PlacementKind::Symbol && memory.role == SymbolRole::Module;
  if (copies || isExport || (isModule && choosesDevice))
    return Verdict::Likely;
  // What the dispatcher hands over for CUDA beside the first tensor is there, too, or tells of it on the
  // host.
  const bool isOfKernel = memory.index && applies(memory.index, op::dispatched);
  // What nobody here calls may be for the CPU alone, though code beside it is meant for more.
  const bool isKept = isOfEarlierCall(call, memory);
  const bool isOpen =
      (isGiven(call, memory) || isKept) && isCalledFromOutside(call) && isMeantForDevices(call);
  for (const std::set<Name> *each : {&machine.usage.asksForDevice, &machine.usage.leavesAutograd})
    knowsModels |= isKept && hasMethodAmong(machine, entry.className, *each);
  // Memory of C++ may be one that every device reads.
  const bool isEntry = memory.index && applies(memory.index, op::element); // of a batch, which a loader makes
  knowsModels |= !isEntry && hasMethodAmong(machine, entry.className, machine.usage.bringsToHost);
  if (((isOpen && knowsModels) || (isModule && isMeantForDevices(call))) && isPython(entry.where.file.view()))
    return Verdict::Likely;
  return choosesDevice || isOfKernel || isOpen ? Verdict::Latent : Verdict::Silent;
}

namespace {

bool takesParts(const Call &call) { return isOneOf(lastPart(call.fact.name.view()), {"get", "index"}); }

// Has the object at hand, a module, kept it outside of what moves with the module, which the other does? An
// index may stay on the CPU, and what is made on a device that the program names is there on purpose.
bool isLeftBehind(const Call &call, const Witness &kept, const Witness &registered) {
  const History history = call.machine.memory.historyOf(call.row, kept.use->tensor);
  const bool isMember = history && history->step.kind == StepKind::Member;
  // What is passed may be a parameter, which moves with the module that keeps it; what is computed of one
  // does not.
  const bool isComputed = kept.placement->role == SymbolRole::Module && !kept.use->tensor->address.valid();
  return isMember && isComputed && !takesParts(call) && isOutside(*kept.placement) &&
         isOfMaker(call, *kept.placement) && callThatWasGiven(*kept.placement) != call.machine.entryCall &&
         !isMadeThere(call, kept) && registered.placement->kind == PlacementKind::Symbol &&
         registered.placement->role == SymbolRole::Module && !isOfMaker(call, *registered.placement);
}

// Is it brought there in the arguments of the operation? What is asked for parts is brought for the parts.
bool isBroughtIn(const Call &call, const Witness &witness) {
  const History history = call.machine.memory.historyOf(call.row, witness.use->tensor);
  const Step *step = decidingStep(history);
  const Location operand = witness.use->operand ? witness.use->operand->where : Location();
  const bool isWhole = takesParts(call) && operand == call.fact.operands.front().where;
  return !isWhole && step && step->where.file == operand.file && step->where.line == operand.line &&
         step->where.column >= operand.column && step->where.endColumn <= operand.endColumn;
}

// Did a constructor of the class make it?
bool isMadeByConstructor(const Machine &machine, const Step &step, Name className) {
  const Type *type = machine.program.type(className);
  return type && std::any_of(type->methods.begin(), type->methods.end(), [&](Name id) {
           const Function *method = machine.program.function(id);
           return method && method->isConstructor && isWrittenIn(step, *method);
         });
}

// The innermost frame that can know where the tensor is: of what a module was made with, that of the entry,
// which has the module.
const Frame &holderFrame(const Call &call, const Witness &witness) {
  const History history = call.machine.memory.historyOf(call.row, witness.use->tensor);
  const Step *step = decidingStep(history);
  bool isOfModule = step && step->kind == StepKind::ModuleMade;
  for (const Frame *frame = &call.frame; step && frame->caller; frame = frame->caller)
    isOfModule |= isMadeByConstructor(call.machine, *step, frame->function.className);
  return isOfModule ? entryOf(call.frame) : call.frame;
}

// Of a module that is spread: is it on the first device, as what it is given is, or behind its first layers?
// What something unknown makes of that may be on any.
std::optional<bool> isBehindFirst(const Call &call, const Placement &placement) {
  if (isGiven(call, placement) && applies(placement.index, op::parameter))
    return false;
  if (!isChoice(placement) || !applies(placement.index, op::element) ||
      placement.index->args[0] != textTerm(spreadDevices))
    return std::nullopt;
  return !constantOf(placement.index->args[1]);
}

// Its modules bring what they get to where they are; what an operator gets from both ends is apart. All else
// is weighed where the module is whole.
Verdict weighSpread(const Call &call, const Placement &a, const Placement &b) {
  const auto left = isBehindFirst(call, a), right = isBehindFirst(call, b);
  return left && right && *left != *right ? Verdict::Likely : Verdict::Open;
}

} // namespace

Verdict weigh(const Call &call, Verdict verdict, const Witness &a, const Witness &b) {
  if (call.machine.isSpread)
    return weighSpread(call, *a.placement, *b.placement);
  const bool isOutsideA = isOutside(*a.placement), isOutsideB = isOutside(*b.placement);
  if (isPartial(call, *a.placement) || isPartial(call, *b.placement))
    return Verdict::Open;
  if (call.row.numberOf(scalarValue(availableTerm())) == 0) // what is outside is on the CPU, too
    return Verdict::Open;
  if (isOutsideA != isOutsideB && isRunOnCpu(call.row) &&
      (isOutsideA ? b : a).placement->kind == PlacementKind::Cpu)
    return Verdict::Silent;
  const std::set<Term> *left = call.machine.devicesLeft;
  auto isLeftFor = [&](const Placement &now, const Placement &other) {
    return (now.kind == PlacementKind::Cpu || isSaved(now)) && left && left->count(originOf(other));
  };
  if (isLeftFor(*a.placement, *b.placement) || isLeftFor(*b.placement, *a.placement) ||
      isForgottenByMover(call, a, b) || isForgottenByMover(call, b, a) ||
      isForgottenMember(call, *a.placement, *b.placement) ||
      isForgottenMember(call, *b.placement, *a.placement))
    return Verdict::Likely;
  // Where something unknown is that the code has asked is no choice of the program's.
  const auto isAsked = [](const Placement &asked, const Placement &other) {
    return asked.index && applies(asked.index, askedForDevice) && other.kind == PlacementKind::Cuda;
  };
  if (isAsked(*a.placement, *b.placement) || isAsked(*b.placement, *a.placement))
    return Verdict::Latent;
  const bool areNumbered =
      a.placement->kind == PlacementKind::Cuda && b.placement->kind == PlacementKind::Cuda;
  if (verdict == Verdict::Likely ||
      (areNumbered && !isOutsideA && !isOutsideB)) // GPUs that the program counts
    return verdict;
  if (hasOwnCallers(call) || isOnlyTested(call, *a.placement, *b.placement))
    return isOutsideA && isOutsideB ? Verdict::Open : Verdict::Latent;
  if ((isBroughtBack(call, a) && isGiven(call, *b.placement)) ||
      (isBroughtBack(call, b) && isGiven(call, *a.placement)))
    return Verdict::Latent;
  // Who brings something to the CPU for what an object has kept, or in the operation itself, knows that the
  // other is there.
  const auto isBroughtFor = [&](const Witness &brought, const Witness &kept) {
    return brought.placement->kind == PlacementKind::Cpu && isMadeHere(call, brought) &&
           wasBrought(call, brought.use->tensor) &&
           (isOfEarlierCall(call, *kept.placement) ||
            (isBroughtIn(call, brought) && !isMadeThere(call, kept)));
  };
  if (isBroughtFor(a, b) || isBroughtFor(b, a))
    return Verdict::Latent;
  if (haveMet(call, *a.placement, *b.placement))
    return isOutsideA && isOutsideB ? Verdict::Open : Verdict::Latent;
  auto speaksAgainst = [&](const Witness &left, const Witness &right) {
    // What is moved to where a module is speaks of the rest of its batch. Other arguments may be made for
    // that.
    const bool isApart = right.placement->role == SymbolRole::Module &&
                         !isRestOfBrought(call, *left.placement, *right.placement);
    return isGiven(call, *left.placement) && !isKeptByGiven(call, *left.placement) && !isApart &&
           !areParallel(*left.placement, *right.placement) &&
           (wasMovedHere(call, right) || isWhereGivenGoes(call, *right.placement) ||
            (isCalledFromOutside(call) && isMadeEarlier(call, right) && !isOfMaker(call, *right.placement) &&
             !holderOf(*right.placement)));
  };
  if (speaksAgainst(a, b) || speaksAgainst(b, a) || isMovedBetween(call, *a.placement, *b.placement) ||
      isMovedElsewhere(call, *a.placement, *b.placement) ||
      isMovedElsewhere(call, *b.placement, *a.placement))
    return Verdict::Likely;
  if ((isKept(call, *a.placement) && isChoice(*b.placement)) ||
      (isKept(call, *b.placement) && isChoice(*a.placement)))
    return Verdict::Likely;
  if (isFormer(*a.placement) != isFormer(*b.placement) || isLeftBehind(call, a, b) ||
      isLeftBehind(call, b, a))
    return Verdict::Likely;
  if (isOutsideA && isOutsideB)
    return isMovedBySiblings(call, *a.placement) || isMovedBySiblings(call, *b.placement) ? Verdict::Likely
                                                                                          : Verdict::Open;
  const Placement &fixed = isOutsideA ? *b.placement : *a.placement;
  const Placement &open = isOutsideA ? *a.placement : *b.placement;
  if (isStateOutside(open))
    return Verdict::Open;
  const bool isModule =
      open.kind == PlacementKind::Symbol && open.role == SymbolRole::Module && !isReleased(open);
  // Pinned memory is on the host on purpose.
  const bool isStaged = call.machine.memory.isPinned(call.row, (isOutsideA ? b : a).use->tensor);
  const bool isMeant = isMeantFrom(call, holderFrame(call, isOutsideA ? b : a)) ||
                       wasMovedHere(call, isOutsideA ? a : b) ||
                       (isPublic(call) && isGiven(call, open) && isMadeHere(call, isOutsideA ? b : a));
  if (fixed.kind == PlacementKind::Cpu && !isStaged && isMeant &&
      (isModule || isMadeEarlier(call, isOutsideA ? a : b) || isMadeThere(call, isOutsideA ? a : b) ||
       (open.index && applies(open.index, askedForDevice) && isMadeHere(call, isOutsideA ? b : a)) ||
       (isGiven(call, open) && !isOfWrittenObject(call, open)) || isOfEarlierCall(call, open)))
    return isKeptByGiven(call, open) && wasBrought(call, (isOutsideA ? b : a).use->tensor) ? Verdict::Open
                                                                                           : Verdict::Likely;
  return Verdict::Latent;
}

} // namespace devicetidy
