//===- Present.h - an analysis in the terms of the protocol -----*- C++ -*-===//
//
// Converts findings and placements to diagnostics and other values of the protocol, file by file.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/lsp/Analysis.h"
#include "analyzer/lsp/FileReport.h"
#include "analyzer/lsp/Settings.h"

#include <map>
#include <string>

namespace devicetidy::lsp {

/// Reports by file.
using Reports = std::map<std::string, ReportPointer>;

/// The URI of a file: as the editor wrote it where the file is open.
std::string uriOf(const std::string &file, const DocumentMap &documents);

/// Converts an analysis of `units`: a report for each document that is `shown`, and for each header of
/// the project that has findings and is not open. `documents` are all that are open.
Reports present(const Analysis &analysis, const ProjectUnits &units, const DocumentMap &documents,
                const std::set<Name> &shown, const driver::FileSettings &fileSettings,
                const Settings &settings);

} // namespace devicetidy::lsp
