//===- Locate.h - adds the code around findings -----------------*- C++ -*-===//
//
// Asks the facts of a program about the code around each finding (solve/questions/Sites.h).
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/report/finding/Finding.h"

#include "analyzer/facts/Program.h"

#include <vector>

namespace devicetidy {

/// Fills in `site` of the findings from index `first` on: those of `program`.
void locate(std::vector<Finding> &findings, std::size_t first, const Program &program);

} // namespace devicetidy
