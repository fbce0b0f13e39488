//===- Modules.h - files as modules, and what their names mean --*- C++ -*-===//
//
// What an import names is a module of the project when a file of it is there, as Python would find it from
// the folder of the importing file or a folder above it, and a library otherwise.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "analyzer/python/Scopes.h"

#include <map>
#include <optional>

namespace devicetidy::python {

struct Module;

/// What a name of a module stands for, where it is bound once, by an import, a definition or a class.
struct Meaning {
  enum class Kind { Library, Module, Function, Class };
  Kind kind = Kind::Library;
  std::string name;               ///< Library: "torch.nn.functional"; Function: its id; Class: its type
  const Module *module = nullptr; ///< Module
};

struct Module {
  const File *file = nullptr;
  std::string path;
  bool isScript = false; ///< its code does more than define things, or asks whether it is __main__
  std::map<std::string, Meaning> meanings;
  std::set<std::string> variables; ///< names of the module that have no fixed meaning
  Name idOf(const std::string &qualified) const { return Name(path + ":" + qualified); }
};

class Modules {
public:
  /// Adds a file; its imports are resolved by `resolve`, when all are there.
  void add(const File &file);
  /// Paths of project files that a file imports, whether they are there already or not. `absent`: where such
  /// files were looked for and not found.
  static std::vector<std::string> importsOf(const File &file, std::vector<std::string> &absent);
  void resolve();

  const std::map<std::string, Module> &all() const { return modules; }
  /// What `name` means in `module`, or in the module it was imported from.
  static const Meaning *find(const Module &module, const std::string &name);

private:
  void addImports(Module &module, const Node &statement);
  Meaning meaningOf(const Module &module, const std::string &dotted, int level) const;

  std::map<std::string, Module> modules; ///< by path
};

} // namespace devicetidy::python
