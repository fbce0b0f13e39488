#include "analyzer/cache/ModuleCache.h"

#include "analyzer/facts/Binary.h"

#include <algorithm>
#include <set>

namespace devicetidy::cache {
namespace {

constexpr std::string_view kind = "modules";

bool isProject(const std::string &) { return true; }

/// All that `start` leads to, in the order of their paths; false when one of them is unknown.
template <typename Entries>
bool reach(const Entries &entries, const std::string &start, std::set<std::string> &reached) {
  std::vector<std::string> open = {start};
  while (!open.empty()) {
    const std::string path = std::move(open.back());
    open.pop_back();
    if (!reached.insert(path).second)
      continue;
    const auto entry = entries.find(path);
    if (entry == entries.end())
      return false;
    open.insert(open.end(), entry->second.imports.begin(), entry->second.imports.end());
  }
  return true;
}

} // namespace

Digest ModuleCache::key(const std::string &path) const {
  return DigestBuilder().add(toolDigest()).add(reader).add(path).add(around(path)).finish();
}

bool ModuleCache::load(const std::string &path, Entry &entry, Freshness &freshness) {
  const std::optional<std::string> bytes = store.read(kind, key(path));
  if (!bytes)
    return false;
  ByteReader from(*bytes);
  std::optional<Inputs> inputs = Inputs::read(from);
  entry.imports.resize(from.count());
  for (std::string &each : entry.imports)
    each = from.text();
  entry.closure = from.digest();
  entry.facts = from.text();
  if (!inputs || !from.ok || inputs->files.size() != 1)
    return false;
  entry.inputs = std::move(*inputs);
  freshness = entry.inputs.check(states, isProject);
  return freshness != Freshness::Stale;
}

void ModuleCache::write(const std::string &path, const Entry &entry) {
  ByteWriter writer;
  entry.inputs.write(writer);
  writer.number(entry.imports.size());
  for (const std::string &each : entry.imports)
    writer.text(each);
  writer.digest(entry.closure);
  writer.text(entry.facts);
  store.write(kind, key(path), writer.bytes);
}

std::map<std::string, Digest> ModuleCache::closures(const Entries &entries) {
  std::map<std::string, Digest> result;
  for (const auto &[path, entry] : entries) {
    std::set<std::string> reached;
    if (!reach(entries, path, reached))
      continue;
    DigestBuilder builder;
    for (const std::string &each : reached)
      builder.add(each).add(entries.at(each).inputs.files.front().digest);
    result[path] = builder.finish();
  }
  return result;
}

std::map<std::string, CachedModule> ModuleCache::find(const std::vector<std::string> &paths) {
  Entries entries;
  std::set<std::string> touched, seen;
  std::vector<std::string> open = paths;
  while (!open.empty()) {
    const std::string path = std::move(open.back());
    open.pop_back();
    Entry entry;
    Freshness freshness = Freshness::Stale;
    if (!seen.insert(path).second || !load(path, entry, freshness))
      continue;
    open.insert(open.end(), entry.imports.begin(), entry.imports.end());
    if (freshness == Freshness::Touched)
      touched.insert(path);
    entries.emplace(path, std::move(entry));
  }
  std::map<std::string, CachedModule> result;
  for (const auto &[path, closure] : closures(entries)) {
    Entry &entry = entries[path];
    std::string error;
    std::optional<std::vector<Unit>> units;
    if (closure == entry.closure)
      units = readBinary(entry.facts, error);
    if (!units || units->size() != 1)
      continue;
    if (touched.count(path)) {
      entry.inputs.renew(states);
      write(path, entry);
    }
    units->front().files = {Name(path)};
    result[path] = {std::move(units->front()), entry.imports};
  }
  return result;
}

void ModuleCache::keep(const std::vector<ReadModule> &modules) {
  Entries entries;
  for (const ReadModule &module : modules) {
    if (!module.unit)
      continue;
    std::optional<Inputs> inputs = makeInputs(module.trace, {Name(module.path)}, states, isProject);
    if (!inputs || inputs->files.size() != 1)
      continue;
    Unit unit = *module.unit;
    unit.files.clear();
    entries[module.path] = {std::move(*inputs), module.imports, {}, writeBinary({std::move(unit)})};
  }
  for (const auto &[path, closure] : closures(entries)) {
    entries[path].closure = closure;
    write(path, entries[path]);
  }
}

} // namespace devicetidy::cache
