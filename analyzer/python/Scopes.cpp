#include "analyzer/python/Scopes.h"

#include "analyzer/facts/NameParts.h"

namespace devicetidy::python {

bool hasScope(const Node &node) {
  return isOneOf(node.kind(), {"FunctionDef", "AsyncFunctionDef", "Lambda", "ClassDef", "ListComp", "SetComp",
                               "DictComp", "GeneratorExp"});
}

bool isImport(const Node &node) { return node.is("Import") || node.is("ImportFrom"); }

std::vector<std::pair<std::string, Node>> importedNames(const Node &statement) {
  std::vector<std::pair<std::string, Node>> names;
  for (const Node &alias : statement.list("names")) {
    const std::string as = alias.text("asname"), name = alias.text("name");
    const bool isDotted = statement.is("Import") && as.empty();
    names.emplace_back(isDotted ? name.substr(0, name.find('.')) : as.empty() ? name : as, alias);
  }
  return names;
}

void forEachOfBlock(const Node &node, const std::function<void(const Node &)> &visit) {
  for (const Node &child : node.children()) {
    visit(child);
    if (!hasScope(child))
      forEachOfBlock(child, visit);
  }
}

void addTargets(const Node &target, std::set<std::string> &names) {
  if (target.is("Name"))
    names.insert(target.text("id"));
  for (const Node &each : target.list("elts"))
    addTargets(each, names);
  if (target.is("Starred"))
    addTargets(target["value"], names);
}

void addNames(const Node &node, std::set<std::string> &names) {
  if (node.is("Name"))
    names.insert(node.text("id"));
  for (const Node &child : node.children())
    addNames(child, names);
}

void Scope::add(const Node &node) {
  if (node.is("Assign"))
    for (const Node &target : node.list("targets"))
      addTargets(target, bound);
  else if (isOneOf(node.kind(), {"AugAssign", "AnnAssign", "For", "AsyncFor", "NamedExpr", "comprehension"}))
    addTargets(node["target"], bound);
  else if (node.is("withitem"))
    addTargets(node["optional_vars"], bound);
  else if (node.is("ExceptHandler") ||
           isOneOf(node.kind(), {"FunctionDef", "AsyncFunctionDef", "ClassDef", "MatchAs", "MatchStar"}))
    bound.insert(node.text("name"));
  else if (isImport(node))
    imports.push_back(node);
  else if (node.is("Global"))
    for (const std::string &name : node.names("names"))
      declaredGlobal.insert(name);
  else if (node.is("Nonlocal"))
    for (const std::string &name : node.names("names"))
      declaredNonlocal.insert(name);
  else if (node.is("Yield") || node.is("YieldFrom"))
    yields = true;
  bound.erase("");
}

} // namespace devicetidy::python
