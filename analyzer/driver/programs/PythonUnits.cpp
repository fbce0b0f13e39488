#include "analyzer/driver/programs/PythonUnits.h"

#include "analyzer/cache/ModuleCache.h"
#include "analyzer/driver/programs/UnitSource.h"
#include "analyzer/driver/support/Parallel.h"
#include "analyzer/driver/support/Paths.h"
#include "analyzer/facts/Language.h"
#include "analyzer/python/Launches.h"
#include "analyzer/python/Models.h"
#include "analyzer/python/Modules.h"
#include "analyzer/python/Reader.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <cstdlib>
#include <map>

namespace devicetidy::driver {
namespace {

// Folders whose name begins with a dot hold environments and caches. Links to folders may lead in circles.
void addFolder(const std::string &folder, std::vector<std::string> &files) {
  std::error_code error;
  for (llvm::sys::fs::recursive_directory_iterator at(folder, error, /*follow_symlinks=*/false), end;
       at != end && !error; at.increment(error)) {
    const llvm::StringRef name = llvm::sys::path::filename(at->path());
    if (name.starts_with(".") || name == "__pycache__" || name == "node_modules" || name == "site-packages")
      at.no_push();
    else if (isPython(name.str()) && llvm::sys::fs::is_regular_file(at->path()))
      files.push_back(absolutePath(at->path()));
  }
}

/// What an interpreter makes of a file can change with the interpreter. It is not asked for its version,
/// which takes as long as to read a file.
cache::Digest identityOf(const std::string &interpreter, cache::FileStates &states) {
  cache::DigestBuilder builder;
  builder.add(interpreter);
  if (const auto stamp = states.stamp(Name(interpreter)))
    builder.add(stamp->size).add(stamp->inode).add(static_cast<std::uint64_t>(stamp->modified));
  for (const char *variable : {"PYENV_VERSION", "VIRTUAL_ENV"}) { // `python3` may be a script that asks them
    const char *value = std::getenv(variable);
    builder.add(value ? std::string_view(value) : std::string_view());
  }
  return builder.finish();
}

/// Makes units of what the reader has read. Deeply nested code needs deep stacks.
std::vector<Unit> lowerAll(const python::Reader &reader, unsigned jobs) {
  std::vector<Unit> units(reader.sources().size());
  inParallel(Task::Parse, units.size(), jobs, [&](std::size_t i) {
    const std::string &path = reader.sources()[i].path;
    if (runGuarded([&] { units[i] = reader.lower(i); }))
      return;
    units[i] = {};
    units[i].mainFile = path;
    units[i].joining = Joining::Imported;
    units[i].files = {Name(path)};
    units[i].hasFatalError = true;
    units[i].parseErrors = {path + ":1:1: the analyzer itself failed on this file"};
  });
  return units;
}

/// A unit, and the files of the project that it imports.
using Units = std::map<std::string, cache::CachedModule>;

/// The units of `files` and of what they import, by path, from the cache where it has them.
bool readAll(const Options &options, const std::vector<std::string> &files, Units &units, PythonUnits &read,
             std::string &error) {
  const std::unique_ptr<cache::BlobStore> store = openCache(options);
  cache::FileStates states;
  std::optional<cache::ModuleCache> cache;
  const std::string interpreter = python::findInterpreter(options.python, error);
  if (interpreter.empty())
    return false;
  python::Request request;
  request.interpreter = interpreter;
  request.jobs = options.jobs ? options.jobs : defaultJobs();
  if (store) {
    cache.emplace(*store, states, identityOf(interpreter, states), [](const std::string &path) {
      return static_cast<std::uint64_t>(python::packagingOf(path));
    });
    units = cache->find(files);
    read.counts.fromCache = units.size();
  }
  for (const std::string &file : files)
    if (!units.count(file))
      request.files.push_back(file);
  if (request.files.empty())
    return true;
  python::Reader reader;
  bool isRead = false;
  const bool survived = runGuarded([&] { isRead = reader.read(request, error); });
  if (!survived)
    error = "the analyzer itself failed on what " + interpreter + " made of the Python files";
  if (!isRead)
    return false;
  std::vector<Unit> lowered = lowerAll(reader, request.jobs);
  std::vector<cache::ReadModule> kept;
  for (std::size_t i = 0; i < lowered.size(); ++i) {
    const python::Source &source = reader.sources()[i];
    kept.push_back(
        {source.path, lowered[i].hasFatalError ? nullptr : &lowered[i], source.trace, source.imports});
  }
  if (cache)
    cache->keep(kept);
  for (std::size_t i = 0; i < lowered.size(); ++i) {
    const auto [entry, isNew] = units.try_emplace(reader.sources()[i].path);
    read.counts.parsed += isNew ? 1 : 0;
    if (isNew)
      entry->second = {std::move(lowered[i]), reader.sources()[i].imports};
  }
  if (store) {
    store->trim();
    read.remark = store->problem();
  }
  return true;
}

/// Moves the units of `files`, and then those of what these import, to the result.
void takeUnits(std::vector<std::string> files, Units &units, PythonUnits &read) {
  while (!files.empty()) {
    std::vector<std::string> imported;
    for (const std::string &file : files)
      if (const auto found = units.find(file); found != units.end()) {
        imported.insert(imported.end(), found->second.imports.begin(), found->second.imports.end());
        read.units.push_back(std::move(found->second.unit));
        units.erase(found);
      }
    files = std::move(imported);
  }
}

/// What --whole-program looks at: the repository, or else the current folder.
std::string projectFolder(const Options &options) {
  std::string here = absolutePath(options.sourceRoot.empty() ? "." : options.sourceRoot);
  for (llvm::StringRef folder = here; !folder.empty(); folder = llvm::sys::path::parent_path(folder))
    if (llvm::sys::fs::exists(folder + "/.git"))
      return folder.str();
  return here;
}

} // namespace

bool namesPython(const Options &options) {
  return !options.files.empty() && llvm::all_of(options.files, [](const std::string &file) {
    return isPython(file) || llvm::sys::fs::is_directory(file);
  });
}

bool hasPython(const Options &options) { return llvm::any_of(options.files, isPython); }

bool readPython(const Options &options, PythonUnits &read, std::string &error) {
  std::vector<std::string> files;
  const bool isAlone = namesPython(options);
  for (const std::string &file : options.files) {
    if (!isAlone && !isPython(file))
      continue;
    if (llvm::sys::fs::is_directory(file)) {
      addFolder(file, files);
      read.roots.push_back(absolutePath(file));
    } else if (!llvm::sys::fs::exists(file)) {
      error = "no such file: " + file;
      return false;
    } else if (!llvm::sys::fs::is_regular_file(file)) {
      error = "neither a file nor a folder: " + file;
      return false;
    } else {
      files.push_back(absolutePath(file));
    }
  }
  llvm::sort(files);
  files.erase(llvm::unique(files), files.end());
  if (files.empty()) {
    error = "no Python files in " + options.files.front() + "; name C++ files one by one, or leave them out";
    return false;
  }
  read.asked = files.size();
  if (read.roots.empty())
    read.roots.push_back(absolutePath("."));
  std::vector<std::string> wanted = files;
  if (options.wholeProgram) {
    addFolder(projectFolder(options), wanted);
    llvm::sort(wanted);
    wanted.erase(llvm::unique(wanted), wanted.end());
  }
  Units units;
  if (!readAll(options, wanted, units, read, error))
    return false;
  takeUnits(files, units, read);
  read.own = read.units.size();
  takeUnits(wanted, units, read);
  read.files = read.units.size();
  if (std::optional<Unit> launches =
          python::lowerLaunches(python::findInterpreter(options.python, error), read.units))
    read.units.push_back(std::move(*launches));
  for (Unit &model : python::lowerModels())
    read.units.push_back(std::move(model));
  return true;
}

} // namespace devicetidy::driver
