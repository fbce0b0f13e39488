#include "analyzer/python/Reader.h"

#include "analyzer/python/Lower.h"
#include "analyzer/python/Models.h"

#include <sys/stat.h>

#include <algorithm>
#include <set>
#include <thread>

namespace devicetidy::python {
namespace {

std::optional<std::array<std::int64_t, 3>> stampOf(const std::string &path) {
  struct stat found;
  if (::stat(path.c_str(), &found) != 0)
    return std::nullopt;
  return std::array<std::int64_t, 3>{
      static_cast<std::int64_t>(found.st_size), static_cast<std::int64_t>(found.st_ino),
      static_cast<std::int64_t>(found.st_mtim.tv_sec) * 1'000'000'000 + found.st_mtim.tv_nsec};
}

Source sourceOf(const File &file) {
  Source source;
  source.path = file.path;
  source.isBroken = !file.module();
  if (const auto stamp = file.stamp())
    source.trace.reads = {{Name(file.path), static_cast<std::uint64_t>((*stamp)[0]),
                           static_cast<std::uint64_t>((*stamp)[1]), (*stamp)[2]}};
  if (source.isBroken)
    return source;
  source.imports = Modules::importsOf(file, source.trace.absent);
  for (std::vector<std::string> *each : {&source.imports, &source.trace.absent}) {
    std::sort(each->begin(), each->end());
    each->erase(std::unique(each->begin(), each->end()), each->end());
  }
  return source;
}

} // namespace

bool Reader::isCurrent(const std::string &path, const Request &request) const {
  const auto tree = trees.find(path);
  if (tree == trees.end())
    return false;
  if (const auto given = request.texts.find(path); given != request.texts.end())
    return tree->second.isGiven && tree->second.text == given->second;
  const auto stamp = tree->second.file->stamp();
  return stamp && stamp == stampOf(path);
}

bool Reader::parseMissing(const std::vector<std::string> &paths, const Request &request, std::string &error) {
  std::vector<std::string> missing;
  for (const std::string &path : paths)
    if (!isCurrent(path, request))
      missing.push_back(path);
  if (missing.empty())
    return true;
  constexpr std::size_t fewest = 16; // an interpreter takes as long to start as to read so many
  const std::size_t count = std::clamp<std::size_t>(missing.size() / fewest, 1, std::max(request.jobs, 1u));
  std::vector<std::vector<std::string>> shares(count);
  for (std::size_t i = 0; i < missing.size(); ++i)
    shares[i % count].push_back(missing[i]);
  std::vector<std::shared_ptr<Parsed>> parsed(count);
  std::vector<std::string> errors(count);
  std::vector<char> isRead(count);
  const auto parseShare = [&](std::size_t i) {
    parsed[i] = std::make_shared<Parsed>();
    isRead[i] = parse(request.interpreter, shares[i], request.texts, request.stop, *parsed[i], errors[i]);
  };
  std::vector<std::thread> others;
  for (std::size_t i = 1; i < count; ++i)
    others.emplace_back(parseShare, i);
  parseShare(0);
  for (std::thread &each : others)
    each.join();
  for (std::size_t i = 0; i < count; ++i) {
    if (!isRead[i]) {
      error = errors[i];
      return false;
    }
    keep(parsed[i], request);
  }
  return true;
}

void Reader::keep(const std::shared_ptr<Parsed> &parsed, const Request &request) {
  for (const auto &file : parsed->files) {
    Tree &tree = trees[file->path];
    tree.file = std::shared_ptr<const File>(parsed, file.get());
    const auto given = request.texts.find(file->path);
    tree.isGiven = given != request.texts.end();
    tree.text = tree.isGiven ? given->second : std::string();
  }
}

bool Reader::read(const Request &request, std::string &error) {
  all.clear();
  modules = {};
  std::set<std::string> seen;
  std::vector<std::string> wanted = request.files;
  while (!wanted.empty()) {
    std::vector<std::string> fresh;
    for (const std::string &path : wanted)
      if (seen.insert(path).second)
        fresh.push_back(path);
    if (!parseMissing(fresh, request, error))
      return false;
    wanted.clear();
    for (const std::string &path : fresh) {
      const File &file = *trees[path].file;
      const Source &source = all.emplace_back(sourceOf(file));
      if (!source.isBroken)
        modules.add(file);
      wanted.insert(wanted.end(), source.imports.begin(), source.imports.end());
    }
  }
  addModels(modules);
  modules.resolve();
  return true;
}

Unit Reader::lower(std::size_t source) const {
  const std::string &path = all[source].path;
  if (!all[source].isBroken) {
    Unit unit = python::lower(modules.all().at(path));
    for (const std::string &each : all[source].imports)
      unit.imports.emplace_back(each);
    return unit;
  }
  Unit broken;
  broken.mainFile = path;
  broken.joining = Joining::Imported;
  broken.files = {Name(path)};
  broken.parseErrors = {trees.at(path).file->error()};
  broken.hasFatalError = true;
  return broken;
}

} // namespace devicetidy::python
