//===- Lower.h - a Python module as a unit ----------------------*- C++ -*-===//
#pragma once

#include "analyzer/facts/Program.h"
#include "analyzer/python/Modules.h"

namespace devicetidy::python {

/// Lowers a module whose imports are resolved.
Unit lower(const Module &module);

} // namespace devicetidy::python
