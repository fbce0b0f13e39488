//===- Devices.h - devices and options as values ----------------*- C++ -*-===//
#pragma once

#include "analyzer/solve/engine/Machine.h"

namespace devicetidy {

/// The device a value stands for: a Device, options with a device, a device string, a tensor; nothing when it
/// is none.
std::optional<Placement> deviceOf(const Machine &machine, const Row &row, const Value &value);
/// The device of a c10::DeviceType enumerator by number (c10/core/DeviceType.h).
Placement deviceOfEnum(std::int64_t number);
/// Parses "cpu", "cuda", "cuda:1", "mps" ...
std::optional<Placement> parseDevice(std::string_view text);
/// "There is more than no device" and its negations, said of the number of devices, as the condition "a
/// device is available"; any other term as it is.
Term asAvailability(Term term);
/// Is `condition` whether a tensor or device from outside is on CUDA?
bool asksForCuda(Term condition);
/// Condition "a and b are one device".
Term sameDeviceTerm(const Placement &a, const Placement &b);
/// Condition "the device is a CUDA device".
Term isCudaTerm(const Placement &device);
/// The index of the device a tensor is on: -1 on the CPU, and only there.
Value indexValue(Call &call, const Placement &placement);
/// A branch was taken in which something unknown is on this device: "if (w.device() != x.device()) w = ..."
/// leaves w where it was only where x is there too.
bool isAssumed(const Row &row, const Placement &placement);
/// The device the options or device argument of a factory asks for; nothing when there is none.
std::optional<Value> optionsArgument(const Call &call, std::size_t from);

} // namespace devicetidy
