//===- CompileDatabase.h - what to parse, and how ---------------*- C++ -*-===//
//
// Finds and reads the compile database, and selects the commands of the files that a run asks for.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/config/Configuration.h"

#include <string>
#include <vector>

namespace devicetidy::driver {

/// One translation unit, ready to be parsed.
struct CompileCommand {
  std::string directory;
  std::string file; ///< absolute
  std::vector<std::string> arguments;
  std::vector<std::string> objects{}; ///< what the build makes of it, absolute; one for each such command
  bool standsIn = false;              ///< analysed only because it includes a requested header
  bool isGuess = false;               ///< not in the database; the arguments are those of another file

  friend bool operator==(const CompileCommand &a, const CompileCommand &b) {
    return a.directory == b.directory && a.file == b.file && a.arguments == b.arguments;
  }
};

/// Which sources are requested, and where their compile commands come from.
struct SourceRequest {
  std::vector<std::string> files; ///< empty: all of the compile database
  std::string buildPath; ///< a directory, or the database itself; empty: searched next to the sources
  bool hasFixedArguments = false; ///< the command line has the compiler arguments
  std::vector<std::string> fixedArguments;
  std::vector<std::string> projectRoots; ///< directories of project code; empty: detected
  bool mayBeEmpty = false; ///< a database that lists no files is enough: an editor names its files later
};

struct CommandSet {
  std::vector<CompileCommand> commands;       ///< what is requested, by file and arguments
  std::vector<CompileCommand> others;         ///< of the database, not named by FILES; the same order
  std::vector<std::string> databaseFiles;     ///< every C++ file the database lists
  std::vector<std::string> systemDirectories; ///< searched with -isystem by some command
  std::string databaseDirectory;              ///< empty when the command line has the compiler arguments
  std::vector<std::string> headers;           ///< requested; commands of sources that include them are used
  std::vector<std::string> hipFiles;          ///< requested, and skipped
  std::vector<std::string> notices;           ///< what the user should know
};

/// The nearest compile_commands.json from `directory` (absolute) upwards, also in a build folder there, or
/// compile_flags.txt; of one folder the former. Empty when there is none.
std::string findDatabase(const std::string &directory);

/// Collects the compile commands for `request`, changed by the configuration of each file.
/// False, with a sentence in `error`, when there are none.
bool collectCommands(const SourceRequest &request, config::Configuration &configuration, CommandSet &result,
                     std::string &error);

} // namespace devicetidy::driver
