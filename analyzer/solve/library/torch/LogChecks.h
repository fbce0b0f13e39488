//===- LogChecks.h - what CHECK, CHECK_EQ and TORCH_CHECK_EQ expand to ---*- C++ -*-===//
//
// PyTorch's own logging macros are those of glog, or of c10 where it is built without glog.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/solve/engine/Machine.h"

namespace devicetidy {

/// glog's functions that compare two values; nothing for other calls.
std::optional<Outcomes> modelLogChecks(const Call &call);

/// Is the object that `call` constructs a message that ends the program? `args` are its constructor's.
bool isFatalMessage(const Call &call, const std::vector<Value> &args);

} // namespace devicetidy
