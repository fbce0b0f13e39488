//===- Words.h - the words for LibTorch's functions -------------*- C++ -*-===//
//
// What each word of a row does is written beside its function, in the file named here.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/solve/engine/Library.h"

namespace devicetidy {

Words deviceWords();      ///< Devices.cpp: devices, options, guards, the current device
Words deviceValueWords(); ///< DeviceValues.cpp: questions about devices and values made from them
Words tensorWords();      ///< Tensors.cpp: ATen operators and factories
Words legacyTypeWords();  ///< LegacyTypes.cpp: at::DeprecatedTypeProperties
Words logCheckWords();    ///< LogChecks.cpp: CHECK_EQ and its like
Words moduleWords();      ///< Modules.cpp: modules made, moved, run, held; their options; scripted modules
Words containerModuleWords(); ///< ContainerModules.cpp: Sequential, ModuleList, ParameterList and their like
Words registrationWords();    ///< Registration.cpp: what a module registers, and lists of it

} // namespace devicetidy
