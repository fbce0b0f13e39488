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
class Modules;

/// What a name of a module stands for, where it is bound once, by an import, a definition or a class.
struct Meaning {
  enum class Kind { Library, Module, Function, Class };
  Kind kind = Kind::Library;
  /// Library: "torch.nn.functional"; Function: its id; Class: its type; Module: one of its variables, or
  /// empty
  std::string name;
  const Module *module = nullptr; ///< Module
};

/// Whether a file lies in a package, and in one that others than the project can have: beside that, or one
/// folder up, stands what says how it is installed.
enum class Packaging { None, Package, Installed };
Packaging packagingOf(const std::string &path);

struct Module {
  const File *file = nullptr;
  std::string path;
  bool isModel = false; ///< says what functions of libraries do; its classes are called by their full names
  bool asksWhetherMain = false; ///< its code asks whether it is __main__
  bool isScript = false;        ///< it does, or its code does more than define things and is no package's
  Packaging packaging = Packaging::None;
  std::map<std::string, Meaning> meanings;
  std::set<std::string> variables; ///< names of the module that have no fixed meaning
  /// Variables that a function, or another module, gives another value: an import copies what they had.
  std::set<std::string> rebound;
  std::set<std::string> objects;              ///< variables that hold an object of a class of the project
  std::map<std::string, const Module *> data; ///< JSON files by how the module calls them
  const Modules *modules = nullptr;
  Name idOf(const std::string &qualified) const { return Name(path + ":" + qualified); }
  /// The type of a class of the module: classes of other modules may have its name.
  Name typeOf(const std::string &qualified) const {
    return isModel ? Name(path + "." + qualified) : idOf(qualified);
  }
};

class Modules {
public:
  /// Adds a file; its imports are resolved by `resolve`, when all are there.
  void add(const File &file, bool isModel = false);
  /// Paths of project files that a file imports, whether they are there already or not. `absent`: where such
  /// files were looked for and not found.
  static std::vector<std::string> importsOf(const File &file, std::vector<std::string> &absent);
  void resolve();
  /// What the names mean that an import in `module` binds; a variable of another module is what it is there.
  std::map<std::string, Meaning> meaningsOf(const Module &module, const Node &statement) const;
  /// What models the library's `dotted`; null for what has no model.
  const Meaning *modelOf(const std::string &dotted) const;

  const std::map<std::string, Module> &all() const { return modules; }
  /// What `name` means in `module`, or in the module it was imported from.
  static const Meaning *find(const Module &module, const std::string &name);
  /// The decorators of a function that are functions of the project, or objects and their methods, the first
  /// to be applied first; the others leave it as it is.
  static std::vector<Node> decorators(const Module &module, const Node &definition);
  /// Is it `@function.register`, or `@function.register(cls)`, of a function of `module` with
  /// @singledispatch?
  static bool registersCase(const Module &module, const Node &decorator);

  /// Is the decorator one of torch?
  static bool isOfTorch(const Module &module, const Node &decorator);

private:
  void addRebound();
  void addObjects();
  void addModel(const std::string &name, const Meaning &meaning);
  void forgetDecorated();
  static std::map<std::string, Meaning> publicMeanings(const Meaning &owner);
  Meaning meaningOf(const Module &module, const std::string &dotted, int level) const;

  std::map<std::string, Module> modules; ///< by path
  std::map<std::string, Meaning> models; ///< what is written for dotted names
  /// The same for patterns of names that have none of their own; the first that fits counts.
  std::vector<std::pair<std::string, Meaning>> patterns;
};

} // namespace devicetidy::python
