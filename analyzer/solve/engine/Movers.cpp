#include "analyzer/solve/engine/Movers.h"

#include "analyzer/facts/NameParts.h"
#include "analyzer/solve/domain/DeviceTerms.h"
#include "analyzer/solve/domain/TermOps.h"
#include "analyzer/solve/engine/Purpose.h"

#include <algorithm>

namespace devicetidy {
namespace {

/// A member of an object that a caller has passed to an entry, or of the object at hand.
struct Held {
  Name className, field;
  Term holder = nullptr;
};

// The class of what `holder` stands for; empty where it is something else.
Name classOfHolder(const Call &call, Term holder) {
  if (isOf(holder, op::pointee))
    holder = holder->args[0];
  if (isOf(holder, op::self))
    return holder->args[0]->name;
  if (!isOf(holder, op::parameter) || holder->args.size() != 2)
    return {};
  const Function *function = call.machine.program.function(holder->args[0]->name);
  const auto index = constantOf(holder->args[1]);
  if (!function || !index || static_cast<std::size_t>(*index) >= function->locals.size())
    return {};
  const Name type = function->locals[static_cast<std::size_t>(*index)].type;
  return call.machine.types.classOf(type) == TypeClass::Pointer ? call.machine.types.inner(type) : type;
}

Held memberAt(const Call &call, const Placement &placement) {
  const Term index = placement.index;
  if (placement.kind != PlacementKind::Symbol || placement.role != SymbolRole::Tensor || !index ||
      !(isOf(index, op::member) || isOf(index, op::inner)) || index->args.size() != 2)
    return {};
  return {classOfHolder(call, index->args[0]), index->args[1]->name, index->args[0]};
}

// Did a constructor of the class get it?
bool isOfMakerOf(const Call &call, const Placement &placement, Name className) {
  const Function *maker = call.machine.program.function(Name(callThatWasGiven(placement)));
  return maker && maker->isConstructor && maker->className == className &&
         isOf(placement.index, op::parameter);
}

// Is it a method of the class, or of one behind it?
bool hasMethod(const Call &call, Name className, const Function &method) {
  return className == method.className ||
         (!className.empty() && call.machine.types.derivesFrom(className, method.className.view()));
}

bool isUnderWay(const Frame &frame, const Function &function) {
  for (const Frame *each = &frame; each; each = each->caller)
    if (&each->function == &function)
      return true;
  return false;
}

} // namespace

bool isMover(const Function &function) {
  return !function.className.empty() && models::hasRole(lastPart(function.name.view()), "moves_object");
}

bool isMovedAlong(const Call &call, const TensorUse &left) {
  const Name className = call.frame.function.className;
  if (holdsDevice(call.machine.types, className)) // it could have been made there
    return false;
  std::string_view written = left.operand ? left.operand->text.view() : std::string_view();
  for (const std::string_view sign : {"*", "this->", "self."})
    if (startsWith(written, sign))
      written.remove_prefix(sign.size());
  const auto &movers = call.machine.usage.movers;
  return std::any_of(movers.begin(), movers.end(), [&](const auto &entry) {
    return entry.second.count(Name(written)) != 0 && hasMethod(call, className, *entry.first);
  });
}

bool isForgottenByMover(const Call &call, const Witness &moved, const Witness &left) {
  const History history = call.machine.memory.historyOf(call.row, moved.use->tensor);
  const Step *step = decidingStep(history);
  if (!step || step->kind != StepKind::Moved || !isOutside(*left.placement))
    return false;
  const Held member = memberAt(call, *left.placement);
  return std::any_of(call.machine.usage.movers.begin(), call.machine.usage.movers.end(),
                     [&](const auto &entry) {
                       const Function &mover = *entry.first;
                       return isWrittenIn(*step, mover) && !isUnderWay(call.frame, mover) &&
                              (hasMethod(call, member.className, mover) ||
                               isOfMakerOf(call, *left.placement, mover.className));
                     });
}

bool isForgottenMember(const Call &call, const Placement &moved, const Placement &left) {
  const Held first = memberAt(call, moved), second = memberAt(call, left);
  // What is computed of the others is where the device is that to() was given.
  const bool isElsewhere = moved.kind == PlacementKind::Cuda || isChoice(moved) ||
                           (moved.kind == PlacementKind::Symbol && moved.role == SymbolRole::Module);
  if (second.className.empty() || (!isElsewhere && first.holder != second.holder))
    return false;
  std::set<Name> members; // that the class moves, or one behind it
  for (const auto &[mover, ofMover] : call.machine.usage.movers)
    if (hasMethod(call, second.className, *mover)) {
      if (isUnderWay(call.frame, *mover))
        return false;
      members.insert(ofMover.begin(), ofMover.end());
    }
  return !members.empty() && (isElsewhere || members.count(first.field) != 0) &&
         members.count(second.field) == 0;
}

} // namespace devicetidy
