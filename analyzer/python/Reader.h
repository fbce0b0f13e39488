//===- Reader.h - Python files as units ------------------------*- C++ -*-===//
//
// Reads files and what they import from the project, and lowers them.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/facts/FileTrace.h"
#include "analyzer/facts/Program.h"
#include "analyzer/python/Modules.h"
#include "analyzer/python/Parse.h"

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace devicetidy::python {

struct Request {
  std::vector<std::string> files;      ///< absolute paths of .py and .ipynb files
  std::string interpreter = "python3"; ///< whose parser reads them
  Texts texts;                         ///< of files that are being edited
  unsigned jobs = 1;                   ///< interpreters that may run at the same time
  const std::atomic<bool> *stop = nullptr;
};

/// A file that was read.
struct Source {
  std::string path;
  std::vector<std::string> imports; ///< files of the project
  FileTrace trace;                  ///< what its facts depend on, besides those of its imports
  bool isBroken = false;            ///< it could not be parsed
};

/// Keeps the syntax trees of files, so that only those that changed are parsed again.
class Reader {
public:
  /// Reads the files and all that they import. False with `error` when that cannot be done, without when it
  /// was stopped.
  bool read(const Request &request, std::string &error);

  /// Those that were asked for come first.
  const std::vector<Source> &sources() const { return all; }

  /// The unit of the source with this number; one with a parse error for a file that could not be parsed.
  /// Several threads may ask.
  Unit lower(std::size_t source) const;

private:
  struct Tree {
    std::shared_ptr<const File> file;
    std::string text; ///< what was given for it
    bool isGiven = false;
  };
  bool isCurrent(const std::string &path, const Request &request) const;
  void keep(const std::shared_ptr<Parsed> &parsed, const Request &request);
  bool parseMissing(const std::vector<std::string> &paths, const Request &request, std::string &error);

  std::map<std::string, Tree> trees; ///< by path
  Modules modules;
  std::vector<Source> all;
};

} // namespace devicetidy::python
