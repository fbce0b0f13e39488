//===- OpenValues.h - what a caller passes and nobody says what it is -*- C++ -*-===//
//
// A parameter without a type may be a tensor, a list of them, a batch, an object. It is known by where it
// comes from (openValue), so what is read from it is one value whenever it is read. What is used as only a
// tensor is used becomes one.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/solve/library/python/Python.h"

namespace devicetidy::python {

/// The tensor that an open value is where it is used as one; other values as they are.
Value asTensor(const Call &call, const Value &value);
/// A tensor that a caller may leave out, so that there is None; what is made of it is none any more.
Value leftOutOr(const Value &tensor);
bool mayBeLeftOut(const Value &value);
/// A tensor that is made of a number, and that number; without one, once something is written into it.
Value ofNumber(const Value &tensor, Term number);
std::optional<double> numberIn(const Value &tensor);
Value withoutNumber(const Value &tensor);
/// The same where the program has asked whether it is one, and it is.
Value whereAsked(const Call &call, const Value &value);
/// The same, and where the entry has moved another thing that came with it, which is a tensor then.
Value whereUsed(const Call &call, const Value &value);
/// What is on a device, whatever it is: something that is not known was moved there, or was loaded so. What
/// is read from it is there, too. `isWhole`: it is itself what moved, and a tensor where it is an operand;
/// `isGiven`: the entry was given it.
Value placedValue(Call &call, const Placement &device, bool isWhole, StepKind how = StepKind::Moved,
                  bool isGiven = false);
bool isPlaced(const Value &value);
/// A number or numbers of the host, where nothing else is known of it; and whether a value is that.
Value valueOfHost();
bool isOfHost(const Value &value);
/// That tensor; other values as they are. `isTensor`: the operation takes nothing else, so what is known to
/// be somewhere is one.
Value asOperand(const Call &call, const Value &value, bool isTensor = false);
/// x.to(device), x.cuda(), x.cpu() of what is not known.
Outcomes moveUnknown(Call &call, Row row, const Argument &object, const std::string &name,
                     const Given &given);
/// The number that a value is where it is used as one, though nothing says what it is; else null.
Term numberOfOpen(const Value &value);
/// "Is it a tensor?" as a value; the same question has the same answer.
Value isTensorQuestion(const Value &open);
/// The device that an open value is where it is used as one.
Value asChosenDevice(const Value &value);
/// The device that f(**options) is called with, where it is not known what is in there.
Value deviceIn(const Call &call, const Row &row, const Value &options);
/// The same value, of another type.
Value typed(const Value &open, Name type);
/// The origin of what stands in a file of which nothing is known.
inline const Name writtenInFile("written in a file");
/// How many elements it has, as a term.
Term lengthOfOpen(const Value &open);
/// What stands at `path`, `.a` or `["b"]`, of an unknown value that `whole` tells from others.
Term pathFrom(Term whole, const std::string &path);

/// The attribute of an open value, or what it has under a key or a number.
Value attributeOfOpen(const Call &call, const Row &row, const Value &open, const std::string &name);
Value entryOfOpen(const Call &call, const Row &row, const Value &open, const Value &key);
/// The attribute of an object that a caller has passed, of a class that does not say its type.
Value attributeOfGiven(const Value &object, const std::string &name);
/// Any of its elements, as a loop sees them.
Value elementOfOpen(const Call &call, const Row &row, const Value &open);
/// What an operator makes of it: as open, and of no identity with anything else.
Value computedOfOpen(const Call &call, const Value &open);
void setAttributeOfOpen(const Call &call, Row &row, const Value &open, const std::string &name,
                        const Value &value);
void setEntryOfOpen(const Call &call, Row &row, const Value &open, const Value &key, const Value &value);
/// Calls a method: what is not known to leave it as it is may change all that it holds.
Outcomes callOpenMethod(Call &call, Row row, const Value &open, const std::string &name, const Given &given);

} // namespace devicetidy::python
