//===- Distributed.h - what initialises distributed training ----*- C++ -*-===//
#pragma once

#include "analyzer/solve/engine/Machine.h"

#include <string>

namespace devicetidy {

/// Is `name`, or its last part, one of those the user knows of?
bool isListed(const std::set<std::string, std::less<>> &names, std::string_view name);
/// Does a function, or the constructors of a class, of this name initialise distributed training?
bool initialises(std::string_view name, const DistributedNames &names);
/// Does anything in `program` look as if it could initialise distributed training?
bool mayInitialise(const Program &program, const DistributedNames &names);
/// What `call` initialises distributed training with ("c10d::TCPStore", "torchrun"); empty when it does not.
std::string initialiserOf(const Call &call);
/// Runs Python source: PyRun_SimpleString, py::exec ...
bool runsPython(std::string_view callee);
/// Starts another program: system, popen, execvp ...
bool startsProgram(std::string_view callee, const DistributedNames &names);
/// The text of all arguments of `call` in order, lists flattened; what is not known is a blank.
std::string textOfArguments(const Call &call);
/// The text a scalar term spells; what is not known in it is a blank.
std::string textOfTerm(Term term);

} // namespace devicetidy
