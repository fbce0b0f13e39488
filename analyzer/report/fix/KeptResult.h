//===- KeptResult.h - how to keep the result of a move ----------*- C++ -*-===//
//
// The advice for a discarded move: what to assign its result to.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/report/finding/Finding.h"
#include "analyzer/report/source/Source.h"

#include <string>

namespace devicetidy {

/// What the advice for a discarded move says.
struct KeptResult {
  std::string key;  ///< the note of the check that says it; empty: its `fix`
  std::string code; ///< for {fix}
};

/// How to keep the result of the move at `finding`, which has the fields "tensor" and "method": it is
/// assigned to the tensor, if that can be assigned to and is read later. A parameter is moved with its
/// module.
KeptResult keptResult(const Finding &finding, SourceCache &sources);

} // namespace devicetidy
