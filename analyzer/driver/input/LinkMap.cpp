#include "analyzer/driver/input/LinkMap.h"

#include "analyzer/driver/input/NinjaFile.h"
#include "analyzer/driver/support/Paths.h"

#include "llvm/ADT/StringSet.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/StringSaver.h"

namespace devicetidy::driver {
namespace {

using llvm::StringRef;
namespace fs = llvm::sys::fs;
namespace path = llvm::sys::path;

constexpr const char *ninjaFile = "build.ninja";
constexpr const char *targetList =
    "CMakeFiles/TargetDirectories.txt"; ///< written by every generator of CMake
constexpr unsigned includeDepth = 8;

std::string below(StringRef directory, StringRef name) { return absolutePath(name, directory); }

/// The directories of the builds that `objects` are in: the nearest above each that has a file of a build.
std::set<std::string> buildRoots(const std::vector<Unit> &units) {
  std::map<std::string, std::string, std::less<>>
      rootOf; // of directories looked at, empty where there is none
  std::set<std::string> roots;
  for (const Unit &unit : units)
    for (Name object : unit.objects) {
      std::vector<std::string> passed;
      std::string root;
      for (StringRef at = path::parent_path(object.str()); !at.empty(); at = path::parent_path(at)) {
        if (const auto known = rootOf.find(std::string_view(at)); known != rootOf.end()) {
          root = known->second;
          break;
        }
        passed.push_back(at.str());
        if (fs::exists(below(at, ninjaFile)) || fs::exists(below(at, targetList))) {
          root = at.str();
          break;
        }
      }
      for (std::string &each : passed)
        rootOf.emplace(std::move(each), root);
      if (!root.empty())
        roots.insert(root);
    }
  return roots;
}

/// The "Ninja Multi-Config" generator of CMake writes one build-CONFIG.ninja for each configuration.
std::set<std::string> otherConfigurations(const std::string &root) {
  std::set<std::string> files;
  std::error_code code;
  for (fs::directory_iterator entry(root, code), end; !code && entry != end; entry.increment(code))
    if (const StringRef name = path::filename(entry->path());
        name.starts_with("build-") && name.ends_with(".ninja"))
      files.insert(entry->path());
  return files;
}

bool isObjectName(StringRef file) { return file.ends_with(".o") || file.ends_with(".obj"); }

bool isExecutableName(const std::string &file) { return !isLibraryName(file) && !isObjectName(file); }

std::vector<std::string> tokens(StringRef command) {
  llvm::BumpPtrAllocator memory;
  llvm::StringSaver saver(memory);
  llvm::SmallVector<const char *, 64> parts;
  llvm::cl::TokenizeGNUCommandLine(command, saver, parts);
  return {parts.begin(), parts.end()};
}

/// The command with what response files hold in their places; CMake writes them where a line gets too long.
std::vector<std::string> expandedTokens(StringRef command, const std::string &directory) {
  std::vector<std::string> result;
  for (std::string &token : tokens(command)) {
    if (StringRef(token).starts_with("@"))
      if (auto text = llvm::MemoryBuffer::getFile(below(directory, token.substr(1)))) {
        for (std::string &part : tokens((*text)->getBuffer()))
          result.push_back(std::move(part));
        continue;
      }
    result.push_back(std::move(token));
  }
  return result;
}

} // namespace

bool isLibraryName(const std::string &file) {
  const StringRef name = path::filename(file);
  for (StringRef ending : {".a", ".so", ".dylib", ".lib", ".dll", ".pyd"})
    if (name.ends_with(ending))
      return true;
  return name.contains(".so."); // with a version
}

LinkMap LinkMap::of(const std::vector<Unit> &units) {
  LinkMap map;
  for (const std::string &root : buildRoots(units))
    map.readBuild(root);
  return map;
}

bool LinkMap::readBuild(const std::string &root) {
  if (const std::string ninja = below(root, ninjaFile); fs::exists(ninja)) {
    readNinja(ninja, root, includeDepth);
    for (const std::string &file : otherConfigurations(root))
      readNinja(file, root, includeDepth);
    return true;
  }
  const std::string list = below(root, targetList);
  if (!fs::exists(list))
    return false;
  readLinkCommands(list);
  return true;
}

void LinkMap::readNinja(const std::string &file, const std::string &root, unsigned depth) {
  auto text = llvm::MemoryBuffer::getFile(file);
  if (!text) {
    problems.push_back(file + ": " + text.getError().message());
    return;
  }
  const NinjaFile ninja = readNinjaFile(std::string_view((*text)->getBuffer()));
  for (const NinjaLink &link : ninja.links) {
    std::vector<std::string> inputs;
    for (const std::string &input : link.inputs)
      inputs.push_back(below(root, input));
    for (const std::string &output : link.outputs)
      addLink(below(root, output), inputs);
  }
  for (const std::string &included : ninja.includes)
    if (depth > 0)
      readNinja(below(root, included), root, depth - 1);
}

void LinkMap::readLinkCommands(const std::string &list) {
  auto text = llvm::MemoryBuffer::getFile(list);
  if (!text) {
    problems.push_back(list + ": " + text.getError().message());
    return;
  }
  llvm::SmallVector<StringRef, 64> directories;
  (*text)->getBuffer().split(directories, '\n', -1, /*KeepEmpty=*/false);
  for (StringRef directory : directories)
    readLinkCommand(below(directory.trim(), "link.txt"));
}

void LinkMap::readLinkCommand(const std::string &file) {
  auto text = llvm::MemoryBuffer::getFile(file);
  if (!text) {
    if (text.getError() != std::errc::no_such_file_or_directory) // a target that links nothing has none
      problems.push_back(file + ": " + text.getError().message());
    return;
  }
  // The commands run in the directory that CMakeFiles/TARGET.dir is in.
  const std::string directory = path::parent_path(path::parent_path(path::parent_path(file))).str();
  llvm::SmallVector<StringRef, 4> commands;
  (*text)->getBuffer().split(commands, '\n', -1, /*KeepEmpty=*/false);
  for (StringRef command : commands) {
    std::string output;
    std::vector<std::string> inputs;
    const std::vector<std::string> parts = expandedTokens(command, directory);
    for (std::size_t i = 1; i < parts.size(); ++i) {
      const bool isOutput = parts[i] == "-o" && i + 1 < parts.size();
      if (isOutput)
        output = below(directory, parts[++i]);
      else if (isObjectName(parts[i]) || isLibraryName(parts[i]))
        inputs.push_back(below(directory, parts[i]));
    }
    // `ar qc libx.a OBJECTS` has no -o.
    const auto archive = std::find_if(inputs.begin(), inputs.end(), isLibraryName);
    if (output.empty() && archive != inputs.end())
      output = *archive;
    if (!output.empty())
      addLink(output, inputs);
  }
}

void LinkMap::addLink(const std::string &output, const std::vector<std::string> &inputs) {
  std::set<std::string> &all = inputsOf[output];
  all.insert(inputs.begin(), inputs.end());
  all.erase(output);
}

std::vector<LinkedImage> LinkMap::images() const {
  std::set<std::string> linked; // by something else
  for (const auto &[output, inputs] : inputsOf)
    linked.insert(inputs.begin(), inputs.end());
  std::vector<LinkedImage> result;
  for (const auto &[output, inputs] : inputsOf) {
    if (!isExecutableName(output) && linked.count(output))
      continue;
    LinkedImage image;
    image.path = output;
    std::set<std::string> seen{output};
    std::vector<std::pair<std::string, bool>> open{{output, false}};
    while (!open.empty()) {
      const auto [file, inLibrary] = open.back();
      open.pop_back();
      const auto made = inputsOf.find(file);
      if (made == inputsOf.end()) {
        (inLibrary ? image.libraryObjects : image.objects).insert(file);
        continue;
      }
      if (file != output && isExecutableName(file))
        continue; // has to be made before, and is not linked
      for (const std::string &input : made->second)
        if (seen.insert(input).second)
          open.emplace_back(input, inLibrary || isLibraryName(input));
    }
    result.push_back(std::move(image));
  }
  return result;
}

} // namespace devicetidy::driver
