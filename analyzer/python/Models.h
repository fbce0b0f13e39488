//===- Models.h - models of libraries, written in Python --------*- C++ -*-===//
//
// analyzer/models/bodies/python says in Python what libraries do. The files were read when the tool was
// built.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/facts/Program.h"
#include "analyzer/python/Modules.h"

#include <vector>

namespace devicetidy::python {

/// Adds the models to the modules of a project, whose files call them by the names of the libraries.
void addModels(Modules &modules);
/// The models as units, which belong to every program.
std::vector<Unit> lowerModels();

} // namespace devicetidy::python
