//===- EmitFacts.h - writes units to a facts file ---------------*- C++ -*-===//
//
// The command --emit-facts.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/driver/commands/Run.h"
#include "analyzer/driver/commands/Summary.h"
#include "analyzer/driver/input/ProjectFiles.h"
#include "analyzer/driver/options/Options.h"
#include "analyzer/facts/FactsFile.h"

#include <vector>

namespace devicetidy::driver {

/// Writes the units where --emit-facts and --depfile say.
///
/// As text, errors in the code make the exit code. As a file, this is a step like a compiler's: when
/// something could be read, errors are recorded, for --link to report with its exit code; when nothing could,
/// there is no file, not even that of an earlier run.
ExitCode emitFacts(std::vector<Unit> units, const std::vector<Failure> &failures, const ShardMark &shard,
                   const Options &options, const ProjectFiles &project);

} // namespace devicetidy::driver
