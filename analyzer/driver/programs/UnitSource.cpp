#include "analyzer/driver/programs/UnitSource.h"

#include "analyzer/driver/support/Output.h"
#include "analyzer/driver/support/Paths.h"
#include "analyzer/driver/support/TemporaryDirectory.h"

namespace devicetidy::driver {

namespace {

/// Empty when there is none: some build machines have no home.
std::string cacheDirectory(const Options &options) {
  return options.cacheDirectory.empty() ? cache::defaultCacheDirectory()
                                        : absolutePath(options.cacheDirectory);
}

} // namespace

std::unique_ptr<cache::BlobStore> openCache(const Options &options) {
  const std::string directory = cacheDirectory(options);
  return directory.empty() || options.noCache ? nullptr : std::make_unique<cache::BlobStore>(directory);
}

std::string clearCache(const Options &options) {
  std::string error;
  const std::string directory = cacheDirectory(options);
  if (directory.empty() || cache::BlobStore(directory).clear(error))
    return {};
  return "--clear-cache: " + error;
}

UnitSource::UnitSource(const Options &options) : options(options), store(openCache(options)) {
  if (const std::string place = store ? std::string() : makeTemporaryDirectory(); !place.empty())
    temporary = std::make_unique<cache::BlobStore>(place);
}

UnitSource::~UnitSource() {
  if (temporary)
    removeTemporaryDirectory(temporary->root());
}

UnitSet UnitSource::read(const CommandSet &commands, const ProjectFiles &project) {
  if (store)
    units = std::make_unique<cache::UnitCache>(
        *store, states, [&project](const std::string &path) { return project.isProject(path); });
  const ReadOptions reading{options.jobs, showsProgress(options.quiet), units.get(),
                            store ? store.get() : temporary.get(), &states};
  std::vector<CompileCommand> all = commands.commands;
  if (options.wholeProgram)
    for (const CompileCommand &command : commands.others)
      if (project.isOwnPlace(command.file))
        all.push_back(command);
  UnitSet result = readUnits(all, project, reading);
  result.asked = all.size();
  result.total = commands.commands.size();
  for (const CompileCommand &command : commands.others)
    result.total += project.isOwnPlace(command.file) ? 1 : 0;
  if (!options.wholeProgram && units && options.emitFacts.empty()) {
    std::vector<CompileCommand> others;
    for (const CompileCommand &command : commands.others)
      if (project.isOwnPlace(command.file))
        others.push_back(command);
    UnitSet context = readCachedUnits(others, reading);
    result.counts.fromCache += context.counts.fromCache;
    std::move(context.units.begin(), context.units.end(), std::back_inserter(result.units));
    result.facts.insert(result.facts.end(), context.facts.begin(), context.facts.end());
  }
  return result;
}

std::string UnitSource::finish() {
  if (!store)
    return {};
  store->trim();
  return store->problem();
}

} // namespace devicetidy::driver
