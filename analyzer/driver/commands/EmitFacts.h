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

/// Writes the units to the files of --emit-facts and --depfile.
///
/// With text output, errors in the code decide the exit code. With a file, this works like a compiler: when
/// something could be read, errors are recorded, and --link reports them with its exit code; otherwise there
/// is no file, not even that of an earlier run.
ExitCode emitFacts(std::vector<Unit> units, const std::vector<Failure> &failures, const ShardMark &shard,
                   const Options &options, const ProjectFiles &project);

} // namespace devicetidy::driver
