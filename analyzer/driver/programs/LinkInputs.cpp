#include "analyzer/driver/programs/LinkInputs.h"

#include "analyzer/cache/FileStates.h"
#include "analyzer/driver/programs/Programs.h"
#include "analyzer/driver/support/Parallel.h"
#include "analyzer/facts/Binary.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/TimeProfiler.h"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <tuple>

namespace devicetidy::driver {
namespace {

using cache::Digest;

/// A facts file as it was named, and what is in it or why it cannot be used.
struct OpenedFile {
  std::string name;
  std::optional<FactsFile> content;
  std::string problem;
};

OpenedFile open(const std::string &name) {
  const llvm::TimeTraceScope scope("load facts", name);
  OpenedFile file{name, {}, {}};
  if (!llvm::sys::fs::exists(name)) {
    file.problem = "no such file: " + name;
    return file;
  }
  if (llvm::sys::fs::is_directory(name)) {
    file.problem = name + " is a directory; name the facts files in it";
    return file;
  }
  const auto bytes = llvm::MemoryBuffer::getFile(name, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!bytes) {
    file.problem = "cannot read " + name + ": " + bytes.getError().message();
    return file;
  }
  std::string reason;
  const llvm::StringRef content = (*bytes)->getBuffer();
  file.content = readFacts({content.data(), content.size()}, reason);
  if (!file.content)
    file.problem = fmt::format("{} {}; facts are written with --emit-facts=FILE", name, reason);
  return file;
}

/// Sees to it that no part of a list of units is missing.
std::string missingShard(const std::vector<OpenedFile> &files) {
  using List = std::tuple<std::uint32_t, std::uint64_t, std::uint64_t, std::uint64_t>;
  std::map<List, std::map<std::uint32_t, std::string>> lists; // list -> shard -> file
  for (const OpenedFile &file : files)
    if (const ShardMark &mark = file.content->shard; mark.count)
      lists[{mark.count, mark.total, mark.listHigh, mark.listLow}].emplace(mark.index, file.name);
  for (const auto &[list, shards] : lists) {
    const std::uint32_t count = std::get<0>(list);
    for (std::uint32_t index = 1; index <= count; ++index) {
      if (shards.count(index))
        continue;
      std::string text =
          fmt::format("shard {}/{} is missing beside {}, and what is found in a part of a program "
                      "may be wrong for the whole; name the facts of all shards",
                      index, count, shards.begin()->second);
      if (lists.size() > 1)
        text += fmt::format(
            "\n  the facts come from {} different lists of translation units: was each shard made "
            "with the same N, from the same compile database, in the same folder?",
            lists.size());
      return text;
    }
  }
  return {};
}

/// The units of all files. A unit that another file holds already is the same unit, not a second one; a file
/// that holds the same unit twice was written by a run that means it.
void takeUnits(std::vector<OpenedFile> &files, LinkInputs &result) {
  struct Holder {
    std::size_t file;
    std::string bytes;
  };
  std::map<Name, std::vector<std::size_t>> filesOf; // main file -> facts files
  for (std::size_t i = 0; i < files.size(); ++i)
    for (const Unit &unit : files[i].content->units)
      if (auto &holders = filesOf[unit.mainFile]; holders.empty() || holders.back() != i)
        holders.push_back(i);
  std::map<Name, std::vector<Holder>> known;
  for (std::size_t i = 0; i < files.size(); ++i)
    for (Unit &unit : files[i].content->units) {
      if (filesOf[unit.mainFile].size() > 1) {
        auto &holders = known[unit.mainFile];
        std::string bytes = unitBytes(unit);
        const auto same =
            llvm::find_if(holders, [&](const Holder &each) { return each.file != i && each.bytes == bytes; });
        if (same != holders.end()) {
          result.remarks.push_back(fmt::format("{} is in {} and in {}; it is linked once",
                                               unit.mainFile.str(), files[same->file].name, files[i].name));
          continue;
        }
        holders.push_back({i, std::move(bytes)});
      }
      result.units.push_back(std::move(unit));
    }
}

void takeRoots(const std::vector<OpenedFile> &files, LinkInputs &result) {
  for (const OpenedFile &file : files)
    for (Name root : file.content->roots)
      if (!llvm::is_contained(result.roots, root.str()))
        result.roots.push_back(root.str());
}

/// Compares what was read with what is on disk now.
void checkSources(const std::vector<OpenedFile> &files, LinkInputs &result) {
  std::map<Name, std::pair<Digest, const std::string *>>
      read; // source -> its digest, and the facts file that has it
  cache::FileStates states;
  for (const OpenedFile &file : files)
    for (const SourceState &source : file.content->sources) {
      const Digest digest{source.digestHigh, source.digestLow};
      const auto [entry, isNew] = read.try_emplace(source.path, digest, &file.name);
      if (!isNew && entry->second.first != digest && result.changedFiles.insert(source.path).second)
        result.remarks.push_back(
            fmt::format("{} was not the same when {} and {} were written; write the older "
                        "one again",
                        source.path.str(), *entry->second.second, file.name));
      if (isNew && states.digest(source.path) != digest)
        result.changedFiles.insert(source.path);
    }
  if (!result.changedFiles.empty())
    result.remarks.push_back(fmt::format(
        "{}{} not what {} when the facts were written: findings are as of then, without source lines, fixes "
        "and "
        "the NOLINT comments in what changed",
        result.changedFiles.begin()->str(),
        result.changedFiles.size() == 1 ? std::string(" is")
                                        : fmt::format(" and {} more are", result.changedFiles.size() - 1),
        result.changedFiles.size() == 1 ? "it was" : "they were"));
}

} // namespace

bool readLinkInputs(const std::vector<std::string> &names, unsigned jobs, LinkInputs &result,
                    std::string &error) {
  std::vector<OpenedFile> files(names.size());
  inParallel(Task::LoadFacts, names.size(), jobs, [&](std::size_t i) { files[i] = open(names[i]); });
  for (const OpenedFile &file : files)
    if (!file.content) {
      error = file.problem;
      return false;
    }
  error = missingShard(files);
  if (!error.empty())
    return false;
  // Which file was named first makes no difference.
  llvm::stable_sort(files, [](const OpenedFile &a, const OpenedFile &b) { return a.name < b.name; });
  checkSources(files, result);
  takeRoots(files, result);
  takeUnits(files, result);
  if (result.units.empty()) {
    error = "nothing to analyse: the facts files hold no translation unit";
    return false;
  }
  return true;
}

} // namespace devicetidy::driver
