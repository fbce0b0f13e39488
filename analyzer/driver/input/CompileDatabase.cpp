#include "analyzer/driver/input/CompileDatabase.h"

#include "analyzer/driver/input/Arguments.h"
#include "analyzer/driver/input/Includers.h"
#include "analyzer/driver/input/ProjectFiles.h"
#include "analyzer/driver/support/Paths.h"

#include "clang/Tooling/CompilationDatabase.h"
#include "clang/Tooling/JSONCompilationDatabase.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/VirtualFileSystem.h"

#include <map>
#include <memory>
#include <set>
#include <tuple>

namespace devicetidy::driver {
namespace {

using clang::tooling::CompilationDatabase;
using llvm::StringRef;
namespace fs = llvm::sys::fs;
namespace path = llvm::sys::path;

constexpr const char *HowToGetOne =
    "\n  CMake:  cmake -S . -B build -DCMAKE_EXPORT_COMPILE_COMMANDS=ON, then device-tidy -p build"
    "\n  Meson:  meson setup build, then device-tidy -p build"
    "\n  other:  bear -- make, then device-tidy -p ."
    "\n  none:   device-tidy file.cpp -- -std=c++17 -I..., or such arguments in compile_flags.txt, one per "
    "line";

bool isHeader(StringRef file) {
  static constexpr StringRef headers[] = {".h",   ".hh",  ".hpp", ".hxx", ".h++",
                                          ".inl", ".ipp", ".tpp", ".txx", ".cuh"};
  return llvm::is_contained(headers, path::extension(file).lower());
}

std::string joinPath(StringRef directory, StringRef name) {
  llvm::SmallString<256> result(directory);
  path::append(result, name);
  return result.str().str();
}

/// One argument a line, for every file below; clang-tidy and clangd read it, too.
constexpr StringRef flagsFile = "compile_flags.txt";

/// Where builds put the database: next to the sources, or in one of the usual build folders.
constexpr StringRef buildFolders[] = {
    "", "build", "Build", "out", "_build", "builddir", "cmake-build-debug", "cmake-build-release"};

/// Folders with one build for each preset or configuration: build/release, out/build/debug.
constexpr StringRef presetFolders[] = {"build", "out", "out/build"};

/// Of the builds in the folders of `directory`, the database that was written last; empty when there is none.
std::string newestBelow(const std::string &directory) {
  std::string best;
  llvm::sys::TimePoint<> bestTime;
  std::error_code code;
  for (fs::directory_iterator each(directory, code), end; each != end && !code; each.increment(code)) {
    const std::string file = joinPath(each->path(), "compile_commands.json");
    fs::file_status status;
    if (fs::status(file, status))
      continue;
    const llvm::sys::TimePoint<> time = status.getLastModificationTime();
    if (best.empty() || std::tie(bestTime, file) < std::tie(time, best)) {
      best = file;
      bestTime = time;
    }
  }
  return best;
}

/// A database whose CUDA and assembler sources are not used to guess the arguments of other files.
class CxxExamples : public CompilationDatabase {
public:
  explicit CxxExamples(std::unique_ptr<CompilationDatabase> base) : base(std::move(base)) {}

  std::vector<clang::tooling::CompileCommand> getCompileCommands(StringRef file) const override {
    return base->getCompileCommands(file);
  }
  std::vector<std::string> getAllFiles() const override {
    std::vector<std::string> files = base->getAllFiles();
    llvm::erase_if(files, [](const std::string &file) { return languageOf(file) != Language::Cxx; });
    return files;
  }
  std::vector<clang::tooling::CompileCommand> getAllCompileCommands() const override {
    return base->getAllCompileCommands();
  }

private:
  std::unique_ptr<CompilationDatabase> base;
};

class Loader {
public:
  Loader(const SourceRequest &request, config::Configuration &configuration, CommandSet &result)
      : request(request), configuration(configuration), result(result) {}

  bool run() {
    if (!checkFiles() || !openDatabase() || !(request.files.empty() ? collectAll() : collectFiles()))
      return false;
    if (!configError.empty())
      return fail(configError);
    sortCommands(result.commands);
    sortCommands(result.others);
    llvm::sort(result.notices);
    result.notices.erase(std::unique(result.notices.begin(), result.notices.end()), result.notices.end());
    return true;
  }

