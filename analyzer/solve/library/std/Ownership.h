//===- Ownership.h - who keeps an object alive ------------------*- C++ -*-===//
#pragma once

#include "analyzer/solve/engine/Machine.h"

namespace devicetidy {

/// expired() and lock() of a weak pointer, use_count() of a shared one: what the pointers that can be seen
/// say, unknown where there may be others.
Outcomes modelOwnership(Call &call, std::string_view method);

} // namespace devicetidy
