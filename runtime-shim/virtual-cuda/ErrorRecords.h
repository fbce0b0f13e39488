//===- ErrorRecords.h - records of device errors ----------------*- C++ -*-===//
//
// Records of the device errors this process raises, for the launcher.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "Origins.h"

#include <string>

namespace vcuda {

/// None of these does anything when no records are asked for.
void recordInvalidOrdinal(const std::string &text);
void recordOutOfMemory(const std::string &text);

/// Host code touched memory of a tensor on cuda:`device`; -1: of none that is in use.
void recordHostAccess(const std::string &text, int device, const c10::optional<Origin> &origin);

/// An error that LibTorch raises: recorded when it says that tensors are on different devices. `function`
/// names the place of the check, for errors outside of operators.
void recordIfMixedDevices(const std::string &text, const char *function);

} // namespace vcuda
