//===- Parse.h - Python files, read by CPython ------------------*- C++ -*-===//
#pragma once

#include "analyzer/python/Syntax.h"

#include <atomic>
#include <map>
#include <memory>

namespace devicetidy::python {

/// What an interpreter made of some files.
struct Parsed {
  Schema schema;
  std::vector<std::unique_ptr<File>> files;
};

/// Adds what lines of parse.py say. False with `error` when they say nothing.
bool readLines(llvm::StringRef lines, Parsed &parsed, std::string &error);

/// Texts of files that stand for those on disk, by path.
using Texts = std::map<std::string, std::string>;

/// The file of an interpreter (a name that is looked for in PATH, or a path). Empty with `error` when there
/// is none.
std::string findInterpreter(const std::string &interpreter, std::string &error);

/// Reads `paths` with `interpreter`. A text that stands for a file is one that is being written: what is
/// wrong in it is left out as far as possible. False with `error` when the interpreter cannot be run, and
/// without when `stop` was set; a file that is no Python has an error of its own.
bool parse(const std::string &interpreter, const std::vector<std::string> &paths, const Texts &texts,
           const std::atomic<bool> *stop, Parsed &parsed, std::string &error);

} // namespace devicetidy::python
