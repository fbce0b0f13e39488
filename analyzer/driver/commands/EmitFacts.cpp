#include "analyzer/driver/commands/EmitFacts.h"

#include "analyzer/cache/FileStates.h"
#include "analyzer/driver/commands/DepFile.h"
#include "analyzer/driver/support/Output.h"
#include "analyzer/driver/support/WholeFile.h"
#include "analyzer/facts/Binary.h"
#include "analyzer/facts/Text.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

#include <set>

namespace devicetidy::driver {
namespace {

/// The units without the thousands of third-party headers they read, and their project files as they are.
FactsFile toFile(std::vector<Unit> units, const ShardMark &shard, const ProjectFiles &project) {
  FactsFile file;
  for (const std::string &root : project.projectRoots())
    file.roots.emplace_back(root);
  std::set<Name> sources;
  for (Unit &unit : units) {
    llvm::erase_if(unit.files, [&](Name each) { return !project.isProject(each.str()); });
    sources.insert(unit.files.begin(), unit.files.end());
  }
  cache::FileStates states;
  for (Name source : sources) {
    const cache::Digest digest = states.digest(source).value_or(cache::Digest());
    file.sources.push_back({source, digest.high, digest.low});
  }
  file.units = std::move(units);
  file.shard = shard;
  return file;
}

} // namespace

ExitCode emitFacts(std::vector<Unit> units, const std::vector<Failure> &failures, const ShardMark &shard,
                   const Options &options, const ProjectFiles &project) {
  const std::string failed = describeFailures(failures, units.size());
  if (options.emitFacts == "-") {
    std::string text;
    for (const Unit &unit : units)
      text += writeText(unit);
    const bool isWritten = writeOutput("-", text);
    llvm::errs() << failed;
    return !isWritten ? ExitCode::Usage : failures.empty() ? ExitCode::Clean : ExitCode::ParseFailed;
  }
  llvm::errs() << failed;
  if (!units.empty() &&
      llvm::all_of(units, [](const Unit &unit) { return unit.hasFatalError && !unit.isCuda; })) {
    if (llvm::sys::fs::is_regular_file(options.emitFacts))
      llvm::sys::fs::remove(options.emitFacts);
    return ExitCode::ParseFailed;
  }
  // The rules go first: a build that finds facts without them would take the facts for made from nothing.
  std::string problem;
  if (!options.depfile.empty())
    problem = writeDependencyRules(options.depfile, options.emitFacts, units);
  if (problem.empty())
    problem = writeWholeFile(options.emitFacts, writeFacts(toFile(std::move(units), shard, project)));
  if (problem.empty())
    return ExitCode::Clean;
  complain(problem);
  return ExitCode::Usage;
}

} // namespace devicetidy::driver
