//===- Distributed.h - what initialises distributed training ----*- C++ -*-===//
//
// Questions about calls and whole programs; those about single names are in analyzer/models/Distributed.h.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/solve/engine/Machine.h"

#include <string>

namespace devicetidy {

/// The dotted name under which a function of a Python library is called; empty for anything else.
std::string_view libraryPath(std::string_view name);
/// Does anything in `program` look as if it could initialise distributed training?
bool mayInitialise(const Program &program, const DistributedNames &names);
/// What `call` initialises distributed training with ("c10d::TCPStore", "torchrun"); empty when it does not.
std::string initialiserOf(const Call &call);
/// The text of all arguments of `call` in order, lists flattened; what is not known is a blank.
std::string textOfArguments(const Call &call);
/// The text a scalar term spells; what is not known in it is a blank.
std::string textOfTerm(Term term);

} // namespace devicetidy