  std::string error;

private:
  bool fail(std::string sentence) {
    error = std::move(sentence);
    return false;
  }

  /// In an order of their own: what a run prints must not depend on the order of the database or of FILES.
  static void sortCommands(std::vector<CompileCommand> &commands) {
    for (CompileCommand &command : commands)
      llvm::sort(command.objects);
    llvm::sort(commands, [](const CompileCommand &a, const CompileCommand &b) {
      return std::tie(a.file, a.arguments, a.directory) < std::tie(b.file, b.arguments, b.directory);
    });
  }

  bool checkFiles() {
    for (const std::string &file : request.files) {
      if (!fs::exists(file))
        return fail("no such file: " + file);
      if (fs::is_directory(file))
        return fail(file +
                    " is a directory; name files, or leave them out to analyse the whole compile database");
    }
    return true;
  }

  bool openDatabase() {
    if (request.hasFixedArguments) {
      if (request.files.empty())
        return fail("compiler arguments after -- need FILES to be for");
      database = std::make_unique<clang::tooling::FixedCompilationDatabase>(".", request.fixedArguments);
      return true;
    }
    std::string file;
    if (!locate(file))
      return false;
    result.databaseDirectory = path::parent_path(file).str();
    if (path::filename(file) == flagsFile)
      return loadFlags(file);
    return loadJson(file) && (request.files.empty() || isOfThisPlace(file));
  }

  /// A database of another checkout or container would make every file a guess that fails.
  bool isOfThisPlace(const std::string &file) {
    std::string missing;
    for (const auto &command : database->getAllCompileCommands()) {
      const std::string directory = directoryOf(command);
      if (directory == missing)
        continue;
      if (fs::is_directory(directory))
        return true;
      missing = directory;
    }
    return missing.empty() ||
           fail(file + " was written for another directory: no directory that it names exists, such as " +
                missing + "; configure the build here again");
  }

  /// Finds the database; a file is given out as an absolute path.
  bool locate(std::string &file) {
    if (request.buildPath.empty()) {
      const std::string start = request.files.empty()
                                    ? absolutePath(".")
                                    : path::parent_path(absolutePath(request.files.front())).str();
      file = findDatabase(start);
      if (file.empty())
        return fail("no compile_commands.json in " + start +
                    " or above it; it says how each file is compiled" + HowToGetOne);
      return true;
    }
    const std::string given = absolutePath(request.buildPath);
    if (!fs::exists(given))
      return fail("-p " + request.buildPath +
                  ": no such file or directory; -p takes the folder of compile_commands.json, "
                  "which says how each file is compiled" +
                  HowToGetOne);
    if (!fs::is_directory(given)) {
      file = given;
      return true;
    }
    for (StringRef name : {StringRef("compile_commands.json"), flagsFile}) {
      file = joinPath(given, name);
      if (fs::exists(file))
        return true;
    }
    return fail("no compile_commands.json in " + given + HowToGetOne);
  }

  bool loadFlags(const std::string &file) {
    std::string message;
    database = clang::tooling::FixedCompilationDatabase::loadFromFile(file, message);
    listsNoFiles = true;
    return database != nullptr || fail(file + ": " + message);
  }

  bool loadJson(const std::string &file) {
    auto text = llvm::MemoryBuffer::getFile(file);
    if (!text)
      return fail(file + ": " + text.getError().message());
    // clang's own reader takes half a file for a whole one.
    llvm::Expected<llvm::json::Value> value = llvm::json::parse((*text)->getBuffer());
    if (!value)
      return fail(file + " is not valid JSON: " + llvm::toString(value.takeError()) +
                  "; it may be incomplete: configure the build again");
    std::string message;
    auto json = clang::tooling::JSONCompilationDatabase::loadFromFile(
        file, message, clang::tooling::JSONCommandLineSyntax::AutoDetect);
    if (!json)
      return fail(file + " is not a compile database: " + message);
    auto expanded = expandResponseFiles(std::move(json), llvm::vfs::createPhysicalFileSystem());
    database = inferTargetAndDriverMode(
        inferMissingCompileCommands(std::make_unique<CxxExamples>(std::move(expanded))));
    return true;
  }

