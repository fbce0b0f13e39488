//===- Words.h - the words for what Python asks of values -------*- C++ -*-===//
#pragma once

#include "analyzer/solve/engine/Library.h"

namespace devicetidy {

Words pythonCallWords();       ///< Calls.cpp: calls of values, of methods, of libraries
Words pythonDefaultWords();    ///< Defaults.cpp: parameters that nothing was given for
Words pythonAttributeWords();  ///< Attributes.cpp: attributes read and set
Words pythonOperatorWords();   ///< Operators.cpp: operators, texts
Words pythonComparisonWords(); ///< Comparisons.cpp: comparisons, truth
Words pythonDeviceWords();     ///< Devices.cpp: what `with` makes current or the default
Words pythonOpenWords();       ///< OpenValues.cpp: what nobody says the type of
Words pythonContainerWords();  ///< Containers.cpp: lists, tuples, dictionaries; what is iterated

} // namespace devicetidy
