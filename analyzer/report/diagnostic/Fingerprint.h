//===- Fingerprint.h - recognises findings in later runs --------*- C++ -*-===//
//
// Hashes by which baselines and SARIF recognise a finding when line numbers have changed.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/report/diagnostic/Diagnostic.h"
#include "analyzer/report/source/Source.h"

#include <string>
#include <vector>

namespace devicetidy {

/// Gives each diagnostic a fingerprint: 16 hexadecimal digits made from the check, the file below
/// `sourceRoot`, the enclosing function and the text of the line without white space, then ":" and a number
/// that counts equal ones. Where the mistake was made in another function, the file and the line there count,
/// too. Lines that are added or removed elsewhere, indentation and the place of the checkout change nothing.
void addFingerprints(std::vector<Diagnostic> &diagnostics, const std::string &sourceRoot,
                     SourceCache &sources);

} // namespace devicetidy
