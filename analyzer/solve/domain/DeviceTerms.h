//===- DeviceTerms.h - devices in conditions --------------------*- C++ -*-===//
//
// What a value says of a device, and the conditions a program can ask of devices as terms: two are one, it is
// a CUDA device, there is one at all.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/solve/domain/Memory.h"

#include <optional>

namespace devicetidy {

/// The device a value stands for: a Device, options with a device, a device string, a tensor; nothing when it
/// is none.
std::optional<Placement> deviceOf(const Memory &memory, const Row &row, const Value &value);
/// The device of a c10::DeviceType enumerator by number (c10/core/DeviceType.h).
Placement deviceOfEnum(std::int64_t number);
/// Parses "cpu", "cuda", "cuda:1", "mps" ...
std::optional<Placement> parseDevice(std::string_view text);

/// The conditions "a CUDA device is available", and the number of CUDA devices.
Term availableTerm();
Term countTerm();
/// "There is more than no device" and its negations, said of the number of devices, as the condition "a
/// device is available"; any other term as it is.
Term asAvailability(Term term);
/// Is `condition` whether a tensor or device from outside is on CUDA?
bool asksForCuda(Term condition);

/// `what` as a question whose answer the analyzer does not follow, though the program may well decide it:
/// which branch is taken is a guess then.
Term guess(Term what);
/// What a bound has kept from being known, which `parts` tell from the rest of it.
Term bounded(std::vector<Term> parts);
/// Does it rest on something that a bound has kept from being known?
bool restsOnBound(Term what);
/// Has what is decided outside the analysed code a part in `what`?
bool restsOnOutside(Term what);
/// Is the branch that `condition` decides a guess: asked for as one, or decided by the program alone and not
/// followed?
bool isGuess(Term condition);
/// The guess that an exception was raised where one may be. What a handler of exceptions makes of it is there
/// in few runs, if in any.
Condition raisedCondition();
/// Is the row on a branch that may never be taken, for all the analyzer knows of what decides it?
bool isGuessed(const Row &row);
/// Is the row on a branch that rests on a bound? It leads to no finding.
bool isBounded(const Row &row);
/// Does something outside the analysed code decide which device it is?
bool isOutside(const Placement &placement);
/// The call of an entry that was passed what is there, or what leads to it; empty when it was no call.
std::string callThatWasGiven(const Placement &placement);
std::string callThatWasGiven(Term term);
/// What stands for that parameter; the index of the device where no parameter leads to it.
Term originOf(const Placement &placement);
/// Is it what an object holds that is reached through other objects from outside? It is their state: nobody
/// has passed it, and the code at hand does not decide it.
bool isStateOutside(const Placement &placement);
/// The object whose own class alone reaches what is there, a private member; null for any other place.
Term holderOf(const Placement &placement);
/// The device that the program chose, by a choice, a module or a number; the list, where it is an element of
/// a list of devices. Null for the CPU, and for the device of a tensor from outside.
Term groupOf(const Placement &placement);
/// Condition "a and b are one device".
Term sameDeviceTerm(const Placement &a, const Placement &b);
/// Condition "the device is a CUDA device".
Term isCudaTerm(const Placement &device);
/// A branch was taken in which something unknown is on this device: "if (w.device() != x.device()) w = ..."
/// leaves w where it was only where x is there too.
bool isAssumed(const Row &row, const Placement &placement);
/// The row knows that no such device is there: putting a tensor on it throws, and no two devices meet.
bool isAbsent(const Row &row, const Placement &placement);

} // namespace devicetidy
