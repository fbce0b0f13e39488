//===- Options.h - the command line of device-tidy --------------*- C++ -*-===//
//
// The options as a struct, the parser that fills it, and the text of --help.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/config/Configuration.h"
#include "analyzer/driver/input/CompileDatabase.h"
#include "analyzer/driver/input/Sharding.h"
#include "analyzer/driver/support/Output.h"

#include <string>
#include <vector>

namespace devicetidy::driver {

struct Options {
  std::vector<std::string> files;
  std::string python = "python3"; ///< the interpreter whose parser reads Python files
  std::string buildPath; ///< -p: a directory, or the compile_commands.json or compile_flags.txt itself
  bool hasFixedArguments = false; ///< there was a "--"
  std::vector<std::string> fixedArguments;

  config::CommandLine config; ///< what configuration files can set, too

  std::string format = "text";
  std::string output;                    ///< empty: standard output
  std::vector<std::string> projectRoots; ///< directories of project code; empty: detected
  std::string sourceRoot;  ///< what file names in reports are relative to; empty: the repository
  std::string exportFixes; ///< file for the fixes; empty: no
  std::string emitFacts;   ///< empty: no; "-": standard output
  std::string depfile;     ///< empty: no
  std::string profile;     ///< file for the time trace; empty: no
  Shard shard;
  std::string explain;
  std::string baseline, writeBaseline; ///< files; empty: no
  bool writeBaselineErrors = false;    ///< also when the code has errors
  std::string changedSince;            ///< a commit, as git names it; empty: no
  std::string lineFilter;              ///< JSON in the form of clang-tidy; empty: no
  Colour colour = Colour::Auto;
  std::string graph;       ///< function to draw; empty: no
  std::string graphFormat; ///< "dot" or "svg"; empty: by the name of the output
  unsigned jobs = 0;       ///< 0: as many as the machine has

  std::string cacheDirectory; ///< empty: the user's
  bool noCache = false, clearCache = false, wholeProgram = false;

  bool link = false; ///< FILES are facts
  bool lsp = false;  ///< serve an editor on standard input and output
  bool listChecks = false, listModels = false, stats = false, quiet = false, version = false, help = false,
       helpAll = false;
  bool isFurtherRound = false; ///< fixes were applied before, and the findings reported
  bool fix = false, fixErrors = false, showSuppressed = false, reportUnusedSuppressions = false;
  bool dumpConfig = false, verifyConfig = false, explainConfig = false;
};

/// Reads the arguments after argv[0]; an argument "@FILE" is replaced by the arguments in FILE. False, with a
/// sentence in `error`, when they are invalid.
bool parseOptions(const std::vector<std::string> &arguments, Options &options, std::string &error);

/// The C++ sources that `options` request.
SourceRequest sourceRequest(const Options &options);

/// The help text: the options by group, the rarely used ones only if it is to be complete.
std::string helpText(bool isComplete);

} // namespace devicetidy::driver
