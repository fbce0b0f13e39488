#include "analyzer/solve/library/torch/CurrentDevice.h"

#include "analyzer/facts/NameParts.h"
#include "analyzer/solve/domain/DeviceTerms.h"
#include "analyzer/solve/domain/TermOps.h"

#include <algorithm>

namespace devicetidy {
namespace {

// Is there nothing that a kernel could read amiss? Page-locked memory of the host is mapped, and a tensor
// without elements, which often stands for "none", has no memory.
bool isHarmless(const Call &call, const Value &tensor) {
  return tensor->count == 0 || call.machine.memory.mayBePinned(call.row, tensor);
}

// The GPU that `placement` is, as a number; null when it is none.
Term gpuOf(const Placement &placement) {
  return placement.kind == PlacementKind::Cuda     ? placement.index
         : placement.kind == PlacementKind::Symbol ? indexOf(placement.index)
                                                   : nullptr;
}

// The current GPU as the row knows it by now: -1 when it was that of a tensor found to be on the CPU.
Term currentOf(const Row &row) {
  const Term current = row.resolve(row.currentDevice);
  if (current->kind != TermKind::Apply || current->name != op::indexOf)
    return current;
  const Placement device = row.resolve(Placement::symbol(SymbolRole::None, current->args[0], {}));
  return device.kind == PlacementKind::Cpu ? intTerm(-1)
         : gpuOf(device)                   ? row.resolve(gpuOf(device))
                                           : current;
}

// Has something made a GPU current?
bool isSet(Term current) {
  const auto number = constantOf(current);
  return current != currentCudaIndex() && (!number || *number >= 0);
}

// Is it that of a guard of a tensor that this path has found on the CPU? Such a guard makes nothing current.
bool isGuardOfHost(Term current) { return current != currentCudaIndex() && !isSet(current); }

// Is the program complete, and has everything on one GPU?
bool isOfOneGpu(const Call &call) {
  const Usage &usage = call.machine.usage;
  return usage.hasMain && !usage.tellsGpusApart;
}

bool isUnderBackward(const Call &call) {
  for (const Frame *frame = &call.frame; frame; frame = frame->caller)
    if (isBackward(call.machine.types, frame->function))
      return true;
  return false;
}

// What is to be said of memory on `placement` while `current` is the current GPU.
Verdict verdictOn(const Call &call, const Placement &placement, Term current) {
  const Term gpu = call.row.resolve(gpuOf(placement));
  if (gpu == current || call.row.pinned(gpu) == call.row.pinned(current))
    return Verdict::Same;
  if (isGuardOfHost(current))
    return Verdict::Likely;
  if (isOutside(placement)) // tensors of one call share a device by convention
    return isSet(current) || isUnderBackward(call) ? Verdict::Silent : Verdict::Likely;
  return compare(placement, Placement::cuda(current), call.machine.currentDeviceIsOpen);
}

bool isCudaSource(Name file) { return endsWith(file.view(), ".cu") || endsWith(file.view(), ".cuh"); }

// Does `function` know of tensors, and not only of pointers into them?
bool seesTensors(const Types &types, const Function &function) {
  return (!function.className.empty() && !function.isStatic && !function.isLambda) ||
         function.paramCount == 0 ||
         std::any_of(function.locals.begin(), function.locals.end(),
                     [&](const Variable &variable) { return types.holdsTensors(variable.type); });
}

/// A function that is under way, and the place in it that led on.
struct Site {
  const Frame *frame = nullptr;
  Location where;
};

// The function that should make the GPU current: the first in CUDA sources that was called, because what
// calls it may serve other devices too; without such sources the first at all. One that gets pointers cannot.
// One that others call as well needs a guard of its own, whoever calls it here.
Site siteOf(const Call &call) {
  Site site;
  bool isCuda = false;
  const Fact *fact = &call.fact;
  const Frame *lambda = nullptr; // the code of a lambda is that of the function it stands in
  Location inLambda;
  for (const Frame *frame = &call.frame; frame && fact; fact = frame->call, frame = frame->caller) {
    const Function &function = frame->function;
    if (function.isLambda) {
      inLambda = lambda ? inLambda : fact->where;
      lambda = lambda ? lambda : frame;
      continue;
    }
    const bool isOurs = lambda && startsWith(lambda->function.name.view(), function.name.view());
    const Location where = isOurs ? inLambda : fact->where;
    lambda = nullptr;
    if (!seesTensors(call.machine.types, function) || (function.isMain && site.frame))
      continue;
    const bool isHere = isCudaSource(function.where.file);
    if (!site.frame || isHere || !isCuda)
      site = {frame, where};
    isCuda |= isHere;
    if (call.machine.usage.exported.count(function.id))
      break;
  }
  return site;
}

// A tensor that a guard in `function` can be made with.
std::string tensorOf(const Types &types, const Function &function) {
  for (std::uint32_t i = 0; i < function.paramCount; ++i)
    if (types.classOf(function.locals[i].type) == TypeClass::Tensor)
      return function.locals[i].name.str();
  return {};
}

void missGuard(const Call &call, const TensorUse &memory, const Placement &placement, Term current,
               const std::string &work, Level level) {
  const Site site = siteOf(call);
  if (!site.frame)
    return;
  std::vector<MissingGuard> &found = call.machine.solution.missingGuards;
  const std::string id = site.frame->function.id.str();
  const auto known = std::find_if(found.begin(), found.end(),
                                  [&](const MissingGuard &each) { return each.functionId == id; });
  if (known != found.end() && std::pair(known->level, known->where) <= std::pair(level, site.where))
    return;
  MissingGuard guard;
  guard.level = level;
  guard.where = site.where;
  guard.functionId = id;
  guard.work = work;
  guard.worksAt = call.fact.where;
  guard.memory = call.machine.describe(call, memory, placement);
  guard.current = isSet(current) ? Placement::cuda(current).describe() : std::string();
  guard.parameter =
      site.frame == &call.frame ? guard.memory.text : tensorOf(call.machine.types, site.frame->function);
  guard.callers = callersOf(call.machine.types, *site.frame);
  for (const Frame *each = &call.frame; each != site.frame; each = each->caller)
    if (!each->function.isLambda && each->call->where != site.where)
      guard.through.insert(guard.through.begin(), each->call->where);
  if (known == found.end())
    found.push_back(std::move(guard));
  else
    *known = std::move(guard);
}

// Memory of the host, which work on GPU `current` gets.
void meetHostMemory(Call &call, const TensorUse &memory, Term current, const std::string &work) {
  Machine::Requirement requirement;
  requirement.operation = work;
  requirement.kind = ConflictKind::Launch;
  const Value there = tensorValue(Placement::cuda(current), someRank, nullptr);
  call.machine.requireSame(call, {memory, {there, memory.operand, "the kernel"}}, requirement);
}

// Memory that was made on whichever GPU was current at first, which need not be the one that is current now.
bool isBehind(const Row &row, const Placement &placement, Term current) {
  return placement.kind == PlacementKind::Cuda && row.resolve(placement.index) == currentCudaIndex() &&
         isSet(current) && !constantOf(current);
}

// A stream, an event, a communicator or a handle of a library that was made before its GPU was current.
void loseHandle(const Call &call, std::size_t operand, const Value &handle, const std::string &work) {
  const Operand &written = call.fact.operands[operand];
  PlacedOperand lost;
  lost.where = written.where;
  lost.text = written.text.str();
  lost.device = call.row.resolve(handle->placement).describe();
  lost.history = steps(handle->history);
  // What is made too early is one mistake, however often it is used.
  const std::vector<LostIndex> &found = call.machine.solution.lostIndices;
  const auto isOfSame = [&](const LostIndex &each) {
    return each.where != call.fact.where && !each.first.history.empty() && !lost.history.empty() &&
           each.first.history.front().where == lost.history.front().where;
  };
  if (std::none_of(found.begin(), found.end(), isOfSame))
    loseIndex(call, work, std::move(lost), IndexFault::Early);
}

std::string nameOf(const Call &call) { return std::string(lastPart(call.fact.name.view())); }

bool hasMemory(const Call &call, const TensorUse &memory) {
  return is(memory.tensor, ValueKind::Tensor) && !isHarmless(call, memory.tensor);
}

} // namespace

void loseIndex(const Call &call, const std::string &work, PlacedOperand lost, IndexFault fault,
               Location decided, Level level) {
  const bool isOfCaller = call.machine.entryIsCalled && fault != IndexFault::GlobalRank;
  LostIndex index{isOfCaller ? Level::Latent : level,        call.fact.where, work, std::move(lost), fault,
                  callersOf(call.machine.types, call.frame), decided};
  std::vector<LostIndex> &found = call.machine.solution.lostIndices;
  const auto known = std::find_if(found.begin(), found.end(),
                                  [&](const LostIndex &each) { return each.where == index.where; });
  if (known == found.end())
    found.push_back(std::move(index));
  else if (index.level < known->level)
    *known = std::move(index);
}

void requireGpu(Call &call, const TensorUse &memory, const std::string &work) {
  if (!hasMemory(call, memory))
    return;
  const Placement placement = call.row.resolve(call.machine.memory.placementOf(call.row, memory.tensor));
  const Term current = currentOf(call.row);
  if (!gpuOf(placement))
    return meetHostMemory(call, memory, current, work);
  // Whatever is current will do, but who has written a guard means the GPU at hand.
  if (isGuardOfHost(current))
    missGuard(call, memory, placement, current, work,
              call.machine.entryIsCalled ? Level::Latent : Level::Likely);
}

void requireSameGpu(Call &call, const Value &first, const Value &second) {
  const Placement a = call.row.resolve(first->placement), b = call.row.resolve(second->placement);
  const Term gpuA = gpuOf(a) ? call.row.resolve(gpuOf(a)) : nullptr,
             gpuB = gpuOf(b) ? call.row.resolve(gpuOf(b)) : nullptr;
  if (!gpuA || !gpuB)
    return;
  if (isBehind(call.row, a, gpuB))
    loseHandle(call, call.first, first, nameOf(call));
  else if (isBehind(call.row, b, gpuA))
    loseHandle(call, call.first + 1, second, nameOf(call));
}

void requireCurrentHandle(Call &call, std::size_t operand, const std::string &work) {
  const Value handle = call.operand(operand);
  if (!is(handle, ValueKind::Device) ||
      call.machine.types.classOf(call.fact.operands[operand].type) == TypeClass::Device)
    return;
  // Where the program sets the device, it may have done so before the handle was made.
  if (!call.machine.currentDeviceIsOpen &&
      isBehind(call.row, call.row.resolve(handle->placement), currentOf(call.row)))
    loseHandle(call, operand, handle, work);
}

void meetIndex(Call &call, Term index) {
  if (call.row.resolve(index) != countTerm())
    return;
  PlacedOperand operand;
  operand.where = call.fact.where;
  loseIndex(call, nameOf(call), std::move(operand), IndexFault::CountOfGpus);
}

void requireCurrent(Call &call, const TensorUse &memory, const std::string &work, bool isSeen) {
  Machine &machine = call.machine;
  if (!hasMemory(call, memory))
    return;
  const Placement placement = call.row.resolve(machine.memory.placementOf(call.row, memory.tensor));
  const Term current = currentOf(call.row);
  if (!gpuOf(placement))
    return isSeen ? meetHostMemory(call, memory, current, work) : void();
  if (isBehind(call.row, placement, current))
    return loseIndex(call, nameOf(call), machine.describe(call, memory, placement), IndexFault::Early);
  const Verdict verdict = verdictOn(call, placement, current);
  if (verdict == Verdict::Same || verdict == Verdict::Silent)
    return;
  const bool isSure = isSeen && verdict == Verdict::Definite && !isGuessed(call.row);
  missGuard(call, memory, placement, current, work,
            verdict == Verdict::Latent || machine.entryIsCalled ? Level::Latent
            : isSure                                            ? Level::Definite
            : isOfOneGpu(call)                                  ? Level::Latent
                                                                : Level::Likely);
}

} // namespace devicetidy
