//===- Advice.h - what to do about a finding --------------------*- C++ -*-===//
//
// The last note of a finding: what to change, and where. With an expression where one repairs the code, else
// in words, at the place where the mistake was made.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/report/finding/CheckInfo.h"
#include "analyzer/report/finding/Finding.h"
#include "analyzer/report/source/Source.h"

#include <map>
#include <string>

namespace devicetidy {

struct Advice {
  Location where;
  std::string text;
};

/// `fields` are those of the sentences of the check.
Advice adviseOn(const Finding &finding, const CheckInfo &info, std::map<std::string, std::string> fields,
                SourceCache &sources);

} // namespace devicetidy
