//===- Purpose.h - who calls code, and what it is meant for -----*- C++ -*-===//
//
// What the program shows of a function beside what it does: whether others call it, whether a loader reads it
// on the host, whether its class or the code beside it chooses devices.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/solve/engine/Machine.h"

namespace devicetidy {

/// Does the program alone call the entry, though the analysis has not seen how?
bool hasOwnCallers(const Call &call);
/// Is the entry one that nobody in the program calls, as those of a library are?
bool isCalledFromOutside(const Call &call);
/// Is the entry one that others may call beside the program, which asks for devices?
bool isPublic(const Call &call);
/// Is the class one whose objects a loader reads? It does so on the host, whatever code is beside it.
bool isReadByLoader(const Types &types, Name className);
/// Is the function written beside code that asks for devices?
bool isBesideDeviceCode(const Machine &machine, const Function &function);
/// Does the class have a member that is a device?
bool holdsDevice(const Types &types, Name className);
/// Is a method of the class of Python, or of one behind it, among `methods`?
bool hasMethodAmong(const Machine &machine, Name className, const std::set<Name> &methods);
/// Does the function give its caller no tensor?
bool takesOutOfTensors(const Types &types, const Function &function);
/// Is `from` or a function that calls it meant for more devices than the CPU?
bool isMeantFrom(const Call &call, const Frame &from);
/// Is the code that runs `call`?
inline bool isMeantForDevices(const Call &call) { return isMeantFrom(call, call.frame); }

} // namespace devicetidy