  bool collectAll() {
    if (listsNoFiles) // an editor names its files later
      return request.mayBeEmpty || fail("which files? compile_flags.txt in " + result.databaseDirectory +
                                        " lists none; give FILES");
    for (const auto &command : database->getAllCompileCommands())
      add(command, /*isNamed=*/false);
    if (result.commands.empty())
      return fail("nothing to analyse: " + result.databaseDirectory + " lists no C++ file" +
                  (result.notices.empty() ? "" : " (" + result.notices.front() + ")"));
    return true;
  }

  bool collectFiles() {
    for (const auto &command : database->getAllCompileCommands())
      note(command);
    for (const std::string &name : request.files) {
      const std::string file = absolutePath(name);
      std::vector<clang::tooling::CompileCommand> commands = database->getCompileCommands(file);
      if (commands.empty() && isHeader(file) && addStandIn(name, file))
        continue; // arguments for a .cuh are not guessed
      if (commands.empty())
        return fail(name + " is not in the compile database; give its compiler arguments after --");
      const bool isGuess = !commands.front().Heuristic.empty();
      if (isGuess && isHeader(file) && addStandIn(name, file))
        continue;
      if (isGuess)
        remarkGuess(name, commands.front().Heuristic);
      for (const auto &command : commands)
        add(command, /*isNamed=*/true);
    }
    addStandIns();
    if (result.commands.empty())
      return fail("nothing to analyse: " + result.notices.back());
    if (!request.hasFixedArguments)
      collectOthers();
    return true;
  }

  /// Looks for a source that includes the header, which is not in the database.
  bool addStandIn(const std::string &name, const std::string &header) {
    if (!includers) {
      std::vector<IncludingSource> sources;
      for (const auto &command : database->getAllCompileCommands())
        if (const Language language = languageOf(fileOf(command));
            language == Language::Cxx || language == Language::Cuda)
          sources.push_back({fileOf(command), directoryOf(command), command.CommandLine});
      project.emplace(result, request.projectRoots);
      includers.emplace(std::move(sources),
                        [this](const std::string &file) { return project->isOwnPlace(file); });
    }
    std::string found; // as the source names it, which findings do too
    const IncludingSource *source = includers->find(header, found);
    if (!source)
      return false;
    result.headers.push_back(std::move(found));
    result.notices.push_back(name + " is analysed as part of " + source->file);
    standIns.insert(source->file);
    return true;
  }

  /// Adds the sources that are analysed for headers, unless they are requested themselves.
  void addStandIns() {
    for (const std::string &file : standIns) {
      if (llvm::any_of(result.commands, [&](const CompileCommand &each) { return each.file == file; }))
        continue;
      for (const auto &command : database->getCompileCommands(file))
        add(command, /*isNamed=*/true);
      for (CompileCommand &command : result.commands)
        if (command.file == file)
          command.standsIn = true;
    }
  }

  /// The commands of the database that are not for FILES.
  void collectOthers() {
    const std::vector<CompileCommand> named = std::move(result.commands);
    const std::vector<std::string> notices = result.notices;
    result.commands.clear();
    std::set<std::string> namedFiles;
    for (const CompileCommand &command : named)
      namedFiles.insert(command.file);
    byFile.clear();
    for (const auto &command : database->getAllCompileCommands())
      if (!namedFiles.count(fileOf(command)))
        add(command, /*isNamed=*/false);
    result.others = std::move(result.commands);
    result.commands = named;
    result.notices = notices;
  }

  void remarkGuess(const std::string &name, const std::string &heuristic) {
    result.notices.push_back(name + " is not in the compile database; it is parsed " +
                             (isHeader(name) ? "by itself, " : "") + "with compiler arguments " + heuristic);
  }

  std::string directoryOf(const clang::tooling::CompileCommand &command) const {
    return absolutePath(command.Directory, result.databaseDirectory);
  }
  std::string fileOf(const clang::tooling::CompileCommand &command) const {
    return absolutePath(command.Filename, directoryOf(command));
  }

  /// Remembers what the command says about the project, whether or not it is analysed.
  void note(const clang::tooling::CompileCommand &command) {
    const std::string file = fileOf(command);
    if (languageOf(file) == Language::Other)
      return;
    if (filesSeen.insert(file).second)
      result.databaseFiles.push_back(file);
    for (std::string &directory : systemDirectories(command.CommandLine, directoryOf(command)))
      if (systemSeen.insert(directory).second)
        result.systemDirectories.push_back(directory);
  }

