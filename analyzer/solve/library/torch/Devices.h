//===- Devices.h - devices and options as values ----------------*- C++ -*-===//
#pragma once

#include "analyzer/solve/domain/DeviceTerms.h"
#include "analyzer/solve/engine/Machine.h"

namespace devicetidy {

/// The device the options or device argument of a factory asks for; nothing when there is none.
std::optional<Value> optionsArgument(const Call &call, std::size_t from);

/// Makes the device that `device` names, or the index that it is, the current one.
void makeCurrent(Call &call, const Value &device);

} // namespace devicetidy
