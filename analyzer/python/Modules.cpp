#include "analyzer/python/Modules.h"

#include "analyzer/facts/Language.h"
#include "analyzer/facts/NameParts.h"
#include "analyzer/models/Models.h"

#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <algorithm>

namespace devicetidy::python {
namespace {

constexpr int foldersAbove = 6; ///< of the importing file that may be the root of its imports
constexpr int longestChain = 8; ///< of modules through which a name is imported
constexpr std::uint64_t mostSettings = 1'000'000; ///< bytes of a JSON file; a larger one is data

std::string parentOf(const std::string &path) { return llvm::sys::path::parent_path(path).str(); }

using Paths = std::vector<std::string>;

// The file of module `dotted` below `folder`; empty when there is none, which `absent` tells.
std::string fileBelow(const std::string &folder, const std::string &dotted, Paths *absent) {
  std::string relative = dotted;
  std::replace(relative.begin(), relative.end(), '.', '/');
  const std::string base = folder + (relative.empty() ? "" : "/" + relative);
  for (const std::string &path : {base + ".py", base + "/__init__.py"})
    if (llvm::sys::fs::is_regular_file(path))
      return path;
    else if (absent)
      absent->push_back(path);
  return {};
}

// Does it lie where packages are installed? What is there is a library to those who import it.
bool isInstalled(const std::string &path) {
  return path.find("/site-packages/") != std::string::npos ||
         path.find("/dist-packages/") != std::string::npos;
}

void addTexts(const Node &node, std::string &texts) {
  if (const auto [kind, text] = node.constant(); kind == "str")
    texts += "/" + text;
  for (const Node &child : node.children())
    addTexts(child, texts);
}

// Folders that a file adds to sys.path. Only the texts of what it adds are looked at: they lead there from
// the folder of the file or one above it.
std::vector<std::string> addedFolders(const File &file) {
  std::vector<std::string> added;
  forEachOfBlock(file.module(), [&](const Node &node) {
    const Node callee = node["func"], list = callee["value"];
    std::string texts;
    if (node.is("Call") && isOneOf(callee.text("attr"), {"append", "insert"}) &&
        list.text("attr") == "path" && list["value"].text("id") == "sys")
      for (const Node &argument : node.list("args"))
        addTexts(argument, texts);
    std::string folder = parentOf(file.path);
    for (int above = 0; !texts.empty() && above < foldersAbove; ++above, folder = parentOf(folder))
      if (llvm::sys::fs::is_directory(folder + texts)) {
        llvm::SmallString<128> path(folder + texts);
        llvm::sys::path::remove_dots(path, /*remove_dot_dot=*/true);
        added.push_back(path.str().str());
        break;
      }
  });
  return added;
}

// The file that `dotted`, imported in `file`, names; empty for a library. Packages of many projects are in a
// folder `src`; a library that has models is what these say, also in its own examples, and `import math` in a
// package that has a math.py is Python's own.
std::string fileOf(const File &file, const std::string &dotted, int level, Paths *absent = nullptr) {
  const std::string &importer = file.path;
  if (level == 0 && isInstalled(importer))
    return {};
  std::string folder = parentOf(importer);
  if (level > 0) {
    for (; level > 1; --level)
      folder = parentOf(folder);
    return fileBelow(folder, dotted, absent);
  }
  const std::string library = dotted.substr(0, dotted.find('.'));
  const bool mayBeInSources =
      !models::hasRole(library, "has_models") && !models::hasRole(library, "standard_module");
  for (int above = 0; above < foldersAbove && folder.size() > 1; ++above, folder = parentOf(folder)) {
    if (!mayBeInSources && llvm::sys::fs::exists(folder + "/__init__.py"))
      continue; // what is beside it in a package, distributions/torch.py, is distributions.torch
    for (const std::string &root : {folder, folder + "/src"})
      if (root == folder || (mayBeInSources && llvm::sys::fs::is_directory(root)))
        if (const std::string found = fileBelow(root, dotted, absent); !found.empty() && found != importer)
          return found;
  }
  for (const std::string &added : addedFolders(file))
    if (const std::string found = fileBelow(added, dotted, absent); !found.empty() && found != importer)
      return found;
  return {};
}

bool isDefinition(const Node &statement) {
  if (statement.is("Expr")) // a docstring; what is set up for all that follows
    return statement["value"].is("Constant") ||
           isOneOf(statement["value"]["func"]["value"].text("id"), {"warnings", "logging", "logger", "sys"});
  if (isOneOf(statement.kind(), {"If", "Try"})) {
    const std::vector<Node> body = statement.list("body");
    return std::all_of(body.begin(), body.end(), isDefinition);
  }
  if (statement.is("For")) { // fills a table
    const std::vector<Node> body = statement.list("body");
    return std::all_of(body.begin(), body.end(), [](const Node &each) {
      return each.is("For") ? isDefinition(each)
                            : each.is("Assign") && each.list("targets").front().is("Subscript");
    });
  }
  return isOneOf(statement.kind(), {"FunctionDef", "AsyncFunctionDef", "ClassDef", "Import", "ImportFrom",
                                    "Assign", "AnnAssign", "Pass", "AugAssign", "Delete", "Assert"});
}

bool isSettings(const std::string &path) {
  std::uint64_t size = 0;
  return llvm::sys::fs::is_regular_file(path) && !llvm::sys::fs::file_size(path, size) &&
         size <= mostSettings;
}

// Calls `visit` with each text of the file that names a JSON file, and its path: from the folder of the file
// or one above it.
void forEachText(const File &file,
                 const std::function<void(const std::string &, const std::string &)> &visit) {
  const std::function<void(const Node &)> walk = [&](const Node &node) {
    if (const auto [kind, text] = node.constant(); kind == "str" && endsWith(text, ".json")) {
      std::string folder = parentOf(file.path);
      for (int above = 0; above < foldersAbove && folder.size() > 1; ++above, folder = parentOf(folder))
        if (const std::string path = std::string(folder).append("/").append(text); isSettings(path)) {
          visit(text, path);
          break;
        }
    }
    for (const Node &child : node.children())
      walk(child);
  };
  walk(file.module());
}

// Those in functions too: they are run when the function is.
void forEachImport(const Node &node, const std::function<void(const Node &)> &visit) {
  if (isImport(node))
    visit(node);
  for (const Node &child : node.children())
    forEachImport(child, visit);
}

// Does `name` fit `pattern`, where '*' is any text?
bool fits(std::string_view name, std::string_view pattern) {
  const std::size_t star = pattern.find('*');
  if (star == std::string_view::npos)
    return name == pattern;
  if (name.substr(0, star) != pattern.substr(0, star))
    return false;
  const std::string_view rest = pattern.substr(star + 1);
  for (std::size_t at = star; at <= name.size(); ++at)
    if (fits(name.substr(at), rest))
      return true;
  return false;
}

bool bringsAll(const Node &import) {
  const std::vector<Node> names = import.list("names");
  return names.size() == 1 && names.front().text("name") == "*";
}

// The texts in __all__; nothing where there is none, or it is made of other lists.
std::optional<std::set<std::string>> listedNames(const Node &module) {
  for (const Node &statement : module.list("body")) {
    if (!statement.is("Assign") || statement.list("targets").front().text("id") != "__all__")
      continue;
    std::set<std::string> names;
    for (const Node &each : statement["value"].list("elts"))
      names.insert(each.constant().second);
    return names.empty() ? std::nullopt : std::optional(names);
  }
  return std::nullopt;
}

bool asksWhetherMain(const Node &statement) {
  const Node left = statement["test"]["left"];
  return statement.is("If") && left.is("Name") && left.text("id") == "__name__";
}

} // namespace

Packaging packagingOf(const std::string &path) {
  const auto isPackage = [](const std::string &folder) {
    return llvm::sys::fs::exists(folder + "/__init__.py");
  };
  std::string folder = parentOf(path);
  if (!isPackage(folder))
    return Packaging::None;
  while (isPackage(folder))
    folder = parentOf(folder);
  for (const std::string &where : {folder, parentOf(folder)})
    for (const char *name : {"setup.py", "setup.cfg", "pyproject.toml"})
      if (llvm::sys::fs::exists(where + "/" + name))
        return Packaging::Installed;
  return Packaging::Package;
}

void Modules::add(const File &file, bool isModel) {
  Module &module = modules[file.path];
  module.isModel = isModel;
  module.modules = this;
  module.file = &file;
  module.path = file.path;
  Scope scope;
  forEachOfBlock(file.module(), [&](const Node &node) { scope.add(node); });
  module.variables = scope.bound;
  for (const Node &statement : scope.imports)
    for (const auto &[name, alias] : importedNames(statement))
      if (name != "*")
        module.variables.insert(name);
  if (isModel || !isPython(file.path))
    return;
  module.packaging = packagingOf(file.path);
  for (const Node &statement : file.module().list("body")) {
    module.asksWhetherMain |= asksWhetherMain(statement);
    module.isScript |=
        asksWhetherMain(statement) || (module.packaging == Packaging::None && !isDefinition(statement));
  }
}

std::vector<std::string> Modules::importsOf(const File &file, std::vector<std::string> &absent) {
  std::vector<std::string> paths;
  const auto add = [&](const std::string &dotted, int level) {
    if (const std::string path = fileOf(file, dotted, level, &absent); !path.empty())
      paths.push_back(path);
  };
  forEachImport(file.module(), [&](const Node &node) {
    for (const Node &alias : node.list("names"))
      if (node.is("Import")) {
        add(alias.text("name"), 0);
      } else {
        const std::string from = node.text("module");
        add(from, node.number("level"));
        add(from.empty() ? alias.text("name") : from + "." + alias.text("name"), node.number("level"));
      }
  });
  if (isTestOfPython(file.path)) { // pytest runs what stands beside it and above it first
    std::string folder = parentOf(file.path);
    for (int above = 0; above < foldersAbove && !folder.empty(); ++above, folder = parentOf(folder))
      if (const std::string path = fileBelow(folder, "conftest", &absent); !path.empty())
        paths.push_back(path);
  }
  if (isPython(file.path))
    forEachText(file, [&](const std::string &, const std::string &path) { paths.push_back(path); });
  return paths;
}

void Modules::addModel(const std::string &name, const Meaning &meaning) {
  if (name.find('*') == std::string::npos)
    models.try_emplace(name, meaning);
  else
    patterns.emplace_back(name, meaning);
}

const Meaning *Modules::modelOf(const std::string &dotted) const {
  if (const auto found = models.find(dotted); found != models.end())
    return &found->second;
  for (const auto &[pattern, meaning] : patterns)
    if (fits(dotted, pattern))
      return &meaning;
  return nullptr;
}

Meaning Modules::meaningOf(const Module &module, const std::string &dotted, int level) const {
  Meaning meaning;
  const auto found = modules.find(fileOf(*module.file, dotted, level));
  if (found != modules.end()) {
    meaning.kind = Meaning::Kind::Module;
    meaning.module = &found->second;
  } else {
    meaning.name = dotted;
  }
  return meaning;
}

// What `from .. import *` brings.
std::map<std::string, Meaning> Modules::publicMeanings(const Meaning &owner) {
  std::map<std::string, Meaning> meanings;
  const Module &module = *owner.module;
  const std::optional<std::set<std::string>> listed = listedNames(module.file->module());
  const auto isPublic = [&](const std::string &name) {
    return listed ? listed->count(name) != 0 : !startsWith(name, "_");
  };
  for (const std::string &name : module.variables)
    if (isPublic(name))
      meanings[name] = {owner.kind, name, owner.module};
  for (const auto &[name, meaning] : module.meanings)
    if (isPublic(name))
      meanings[name] = meaning;
  return meanings;
}

std::map<std::string, Meaning> Modules::meaningsOf(const Module &module, const Node &statement) const {
  std::map<std::string, Meaning> meanings;
  if (bringsAll(statement)) {
    const Meaning owner = meaningOf(module, statement.text("module"), statement.number("level"));
    return owner.kind == Meaning::Kind::Module && owner.module != &module ? publicMeanings(owner) : meanings;
  }
  for (const auto &[bound, alias] : importedNames(statement)) {
    const std::string name = alias.text("name");
    if (statement.is("Import")) {
      meanings[bound] = meaningOf(module, alias.text("asname").empty() ? bound : name, 0);
      continue;
    }
    const int level = statement.number("level");
    const std::string from = statement.text("module");
    const std::string whole = from.empty() ? name : std::string(from).append(".").append(name);
    Meaning meaning = meaningOf(module, whole, level);
    if (meaning.kind == Meaning::Kind::Library)
      if (const Meaning owner = meaningOf(module, from, level); owner.kind == Meaning::Kind::Module) {
        const Meaning *member = find(*owner.module, name);
        if (member)
          meaning = *member;
        else if (owner.module->variables.count(name)) {
          meaning = owner; // a variable of that module
          meaning.name = name;
        }
      }
    meanings[bound] = meaning;
  }
  return meanings;
}

namespace {

// Base = nn.Module: what is assigned once, and is a name.
std::map<std::string, Node> aliasesIn(const File &file) {
  std::map<std::string, std::vector<Node>> assigned;
  forEachOfBlock(file.module(), [&](const Node &node) {
    Scope scope;
    scope.add(node);
    for (const std::string &name : scope.bound)
      assigned[name].push_back(node);
  });
  std::map<std::string, Node> aliases;
  for (const auto &[name, nodes] : assigned)
    if (nodes.size() == 1 && nodes[0].is("Assign") && nodes[0].list("targets")[0].is("Name") &&
        isOneOf(nodes[0]["value"].kind(), {"Name", "Attribute"}))
      aliases.emplace(name, nodes[0]["value"]);
  return aliases;
}

bool isClass(const Meaning &meaning) {
  const std::string_view last = std::string_view(meaning.name).substr(meaning.name.rfind('.') + 1);
  return meaning.kind == Meaning::Kind::Class ||
         (meaning.kind == Meaning::Kind::Library && !last.empty() && last[0] >= 'A' && last[0] <= 'Z');
}

// The class that the module calls by a name of its own.
std::optional<Meaning> classCalled(const Module &module, const Node &node) {
  if (node.is("Name")) {
    const auto found = module.meanings.find(node.text("id"));
    return found == module.meanings.end() ? std::nullopt : std::optional(found->second);
  }
  std::optional<Meaning> owner = node.is("Attribute") ? classCalled(module, node["value"]) : std::nullopt;
  if (!owner || owner->kind != Meaning::Kind::Library)
    return std::nullopt;
  owner->name += "." + node.text("attr");
  return owner;
}

} // namespace

// Those who have imported them have variables of their own.
void Modules::addRebound() {
  for (auto &[path, module] : modules) {
    const std::function<void(const Node &)> visit = [&, &owner = module](const Node &node) {
      if (node.is("Global"))
        for (const std::string &name : node.names("names"))
          owner.rebound.insert(name);
      for (const Node &target : node.is("Assign") ? node.list("targets") : std::vector<Node>{node["target"]})
        if (const Meaning *known = target.is("Attribute") ? find(owner, target["value"].text("id")) : nullptr;
            known && known->kind == Meaning::Kind::Module)
          modules.at(known->module->path).rebound.insert(target.text("attr"));
      for (const Node &child : node.children())
        visit(child);
    };
    if (!module.isModel)
      visit(module.file->module());
  }
  for (auto &[path, module] : modules)
    for (const std::string &name : module.variables)
      if (const auto known = module.meanings.find(name);
          known != module.meanings.end() && known->second.module &&
          known->second.module->rebound.count(known->second.name))
        module.meanings.erase(known);
}

void Modules::resolve() {
  // Definitions first, so that imports find them; again, for what is imported through another module.
  for (auto &[path, module] : modules)
    for (const Node &statement : module.file->module().list("body")) {
      const std::string name = statement.text("name");
      if (statement.is("FunctionDef") || statement.is("AsyncFunctionDef"))
        module.meanings[name] = {Meaning::Kind::Function, module.idOf(name).str(), nullptr};
      else if (statement.is("ClassDef"))
        module.meanings[name] = {Meaning::Kind::Class, module.typeOf(name).str(), nullptr};
      for (const Node &decorator : module.isModel ? statement.list("decorator_list") : std::vector<Node>())
        for (const Node &pattern : decorator.list("args"))
          addModel(pattern.constant().second, module.meanings[name]);
      if (module.isModel && statement.is("Expr") && statement["value"].is("Call")) // dt.numbers(..)
        for (const Node &number : statement["value"].list("args"))
          addModel(number.constant().second, {Meaning::Kind::Library, "dt.number", nullptr});
    }
  std::vector<std::pair<Module *, Node>> imports;
  for (auto &[path, module] : modules)
    forEachOfBlock(module.file->module(), [&owner = module, &imports](const Node &node) {
      if (isImport(node))
        imports.emplace_back(&owner, node);
    });
  std::map<Module *, std::map<std::string, Node>> aliases;
  for (auto &[path, module] : modules)
    if (!module.isModel)
      aliases[&module] = aliasesIn(*module.file);
  bool hasChanged = true;
  for (int round = 0; hasChanged && round < longestChain; ++round) {
    hasChanged = false;
    for (const auto &[owner, statement] : imports)
      for (auto &[name, meaning] : meaningsOf(*owner, statement)) {
        if (bringsAll(statement) && owner->variables.count(name)) // what the module binds itself counts
          continue;
        Meaning &known = owner->meanings[name];
        hasChanged |=
            known.kind != meaning.kind || known.module != meaning.module || known.name != meaning.name;
        known = std::move(meaning);
      }
    for (const auto &[owner, names] : aliases)
      for (const auto &[name, value] : names)
        if (const auto meaning = classCalled(*owner, value); meaning && isClass(*meaning))
          hasChanged |= owner->meanings.emplace(name, *meaning).second;
  }
  addRebound();
  addObjects();
  for (auto &[path, module] : modules)
    if (!module.isModel && isPython(path))
      forEachText(*module.file, [&owner = module, this](const std::string &text, const std::string &data) {
        if (const auto found = modules.find(data); found != modules.end())
          owner.data.emplace(text, &found->second);
      });
  forgetDecorated();
  // A name that is assigned, too, has no fixed meaning.
  for (auto &[path, module] : modules)
    forEachOfBlock(module.file->module(), [&owner = module, &aliases](const Node &node) {
      Scope assigned;
      if (isOneOf(node.kind(), {"Assign", "AugAssign", "AnnAssign", "For"}))
        assigned.add(node);
      for (const std::string &name : assigned.bound)
        if (const auto found = owner.meanings.find(name);
            found != owner.meanings.end() && (!aliases[&owner].count(name) || !isClass(found->second)))
          owner.meanings.erase(found);
    });
}

const Meaning *Modules::find(const Module &module, const std::string &name) {
  const auto found = module.meanings.find(name);
  return found == module.meanings.end() ? nullptr : &found->second;
}

} // namespace devicetidy::python
