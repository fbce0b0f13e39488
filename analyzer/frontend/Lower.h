//===- Lower.h - a translation unit becomes facts ---------------*- C++ -*-===//
//
// The only interface between clang and the other parts. Parses one compile command (bodies outside the
// project are skipped) and lowers every project function of it, every instantiation of a project template
// that is used, every lambda, and the initialisers of globals, to facts.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/facts/FileTrace.h"
#include "analyzer/facts/Program.h"

#include <atomic>
#include <functional>
#include <map>
#include <string>

namespace devicetidy::frontend {

struct Preamble;

struct LowerOptions {
  /// Is this file (absolute, normalised path) the user's own code? Everything else is third-party: its bodies
  /// are skipped and its functions are known by their models only.
  std::function<bool(const std::string &path)> isProjectFile;
};

/// Text that replaces files on disk, by absolute path: buffers of an editor.
using UnsavedFiles = std::map<std::string, std::string>;

/// Further inputs and outputs of a parse.
struct LowerExtras {
  FileTrace *trace = nullptr; ///< receives all files that the parse accessed
  /// Headers that need no parsing (Preamble.h), made with equal arguments. A unit that has errors with it is
  /// parsed without.
  const Preamble *preamble = nullptr;
  bool *usedPreamble = nullptr; ///< receives whether the preamble was used
  /// A unit that has errors with its preamble is not parsed again without: while code is being typed,
  /// the errors come from the code.
  bool keepErrors = false;
  const UnsavedFiles *unsaved = nullptr;   ///< null: all files are as on disk
  const std::atomic<bool> *stop = nullptr; ///< once true, the parse ends early and its unit must not be used
};

/// Lowers `file` with the compiler `arguments` of its compile command (argv[0] included, output and
/// dependency flags already dropped), run in `directory`. Never throws; a broken unit comes back with
/// parseErrors, hasFatalError where nothing could be lowered, and the functions that are intact. Deeply
/// nested code needs a deep stack: driver/Parallel.h has threads with one.
Unit lowerTranslationUnit(const std::string &directory, const std::string &file,
                          const std::vector<std::string> &arguments, const LowerOptions &options,
                          const LowerExtras &extras = {});

} // namespace devicetidy::frontend
