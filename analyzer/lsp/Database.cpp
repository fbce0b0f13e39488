#include "analyzer/lsp/Database.h"

#include "analyzer/driver/support/Paths.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

namespace devicetidy::lsp {

using driver::CommandSet;
using driver::CompileCommand;

std::optional<cache::Stamp> Database::stampNow() const {
  if (options.hasFixedArguments)
    return std::nullopt;
  llvm::SmallString<256> file(driver::absolutePath(options.buildPath));
  if (llvm::sys::fs::is_directory(file))
    llvm::sys::path::append(file, "compile_commands.json");
  return cache::FileStates().stamp(Name(file.str().str()));
}

bool Database::isChanged() const { return stampNow() != stamp; }

bool Database::load(std::string &error) {
  stamp = stampNow();
  CommandSet read;
  config::Configuration configuration(options.config);
  if (!configuration.open(error) ||
      (!options.hasFixedArguments && !collectCommands(sourceRequest(options), configuration, read, error)))
    return false;
  set = std::move(read);
  files = std::make_unique<driver::ProjectFiles>(set, options.projectRoots);
  known.clear();
  listed.clear();
  hipFiles.clear();
  for (const CompileCommand &command : set.commands) {
    listed.insert(command.file);
    known.emplace(command.file, command); // of several targets that compile a file, the first
  }
  spellings = std::make_unique<Spellings>(listed);
  return true;
}

std::optional<CompileCommand> Database::commandFor(const std::string &file) {
  if (const auto found = known.find(file); found != known.end())
    return found->second;
  if (!llvm::sys::fs::exists(file))
    return std::nullopt; // a buffer that was never saved has no neighbours yet
  driver::Options one = options;
  one.files = {file};
  CommandSet guessed;
  std::string error;
  config::Configuration configuration(options.config);
  std::optional<CompileCommand> command;
  if (configuration.open(error) && collectCommands(sourceRequest(one), configuration, guessed, error) &&
      !guessed.commands.empty()) {
    command = guessed.commands.front();
    if (!files->isProject(file)) { // what is open is the user's own code
      set.commands.push_back(*command);
      files = std::make_unique<driver::ProjectFiles>(set, options.projectRoots);
    }
  }
  if (llvm::is_contained(guessed.hipFiles, file))
    hipFiles.insert(file);
  return known[file] = command;
}

} // namespace devicetidy::lsp
