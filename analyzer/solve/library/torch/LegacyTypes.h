//===- LegacyTypes.h - at::DeprecatedTypeProperties -------------*- C++ -*-===//
//
// What `x.type()` and torch::CUDA(kFloat) return: a backend and a scalar type. It is followed as options that
// name the backend's device. Source: ATen/core/DeprecatedTypeProperties.h.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/solve/engine/Machine.h"

namespace devicetidy {

/// The device of a c10::Backend; unknown when `backend` is not known, or neither CPU nor CUDA.
Placement deviceOfBackend(const Call &call, const Value &backend);

/// type() of a tensor on `placement`.
Value legacyTypeOf(Placement placement, const History &history);

} // namespace devicetidy
