//===- Words.h - the words for values that carry options --------*- C++ -*-===//
//
// What each word of a row does is written beside its function, in the file named here.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/solve/engine/Library.h"

namespace devicetidy {

Words optionWords(); ///< Config.cpp: option classes that have no model
Words jsonWords();   ///< Json.cpp: nlohmann::json
Words pythonWords(); ///< Python.cpp: pybind11 and Python's C interface

} // namespace devicetidy