  void add(const clang::tooling::CompileCommand &command, bool isNamed) {
    const std::string file = fileOf(command), directory = directoryOf(command);
    note(command);
    const AdjustedArguments adjusted =
        adjustArguments(configured(command.CommandLine, file), file, directory);
    if (adjusted.language == Language::Hip) {
      result.hipFiles.push_back(file);
      result.notices.push_back(file + " is skipped: HIP sources are not analysed");
    } else if (adjusted.language == Language::Other && isNamed) {
      result.notices.push_back(file + " is skipped: it is not C++");
    }
    if (adjusted.language != Language::Cxx && adjusted.language != Language::Cuda)
      return;
    addOnce({directory, file, adjusted.arguments, {}, false, !command.Heuristic.empty()}, objectOf(command));
  }

  /// Several targets may compile one file; where they do so alike, it is one unit with several objects.
  void addOnce(CompileCommand command, const std::string &object) {
    std::vector<std::size_t> &known = byFile[command.file];
    const auto same =
        llvm::find_if(known, [&](std::size_t each) { return result.commands[each] == command; });
    const std::size_t which = same != known.end() ? *same : result.commands.size();
    if (same == known.end()) {
      known.push_back(which);
      result.commands.push_back(std::move(command));
    }
    if (!object.empty() && !llvm::is_contained(result.commands[which].objects, object))
      result.commands[which].objects.push_back(object);
  }

  /// The object file the build makes, or nothing. A guessed command is that of another file.
  std::string objectOf(const clang::tooling::CompileCommand &command) const {
    if (!command.Heuristic.empty())
      return {};
    const std::string named = objectFile(command.CommandLine, directoryOf(command));
    if (!named.empty() || command.Output.empty())
      return named;
    return absolutePath(command.Output, directoryOf(command));
  }

  /// The command as the configuration of its file changes it.
  std::vector<std::string> configured(std::vector<std::string> arguments, const std::string &file) {
    std::string problem;
    const config::SettingsPointer settings = configuration.settingsFor(file, problem);
    if (!settings) {
      configError = problem;
      return arguments;
    }
    const config::Values &values = settings->values();
    for (const config::Sourced &removed : values.removedArguments)
      llvm::erase_if(arguments, [&removed](const std::string &each) { return each == removed.text; });
    const auto insert = [&arguments](std::size_t at, const std::vector<config::Sourced> &added) {
      for (const config::Sourced &each : added)
        arguments.insert(arguments.begin() + static_cast<std::ptrdiff_t>(at++), each.text);
    };
    insert(arguments.empty() ? 0 : 1, values.extraArgumentsBefore);
    // A "--" ends the options; what the user adds goes in front of it.
    const auto end = std::find(arguments.begin(), arguments.end(), "--");
    insert(static_cast<std::size_t>(end - arguments.begin()), values.extraArguments);
    return arguments;
  }

  const SourceRequest &request;
  config::Configuration &configuration;
  std::string configError;
  CommandSet &result;
  std::unique_ptr<CompilationDatabase> database;
  std::optional<ProjectFiles> project; ///< made for the first header that is asked for
  std::optional<Includers> includers;
  bool listsNoFiles = false;      ///< the database is one set of arguments for all named files
  std::set<std::string> standIns; ///< sources
  std::set<std::string> filesSeen, systemSeen;
  std::map<std::string, std::vector<std::size_t>> byFile; ///< its entries in result.commands
};

} // namespace

std::string findDatabase(const std::string &start) {
  for (StringRef directory = start; !directory.empty(); directory = path::parent_path(directory)) {
    for (StringRef folder : buildFolders) {
      const std::string file = joinPath(joinPath(directory, folder), "compile_commands.json");
      if (fs::exists(file))
        return file;
    }
    for (StringRef folder : presetFolders)
      if (std::string file = newestBelow(joinPath(directory, folder)); !file.empty())
        return file;
    if (std::string file = joinPath(directory, flagsFile); fs::exists(file))
      return file;
  }
  return {};
}

bool collectCommands(const SourceRequest &request, config::Configuration &configuration, CommandSet &result,
                     std::string &error) {
  Loader loader(request, configuration, result);
  const bool isFine = loader.run();
  error = loader.error;
  return isFine;
}

} // namespace devicetidy::driver
