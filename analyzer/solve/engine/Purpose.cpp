#include "analyzer/solve/engine/Purpose.h"

#include "analyzer/facts/Language.h"
#include "analyzer/facts/NameParts.h"
#include "analyzer/models/Models.h"
#include "analyzer/solve/engine/UnitTests.h"

#include <algorithm>

namespace devicetidy {

// Does the program alone call the entry, though the analysis has not seen how? Only Python has names for
// that: what is private in C++ may be registered with somebody outside. What a program with a main calls, and
// is not run for that call, lies behind an error or something unknown.
bool hasOwnCallers(const Call &call) {
  const Machine &machine = call.machine;
  const Function &entry = entryOf(call.frame).function;
  return isPython(entry.where.file.view()) &&
         (machine.types.isHidden(entry) || machine.usage.calledWhileMaking.count(entry.id) ||
          (machine.usage.hasMain && machine.entryIsCalled));
}

// Is the entry one that nobody in the program calls, as those of a library are? What a program with a `main`
// does not call is for nobody. A module of Python is for whoever holds it, and names say what is not.
bool isCalledFromOutside(const Call &call) {
  const Machine &machine = call.machine;
  const Function &entry = entryOf(call.frame).function;
  const bool isOfModule = !machine.types.isHidden(entry) && isPython(entry.where.file.view()) &&
                          machine.types.isModule(entry.className);
  const bool isForOthers = !machine.entryIsCalled || isOfModule;
  return isForOthers && !isOfTestFile(entry) && !machine.usage.hasMain &&
         !machine.usage.kernels.count(entry.id);
}

// Is the entry a method of what a loader reads, which it does on the host, whatever code is beside it?
bool isReadByLoader(const Types &types, Name className) {
  const Type *type = types.program.type(className);
  return models::hasRole(className.view(), "dataset") ||
         (type && std::any_of(type->bases.begin(), type->bases.end(),
                              [&](Name base) { return base != className && isReadByLoader(types, base); }));
}

bool isBesideDeviceCode(const Machine &machine, const Function &function) {
  return machine.usage.deviceFolders.count(folderOf(function)) != 0;
}

// Is the entry one that others may call beside the program, which asks for devices?
bool isPublic(const Call &call) {
  const Function &entry = entryOf(call.frame).function;
  return !call.machine.types.isHidden(entry) && isPython(entry.where.file.view()) &&
         !call.machine.usage.hasMain && isBesideDeviceCode(call.machine, entry) &&
         !isReadByLoader(call.machine.types, entry.className);
}

bool holdsDevice(const Types &types, Name className) {
  const Type *type = types.program.type(className);
  return type && (std::any_of(type->fields.begin(), type->fields.end(),
                              [&](const Field &field) {
                                const TypeClass kind = types.classOf(field.type);
                                return kind == TypeClass::Device || kind == TypeClass::Options;
                              }) ||
                  std::any_of(type->bases.begin(), type->bases.end(),
                              [&](Name base) { return holdsDevice(types, base); }));
}

// Does it give its caller no tensor? A kernel for the CPU has one for its outcome; what reads tensors and
// gives numbers is where they leave the devices.
bool takesOutOfTensors(const Types &types, const Function &function) {
  if (function.isConstructor) // keeps what it reads
    return false;
  for (std::uint32_t i = 0; i < function.paramCount; ++i)
    if (const Variable &given = function.locals[i];
        types.holdsTensors(given.type) && !(given.isReference && given.isConst))
      return false;
  return !types.leadsToTensors(function.resultType);
}

// Is a method of the class, or of one behind it, among `methods`?
bool hasMethodAmong(const Machine &machine, Name className, const std::set<Name> &methods) {
  const Type *type = machine.program.type(className);
  return type && isPython(type->where.file.view()) &&
         (std::any_of(type->methods.begin(), type->methods.end(),
                      [&](Name id) { return methods.count(id) != 0; }) ||
          std::any_of(type->bases.begin(), type->bases.end(), [&](Name base) {
            return base != className && hasMethodAmong(machine, base, methods);
          }));
}

// A function under way, `from` or a caller, is written beside code that asks for devices, its class chooses
// one, or it is a module in a program that moves modules.
bool isMeantFrom(const Call &call, const Frame &from) {
  const Machine &machine = call.machine;
  const bool isRead = isReadByLoader(machine.types, entryOf(call.frame).function.className);
  const bool isOpen = isCalledFromOutside(call) && !isRead;
  for (const Frame *frame = &from; frame; frame = frame->caller) {
    const Function &function = frame->function;
    if (frame->site) // what models do says nothing of the program
      continue;
    if ((isOpen && isBesideDeviceCode(machine, function)) || machine.usage.asksForDevice.count(function.id) ||
        (!isRead && machine.usage.makesThere.count(function.id)) ||
        holdsDevice(machine.types, function.className) ||
        (!isRead && (hasMethodAmong(machine, function.className, machine.usage.asksForDevice) ||
                     hasMethodAmong(machine, function.className, machine.usage.takesDevice))) ||
        (machine.usage.movesModules && machine.types.isModule(function.className)))
      return true;
  }
  return false;
}

} // namespace devicetidy
