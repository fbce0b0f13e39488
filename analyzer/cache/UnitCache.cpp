#include "analyzer/cache/UnitCache.h"

#include "analyzer/facts/Binary.h"

#include <algorithm>
#include <cstdlib>

namespace devicetidy::cache {
namespace {

// A set that leaves more than this part of a unit's third-party files uncovered is not worth referring to.
constexpr std::size_t uncoveredPart = 8;

bool isSubset(const std::vector<InputFile> &part, const std::vector<InputFile> &all) {
  const auto isSame = [](const InputFile &a, const InputFile &b) {
    return a.digest == b.digest && a.isSource == b.isSource;
  };
  auto at = all.begin();
  for (const InputFile &file : part) {
    at = std::lower_bound(at, all.end(), file);
    if (at == all.end() || at->path != file.path || !isSame(*at, file))
      return false;
  }
  return true;
}

std::vector<std::string> allPaths(const std::vector<AbsentFiles> &absent) {
  std::vector<std::string> paths;
  for (const AbsentFiles &each : absent)
    paths.insert(paths.end(), each.paths.begin(), each.paths.end());
  std::sort(paths.begin(), paths.end());
  return paths;
}

/// Splits what lies outside the project from the rest.
std::pair<Inputs, Inputs> splitThirdParty(Inputs all, const IsProjectFile &isProject) {
  Inputs own, other;
  for (InputFile &file : all.files)
    (file.isProject ? own : other).files.push_back(file);
  for (AbsentFiles &each : all.absent) {
    AbsentFiles parts[2] = {{each.directory, each.stamp, {}}, {each.directory, each.stamp, {}}};
    for (std::string &path : each.paths)
      parts[isProject(path) ? 0 : 1].paths.push_back(std::move(path));
    if (!parts[0].paths.empty())
      own.absent.push_back(std::move(parts[0]));
    if (!parts[1].paths.empty())
      other.absent.push_back(std::move(parts[1]));
  }
  own.directories = std::move(all.directories);
  return {std::move(own), std::move(other)};
}

void append(Inputs &to, Inputs from) {
  to.files.insert(to.files.end(), from.files.begin(), from.files.end());
  to.absent.insert(to.absent.end(), std::make_move_iterator(from.absent.begin()),
                   std::make_move_iterator(from.absent.end()));
}

std::string factsOf(const Unit &unit) {
  Unit copy = unit;
  copy.files.clear();   // they are among the inputs
  copy.objects.clear(); // no property of the parse
  return writeBinary({std::move(copy)});
}

} // namespace

UnitCache::UnitCache(BlobStore &store, FileStates &states, IsProjectFile isProject)
    : store(store), states(states), isProject(std::move(isProject)) {}

Digest UnitCache::key(const std::string &directory, const std::string &file,
                      const std::vector<std::string> &arguments) {
  DigestBuilder builder;
  builder.add(toolDigest()).add(directory).add(file).add(std::uint64_t{arguments.size()});
  for (const std::string &argument : arguments)
    builder.add(argument);
  // What clang's driver takes from the environment when it looks for headers.
  for (const char *name :
       {"CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "COMPILER_PATH", "CCC_OVERRIDE_OPTIONS"}) {
    const char *value = std::getenv(name);
    builder.add(value ? std::string_view(value) : std::string_view());
  }
  return builder.finish();
}

std::optional<CachedUnit> UnitCache::find(const Digest &key) {
  const std::optional<std::string> bytes = store.read("units", key);
  if (!bytes)
    return std::nullopt;
  ByteReader reader(*bytes);
  SetPointer set;
  if (reader.number() != 0) {
    set = openSet(reader.digest());
    if (!set || set->freshness == Freshness::Stale)
      return std::nullopt;
  }
  std::optional<Inputs> own = Inputs::read(reader);
  const std::string_view facts = reader.text();
  if (!own || !reader.ok)
    return std::nullopt;
  const Freshness freshness = own->check(states, isProject);
  if (freshness == Freshness::Stale)
    return std::nullopt;
  std::string error;
  std::optional<std::vector<Unit>> units = readBinary(facts, error);
  if (!units || units->size() != 1)
    return std::nullopt;

  CachedUnit result{std::move(units->front()), digestOf(facts)};
  if (freshness == Freshness::Touched) {
    own->renew(states);
    writeEntry(key, set.get(), *own, facts);
  }
  std::vector<Name> sources;
  for (const InputFile &file : own->files)
    if (file.isSource)
      sources.push_back(file.path);
  if (set)
    std::merge(sources.begin(), sources.end(), set->sources.begin(), set->sources.end(),
               std::back_inserter(result.unit.files));
  else
    result.unit.files = std::move(sources);
  return result;
}

Digest UnitCache::keep(const Digest &key, const Unit &unit, const FileTrace &trace) {
  const std::string facts = factsOf(unit);
  const Digest digest = digestOf(facts);
  std::optional<Inputs> inputs = makeInputs(trace, unit.files, states, isProject);
  if (!inputs)
    return digest;
  auto [own, other] = splitThirdParty(std::move(*inputs), isProject);
  const SetPointer set = pickSet(other);
  if (set)
    other = without(other, *set);
  append(own, std::move(other));
  std::sort(own.files.begin(), own.files.end());
  writeEntry(key, set.get(), own, facts);
  return digest;
}

void UnitCache::writeEntry(const Digest &key, const InputSet *set, const Inputs &own,
                           std::string_view facts) {
  ByteWriter writer;
  writer.number(set ? 1 : 0);
  if (set)
    writer.digest(set->name);
  own.write(writer);
  writer.text(facts);
  store.write("units", key, writer.bytes);
}

UnitCache::SetPointer UnitCache::describe(const Digest &name, Inputs inputs) const {
  auto set = std::make_shared<InputSet>();
  set->name = name;
  set->inputs = std::move(inputs);
  set->absentPaths = allPaths(set->inputs.absent);
  for (const InputFile &file : set->inputs.files)
    if (file.isSource)
      set->sources.push_back(file.path);
  return set;
}

UnitCache::SetPointer UnitCache::openSet(const Digest &name) {
  std::lock_guard<std::mutex> lock(mutex); // one thread checks, the others wait for its answer
  if (const auto known = sets.find(name); known != sets.end())
    return known->second;
  SetPointer &entry = sets[name];
  if (const std::optional<std::string> bytes = store.read("sets", name)) {
    ByteReader reader(*bytes);
    if (std::optional<Inputs> inputs = Inputs::read(reader)) {
      auto set = std::const_pointer_cast<InputSet>(describe(name, std::move(*inputs)));
      set->freshness = set->inputs.check(states, isProject);
      if (set->freshness == Freshness::Touched) {
        set->inputs.renew(states);
        ByteWriter writer;
        set->inputs.write(writer);
        store.write("sets", name, writer.bytes);
      }
      entry = set;
    }
  }
  return entry;
}

UnitCache::SetPointer UnitCache::pickSet(const Inputs &thirdParty) {
  constexpr std::size_t fewFiles = 64;
  if (thirdParty.files.size() < fewFiles)
    return nullptr;
  const std::vector<std::string> absent = allPaths(thirdParty.absent);
  std::lock_guard<std::mutex> lock(mutex);
  SetPointer best;
  for (const auto &[name, set] : sets) {
    if (!set || set->freshness == Freshness::Stale ||
        (best && best->inputs.files.size() >= set->inputs.files.size()))
      continue;
    if (isSubset(set->inputs.files, thirdParty.files) &&
        std::includes(absent.begin(), absent.end(), set->absentPaths.begin(), set->absentPaths.end()))
      best = set;
  }
  if (best && thirdParty.files.size() - best->inputs.files.size() <= thirdParty.files.size() / uncoveredPart)
    return best;

  // Named by what it is about, not by stamps: other runs and processes find the same list under the same
  // name.
  DigestBuilder builder;
  builder.add(toolDigest());
  for (const InputFile &file : thirdParty.files)
    builder.add(file.path.view()).add(file.digest).add(std::uint64_t{file.isSource});
  for (const std::string &path : absent)
    builder.add(path);
  auto set = std::const_pointer_cast<InputSet>(describe(builder.finish(), thirdParty));
  set->freshness = Freshness::Fresh;
  ByteWriter writer;
  set->inputs.write(writer);
  store.write("sets", set->name, writer.bytes);
  sets[set->name] = set;
  return set;
}

Inputs UnitCache::without(const Inputs &all, const InputSet &set) {
  Inputs rest;
  std::set_difference(all.files.begin(), all.files.end(), set.inputs.files.begin(), set.inputs.files.end(),
                      std::back_inserter(rest.files));
  for (const AbsentFiles &each : all.absent) {
    AbsentFiles left{each.directory, each.stamp, {}};
    for (const std::string &path : each.paths)
      if (!std::binary_search(set.absentPaths.begin(), set.absentPaths.end(), path))
        left.paths.push_back(path);
    if (!left.paths.empty())
      rest.absent.push_back(std::move(left));
  }
  return rest;
}

} // namespace devicetidy::cache
