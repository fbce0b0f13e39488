#include "analyzer/driver/programs/ReadUnits.h"

#include "analyzer/driver/programs/Preambles.h"
#include "analyzer/driver/support/Parallel.h"
#include "analyzer/driver/support/Progress.h"
#include "analyzer/frontend/Lower.h"

#include "llvm/Support/TimeProfiler.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <numeric>
#include <thread>

namespace devicetidy::driver {
namespace {

// What one parse of LibTorch's headers takes at most.
constexpr std::uint64_t BytesPerJob = 1u << 30;

/// A unit, and whether an equal parse would give it again.
struct ParsedUnit {
  Unit unit;
  FileTrace trace;
  bool isComplete = true, usedPreamble = false;
};

ParsedUnit parseUnit(const CompileCommand &command, const frontend::LowerOptions &options,
                     const frontend::Preamble *preamble) {
  ParsedUnit result;
  result.isComplete = runGuarded([&] {
    result.unit = frontend::lowerTranslationUnit(command.directory, command.file, command.arguments, options,
                                                 {&result.trace, preamble, &result.usedPreamble});
  });
  Unit &unit = result.unit;
  if (!result.isComplete) {
    unit = {};
    unit.hasFatalError = true;
    unit.parseErrors.push_back(command.file + ":1:1: the analyzer itself failed on this file");
  }
  if (!unit.mainFile)
    unit.mainFile = command.file;
  return result;
}

using Found = std::vector<std::optional<cache::CachedUnit>>;

/// What the cache holds for each command.
Found lookUp(const std::vector<CompileCommand> &commands, const std::vector<cache::Digest> &keys,
             const ReadOptions &options) {
  Found found(commands.size());
  inParallel(Task::LookUpInCache, commands.size(),
             options.jobs ? options.jobs : std::thread::hardware_concurrency(), [&](std::size_t i) {
               const llvm::TimeTraceScope scope("load from cache", commands[i].file);
               found[i] = options.cache->find(keys[i]);
             });
  return found;
}

void setObjects(Unit &unit, const CompileCommand &command) {
  unit.objects.assign(command.objects.begin(), command.objects.end());
}

std::vector<cache::Digest> keysOf(const std::vector<CompileCommand> &commands) {
  std::vector<cache::Digest> keys;
  for (const CompileCommand &command : commands)
    keys.push_back(cache::UnitCache::key(command.directory, command.file, command.arguments));
  return keys;
}

/// Parses the commands with the numbers `missing`.
void parseMissing(const std::vector<CompileCommand> &commands, const std::vector<std::size_t> &missing,
                  const std::vector<cache::Digest> &keys, const ProjectFiles &project,
                  const ReadOptions &options, UnitSet &result) {
  frontend::LowerOptions lowerOptions;
  lowerOptions.isProjectFile = [&project](const std::string &path) { return project.isProject(path); };
  const unsigned jobs = options.jobs ? options.jobs : defaultJobs();
  std::vector<const CompileCommand *> wanted;
  for (std::size_t i : missing)
    wanted.push_back(&commands[i]);
  Progress progress(options.showProgress, "reading", missing.size());
  std::optional<Preambles> preambles;
  std::vector<const frontend::Preamble *> chosen(missing.size());
  if (options.store && options.states) {
    preambles.emplace(*options.store, *options.states, lowerOptions, jobs);
    preambles->onMaking([&progress](bool begins) {
      if (begins)
        progress.prepare("reading the headers that several files include");
    });
    chosen = preambles->choose(wanted);
    result.counts.preamblesMade = preambles->made();
  }
  std::atomic<std::size_t> withPreamble{0}, fallbacks{0};
  inParallel(Task::Parse, missing.size(), jobs, [&](std::size_t which) {
    const std::size_t i = missing[which];
    const llvm::TimeTraceScope scope("read", commands[i].file);
    progress.start(commands[i].file);
    ParsedUnit parsed = parseUnit(commands[i], lowerOptions, chosen[which]);
    if (chosen[which])
      ++(parsed.usedPreamble ? withPreamble : fallbacks);
    if (options.cache && parsed.isComplete)
      result.facts[i] = options.cache->keep(keys[i], parsed.unit, parsed.trace);
    result.units[i] = std::move(parsed.unit);
    progress.finish();
  });
  result.counts.withPreamble = withPreamble;
  result.counts.preambleFallbacks = fallbacks;
}

} // namespace

unsigned defaultJobs() {
  const long pages = sysconf(_SC_PHYS_PAGES), pageSize = sysconf(_SC_PAGESIZE);
  const std::uint64_t memory = pages > 0 && pageSize > 0
                                   ? static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(pageSize)
                                   : BytesPerJob;
  const auto byMemory = static_cast<unsigned>(std::min<std::uint64_t>(memory / BytesPerJob, 1024));
  return std::max(1u, std::min(std::thread::hardware_concurrency(), byMemory));
}

UnitSet readUnits(const std::vector<CompileCommand> &commands, const ProjectFiles &project,
                  const ReadOptions &options) {
  UnitSet result;
  result.units.resize(commands.size());
  result.facts.resize(commands.size());
  std::vector<cache::Digest> keys;
  std::vector<std::size_t> missing;
  if (options.cache) {
    keys = keysOf(commands);
    Found found = lookUp(commands, keys, options);
    for (std::size_t i = 0; i < commands.size(); ++i)
      if (found[i]) {
        result.units[i] = std::move(found[i]->unit);
        result.facts[i] = found[i]->facts;
      } else {
        missing.push_back(i);
      }
  } else {
    missing.resize(commands.size());
    std::iota(missing.begin(), missing.end(), std::size_t{0});
  }
  result.counts.parsed = missing.size();
  result.counts.fromCache = commands.size() - missing.size();

  parseMissing(commands, missing, keys, project, options, result);
  for (std::size_t i = 0; i < commands.size(); ++i)
    setObjects(result.units[i], commands[i]);
  return result;
}

UnitSet readCachedUnits(const std::vector<CompileCommand> &commands, const ReadOptions &options) {
  UnitSet result;
  if (!options.cache)
    return result;
  Found found = lookUp(commands, keysOf(commands), options);
  for (std::size_t i = 0; i < commands.size(); ++i)
    if (found[i]) {
      setObjects(found[i]->unit, commands[i]);
      result.units.push_back(std::move(found[i]->unit));
      result.facts.push_back(found[i]->facts);
    }
  result.counts.fromCache = result.units.size();
  return result;
}

} // namespace devicetidy::driver
