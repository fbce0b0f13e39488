//===- Words.h - the words for LibTorch's functions -------------*- C++ -*-===//
//
// What each word of a row does is written beside its function, in the file named here.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/solve/engine/Library.h"

namespace devicetidy {

Words archiveWords();          ///< Archives.cpp: what is saved and loaded
Words autogradFunctionWords(); ///< AutogradFunctions.cpp: torch::autograd::Function
Words dataWords();             ///< Data.cpp: packed sequences, lists of parameters, calls without an effect
Words datasetWords();          ///< Datasets.cpp: datasets, transforms and loaders of torch::data
Words deviceWords();           ///< Devices.cpp: devices, options, guards, the current device
Words handleWords();           ///< Handles.cpp: streams, events and communicators
Words deviceValueWords();      ///< DeviceValues.cpp: questions about devices and values made from them
Words gradientWords();         ///< Gradients.cpp: backward(), step() and zero_grad()
Words hostAccessWords();       ///< HostAccess.cpp: pointers into the memory of tensors
Words kernelWords();           ///< Kernels.cpp: functions registered with the dispatcher
Words launchWords();           ///< Launches.cpp: kernels launched by functions of CUDA
Words legacyTypeWords();       ///< LegacyTypes.cpp: at::DeprecatedTypeProperties
Words logCheckWords();         ///< LogChecks.cpp: CHECK_EQ and its like
Words optimizerWords();        ///< OptimizerState.cpp: optimizers and what they keep
Words tensorWords();           ///< Tensors.cpp: ATen operators and factories
Words tensorMethodWords();     ///< TensorMethods.cpp: methods of tensors that are no operators
Words moduleWords(); ///< Modules.cpp: modules made, moved, run, held; their options; scripted modules
Words containerModuleWords(); ///< ContainerModules.cpp: Sequential, ModuleList, ParameterList and their like
Words registrationWords();    ///< Registration.cpp: what a module registers, and lists of it

} // namespace devicetidy
