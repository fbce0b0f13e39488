//===- Spread.h - models whose layers are on several devices ----*- C++ -*-===//
#pragma once

#include "analyzer/solve/library/python/Python.h"

namespace devicetidy::python {

inline const Name spreadField("@spread"); ///< of a module that gets what it is called with brought to it

/// Puts the layers of a model onto the GPUs, as `device_map="auto"` does; where its layers are not known, it
/// is anywhere.
void spread(Call &call, Row &row, const Address &model);
/// The same of a module of the program, over devices that somebody outside chooses, where its class says that
/// it may be loaded so (`_no_split_modules`); else false.
bool spreadOverMap(Machine &machine, Row &row, const Address &model);
/// Puts a layer of such a model where it is: a GPU of its own for each `which`.
void placeLayer(Call &call, Row &row, const Address &layer, Term which);
/// What such a module is called with, where the module is.
Given brought(Call &call, Row &row, const Address &module, const Given &given);

/// A value with all tensors in it, moved; modules and loaders move themselves.
Value movedTo(Call &call, Row &row, const Value &value, const Placement &to);

} // namespace devicetidy::python
