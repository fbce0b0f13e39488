//===- TermOps.h - the operators of terms -----------------------*- C++ -*-===//
//
// What applyTerm() applies. Those of C++ have the names the frontend gives them; the others say what a number
// stands for.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/facts/Name.h"

namespace devicetidy::op {

// C++
inline const Name plus("+"), minus("-"), times("*"), divide("/"), remainder("%"), negate("neg"), bitAnd("&"),
    bitOr("|"), bitXor("^"), shiftLeft("<<"), shiftRight(">>"), complement("~"), negation("!"), equal("=="),
    unequal("!="), less("<"), greater(">"), lessOrEqual("<="), greaterOrEqual(">="), spaceship("<=>"),
    cast("cast");
inline const Name floatNumber("float"), concat("concat"), toString("to_string");

// Devices
inline const Name device("device"); ///< a placement: its kind, its role, its index
inline const Name isCuda("is_cuda"), isCpu("is_cpu");
inline const Name isTensor("is a tensor");            ///< of what a caller passes without a type
inline const Name indexOf("index of");                ///< the index of a device, should it be a GPU
inline const Name sameAsUnknown("unknown device =="); ///< something unknown is on this device, too
inline const Name savedBefore("saved before");        ///< a load
inline const Name chosenAt("device from");            ///< a device that a library call has chosen
inline const Name deviceOfParameter("device of"), ofDevice("of device"), rank("rank");

// Sequences
inline const Name size("size"), back("back");  ///< of a list; the number of its last element
inline const Name dimensions("dimensions of"); ///< of a tensor that a caller passes
inline const Name holds("holds");              ///< has somebody passed a tensor or device, and not nothing
inline const Name entry("entry"), alternative("alternative"), key("key");
inline const Name loop("loop"), previous("previous"); ///< an iteration of a loop, and the one before it

inline const Name implementation("implementation of"); ///< the class of an object from outside, by its number

inline const Name former("former"); ///< what was chosen before something else was, for the same object

inline const Name guess("guess"); ///< a question whose answer is not followed

// What is known by where it comes from
inline const Name call("call"), kept("kept"), once("once"), written("written"), site("site"), copy("copy"),
    closure("closure"), address("address"), pointer("pointer"), dispatched("dispatched");
inline const Name global("global"), parameter("parameter"), self("this"), pointee("*"), member("."),
    element("[]");
inline const Name inner(".private"); ///< a member that only the object's own class reaches
// Where rows are joined
inline const Name phi("phi"), root("root"), registerOf("register"), elementOf("elem"), fieldOf("field");

} // namespace devicetidy::op
