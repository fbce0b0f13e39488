//===- Devices.h - devices and options as values ----------------*- C++ -*-===//
#pragma once

#include "analyzer/solve/domain/DeviceTerms.h"
#include "analyzer/solve/engine/Machine.h"

namespace devicetidy {

/// The index of the device a tensor is on: -1 on the CPU, and only there.
Value indexValue(Call &call, const Placement &placement);
/// The device the options or device argument of a factory asks for; nothing when there is none.
std::optional<Value> optionsArgument(const Call &call, std::size_t from);

/// Makes the device that `device` names, or the index that it is, the current one.
void makeCurrent(Call &call, const Value &device);

} // namespace devicetidy
