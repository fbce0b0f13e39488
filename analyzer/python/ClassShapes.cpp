#include "analyzer/python/ClassShapes.h"

#include "analyzer/python/Scopes.h"
#include "analyzer/python/TensorUses.h"

#include <algorithm>

namespace devicetidy::python {
namespace {

void addAssigned(const Node &target, const std::string &self, std::set<std::string> &members) {
  if (target.is("Attribute") && target["value"].text("id") == self)
    members.insert(target.text("attr"));
  for (const Node &each : target.list("elts"))
    addAssigned(each, self, members);
}

void addMembers(const Node &definition, std::set<std::string> &members) {
  for (const Node &each : definition.list("body")) {
    if (each.is("FunctionDef"))
      members.insert(each.text("name"));
    if (each.is("AnnAssign"))
      members.insert(each["target"].text("id"));
    if (each.is("Assign"))
      for (const Node &target : each.list("targets"))
        members.insert(target.text("id"));
    const std::vector<Node> parameters = each["args"].list("args");
    if (parameters.empty())
      continue;
    const std::string self = parameters.front().text("arg");
    forEachOfBlock(each, [&](const Node &node) {
      for (const Node &target : node.is("Assign") ? node.list("targets") : std::vector<Node>{node["target"]})
        addAssigned(target, self, members);
    });
  }
}

void addAsked(const Node &node, std::map<std::string, std::set<std::string>> &asked) {
  if (node.is("Attribute") && node["value"].is("Name"))
    asked[node["value"].text("id")].insert(node.text("attr"));
  for (const Node &child : node.children())
    addAsked(child, asked);
}

} // namespace

ClassShapes::ClassShapes(const std::vector<Node> &body) {
  for (const Node &each : body)
    if (each.is("ClassDef"))
      definitions.emplace(each.text("name"), each);
  for (const auto &[name, definition] : definitions)
    for (const Node &base : definition.list("bases"))
      if (const std::string text = base.text("id"); text != name && definitions.count(text))
        bases[name].push_back(text);
  for (const auto &[name, definition] : definitions)
    membersOf(name);
}

const std::set<std::string> &ClassShapes::membersOf(const std::string &name) {
  const auto [entry, isNew] = members.try_emplace(name);
  if (!isNew)
    return entry->second;
  std::set<std::string> all;
  addMembers(definitions.at(name), all);
  for (const std::string &base : bases[name]) {
    const std::set<std::string> &inherited = membersOf(base);
    all.insert(inherited.begin(), inherited.end());
  }
  return members[name] = std::move(all);
}

bool ClassShapes::derives(const std::string &name, const std::string &base) const {
  const auto found = bases.find(name);
  return name == base ||
         (found != bases.end() && std::any_of(found->second.begin(), found->second.end(),
                                              [&](const std::string &each) { return derives(each, base); }));
}

std::string ClassShapes::classWith(const std::set<std::string> &used) const {
  if (std::all_of(used.begin(), used.end(), isOfMany))
    return {};
  std::vector<std::string> fitting;
  for (const auto &[name, own] : members)
    if (std::includes(own.begin(), own.end(), used.begin(), used.end()))
      fitting.push_back(name);
  for (const std::string &base : fitting)
    if (std::all_of(fitting.begin(), fitting.end(),
                    [&](const std::string &each) { return derives(each, base); }))
      return base;
  return {};
}

std::map<std::string, std::set<std::string>> attributesAsked(const Node &function) {
  std::map<std::string, std::set<std::string>> asked;
  addAsked(function, asked);
  return asked;
}

} // namespace devicetidy::python
