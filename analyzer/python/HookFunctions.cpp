#include "analyzer/python/HookFunctions.h"

#include "analyzer/facts/NameParts.h"
#include "analyzer/models/Models.h"
#include "analyzer/python/Scopes.h"

#include <algorithm>

namespace devicetidy::python {

HookFunctions::HookFunctions(const std::vector<Node> &body) {
  for (const Node &each : body)
    findRegistered(each);
  if (!makers.empty())
    for (const Node &each : body)
      findMade(each);
}

// hook, self.hook, a if c else b, lambda .., partial(hook, ..), self.make(..)
void HookFunctions::add(const Node &written) {
  if (written.is("Name"))
    names.insert(written.text("id"));
  else if (written.is("Attribute"))
    names.insert(written.text("attr"));
  else if (written.is("Lambda"))
    lambdas.push_back(written);
  else if (written.is("IfExp"))
    for (const char *way : {"body", "orelse"})
      add(written[way]);
  if (!written.is("Call"))
    return;
  const Node callee = written["func"];
  const std::string called = callee.text(callee.is("Attribute") ? "attr" : "id");
  const std::vector<Node> given = written.list("args");
  if (called == "partial" && !given.empty())
    add(given.front());
  else
    makers.insert(called);
}

void HookFunctions::findRegistered(const Node &node) {
  if (const std::vector<Node> given = node.list("args");
      node.is("Call") && !given.empty() && models::hasRole(node["func"].text("attr"), "adds_hook"))
    add(given.front());
  for (const Node &child : node.children())
    findRegistered(child);
}

void HookFunctions::findMade(const Node &node) {
  if (node.is("FunctionDef") && makers.count(node.text("name")))
    forEachOfBlock(node, [&](const Node &each) {
      if (each.is("Return"))
        add(each["value"]);
    });
  for (const Node &child : node.children())
    findMade(child);
}

bool HookFunctions::has(const Node &function) const {
  return names.count(function.text("name")) != 0 ||
         std::find(lambdas.begin(), lambdas.end(), function) != lambdas.end();
}

std::string HookFunctions::tensorOf(const Node &function) const {
  const std::vector<Node> parameters = function["args"].list("args");
  if (!has(function) || parameters.empty())
    return {};
  const std::string last = parameters.back().text("arg");
  bool isAsked = false;
  forEachOfBlock(function, [&](const Node &node) {
    const std::vector<Node> given = node.list("args");
    isAsked |= node.is("Call") && node["func"].text("id") == "isinstance" && !given.empty() &&
               given.front().text("id") == last;
  });
  return isAsked ? std::string() : last;
}

} // namespace devicetidy::python
