//===- DescribePlaced.h - where a variable lives, in words ------*- C++ -*-===//
//
// Sentences and labels that say on which devices a variable is, for editors.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/solve/solution/Solution.h"

#include <string>
#include <vector>

namespace devicetidy {

/// "'x' is a tensor on cuda:0", for one expression and all devices it was seen on, at least one. Nothing for
/// what lives on none.
std::string describePlaced(const std::vector<PlacedExpression> &devices);

/// The devices alone, as an editor shows them behind a name: "cuda:0", "cpu or cuda".
std::string placedLabel(const std::vector<PlacedExpression> &devices);

/// The step that put the expression on its device: the last move, else where it comes from; null when its
/// history names no place.
const Step *placingStep(const PlacedExpression &expression);

} // namespace devicetidy
