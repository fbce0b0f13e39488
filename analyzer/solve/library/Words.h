//===- Words.h - every word that models are made of -------------*- C++ -*-===//
#pragma once

#include "analyzer/solve/engine/Library.h"

namespace devicetidy {

/// The words of all rooms of the library.
const Library &library();

} // namespace devicetidy
