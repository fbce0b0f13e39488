#include "analyzer/python/ParameterNames.h"

#include "analyzer/facts/NameParts.h"
#include "analyzer/python/FunctionLowering.h"
#include "analyzer/python/Scopes.h"
#include "analyzer/python/TensorUses.h"

#include <algorithm>

namespace devicetidy::python {
namespace {

// range(x), math.log(x), np.ceil(x), torch.zeros(x), nn.Linear(x, 2): what is given there is a number, or
// none of a GPU.
bool takesNumbers(const Module &module, const Node &callee) {
  if (isOneOf(callee.text("id"), {"range", "int"}))
    return true;
  const std::string name = libraryName(module, callee);
  const std::string last = name.substr(name.rfind('.') + 1);
  const bool rounds =
      startsWith(name, "numpy.") && isOneOf(last, {"ceil", "floor", "log", "log2", "prod", "round", "sqrt"});
  return startsWith(name, "math.") || rounds ||
         (startsWith(name, "torch.nn.") && !last.empty() && last[0] >= 'A' && last[0] <= 'Z') ||
         (startsWith(name, "torch.") &&
          isOneOf(last, {"arange", "zeros", "ones", "full", "linspace", "randint", "eye", "empty", "rand",
                         "randn", "randperm"}));
}

void addName(const Node &node, std::set<std::string> &names) {
  if (node.is("Name"))
    names.insert(node.text("id"));
}

// The names that a number is computed of: of n // 2 + 1, n.
void addComputed(const Node &node, std::set<std::string> &names) {
  addName(node, names);
  for (const char *side : {"left", "right", "operand"})
    if (node.is("BinOp") || node.is("UnaryOp"))
      addComputed(node[side], names);
}

// t > 0 and t >= self.start decide where the program goes: t is one number.
void addDecided(const Node &test, std::set<std::string> &names) {
  for (const Node &each : test.list("values"))
    addDecided(each, names);
  if (!test.is("Compare"))
    return;
  const Node other = test.list("comparators").front();
  const bool isOrder = isOneOf(test.list("ops").front().kind(), {"Lt", "Gt", "LtE", "GtE"});
  if (isOrder || isOneOf(other.constant().first, {"int", "float"}))
    addName(test["left"], names);
  if (isOrder)
    addName(other, names);
}

// Of what numbers are computed, in the order of the statements from the last one on.
void addSources(const Node &function, std::set<std::string> &numbers) {
  std::vector<Node> assigned;
  forEachOfBlock(function, [&](const Node &node) {
    if (node.is("Assign") && node["value"].is("BinOp"))
      assigned.push_back(node);
  });
  for (auto node = assigned.rbegin(); node != assigned.rend(); ++node)
    if (numbers.count(node->list("targets").front().text("id")))
      addComputed((*node)["value"], numbers);
}

bool asksFor(const Node &node, const std::string &object, const std::string &key) {
  const std::vector<Node> children = node.children();
  return (node.is("Subscript") && node["value"].text("id") == object && node["slice"].text("id") == key) ||
         std::any_of(children.begin(), children.end(),
                     [&](const Node &child) { return asksFor(child, object, key); });
}

// for key in table: table[key]
void addTables(const Node &node, std::set<std::string> &names) {
  for (const Node &loop : node.is("For") ? std::vector<Node>{node} : node.list("generators"))
    if (const std::string key = loop["target"].text("id"), table = loop["iter"].text("id");
        !key.empty() && !table.empty() && asksFor(node, table, key))
      names.insert(table);
}

// The names that a function uses as numbers, texts, dictionaries, functions: as no tensor is used.
std::set<std::string> usedOtherwise(const Module &module, const Node &function) {
  std::set<std::string> names, numbers;
  forEachOfBlock(function, [&](const Node &node) {
    if (node.is("Subscript") && node["slice"].constant().first == "str")
      addName(node["value"], names);
    if (node.is("Compare"))
      for (const Node &other : node.list("comparators"))
        if (other.constant().first == "str")
          addName(node["left"], names);
    if (isOneOf(node.kind(), {"If", "IfExp", "While", "Assert"}))
      addDecided(node["test"], numbers);
    addTables(node, names);
    if (!node.is("Call"))
      return;
    addName(node["func"], names);
    if (isOneOf(node["func"].text("attr"), {"items", "keys", "parameters", "named_parameters", "append"}))
      addName(node["func"]["value"], names);
    const std::vector<Node> given = node.list("args");
    if (node["func"].text("id") == "isinstance" && !given.empty())
      addName(given.front(), names);
    if (takesNumbers(module, node["func"]))
      for (const Node &each : given)
        addComputed(each, names);
  });
  addSources(function, numbers);
  names.merge(numbers);
  return names;
}

// The members in cat(self.parts) and stack(list(self.parts)).
void addJoined(const Module &module, const Node &function, std::set<std::string> &members) {
  forEachOfBlock(function, [&](const Node &node) {
    if (!node.is("Call") || node.list("args").empty() || !joinsTensors(module, node))
      return;
    Node joined = node.list("args").front();
    if (isOneOf(joined["func"].text("id"), {"list", "tuple"}) && !joined.list("args").empty())
      joined = joined.list("args").front();
    if (joined.is("Attribute"))
      members.insert(joined.text("attr"));
  });
}

} // namespace

std::vector<Node> functionsIn(const std::vector<Node> &body) {
  std::vector<Node> functions;
  for (const Node &each : body)
    if (each.is("FunctionDef")) {
      functions.push_back(each);
    } else if (each.is("ClassDef")) {
      const std::vector<Node> methods = functionsIn(each.list("body"));
      functions.insert(functions.end(), methods.begin(), methods.end());
    }
  return functions;
}

ParameterNames parameterNames(const Module &module, const std::vector<Node> &functions) {
  ParameterNames names;
  for (const Node &function : functions) {
    const bool isConstructor = function.text("name") == "__init__";
    const TensorUses used = tensorUses(module, function);
    const std::set<std::string> otherwise = usedOtherwise(module, function);
    addJoined(module, function, names.joined);
    const std::vector<Node> parameters = function["args"].list("args");
    const std::size_t plain = parameters.size() - function["args"].list("defaults").size();
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const std::string name = parameters[i].text("arg");
      const Name said = typeOfAnnotation(parameters[i]["annotation"]);
      if (const Name type = startsWith(said.view(), holdsType) ? said : Name(); parameters[i]["annotation"])
        if (const auto [entry, isNew] = names.containers.emplace(name, type); !isNew && entry->second != type)
          entry->second = {};
      if (i >= plain || used.arrays.count(name) || otherwise.count(name) ||
          !isOneOf(said.view(), {"", "at::Tensor"}))
        (isConstructor ? names.ofConstructors : names.others).insert(name); // a default may be a number
      else if (!isConstructor && (used.tensors.count(name) || !said.empty()))
        names.tensors.insert(name);
    }
  }
  for (const std::string &name : names.others)
    names.tensors.erase(name);
  return names;
}

std::set<std::string> comparedWithNone(const Node &function) {
  std::set<std::string> names;
  forEachOfBlock(function, [&](const Node &node) {
    if (node.is("Compare") && node.list("comparators").front().constant().first == "NoneType")
      addName(node["left"], names);
  });
  return names;
}

std::set<std::string> appendedTo(const Node &function, const std::set<std::string> &members) {
  std::set<std::string> names;
  forEachOfBlock(function, [&](const Node &node) {
    const Node list = node["func"]["value"];
    if (node.is("Call") && node["func"].text("attr") == "append" && list.is("Attribute") &&
        members.count(list.text("attr")) && node.list("args").size() == 1)
      addName(node.list("args").front(), names);
  });
  return names;
}

std::set<std::string> computedWith(const Node &function) {
  const auto isSequence = [](const Node &node) {
    return isOneOf(node.kind(), {"List", "Tuple", "ListComp"});
  };
  std::set<std::string> names, counts;
  forEachOfBlock(function, [&](const Node &node) {
    if (node.is("Call") && node["func"].text("id") == "range")
      for (const Node &argument : node.list("args"))
        addName(argument, counts);
    if (!node.is("BinOp") || !isOneOf(node["op"].kind(), {"Add", "Sub", "Mult", "Div"}) ||
        node["left"].is("Constant") || node["right"].is("Constant"))
      return;
    const bool repeats = isSequence(node["left"]) || isSequence(node["right"]); // [x] * n
    for (const char *side : {"left", "right"})
      addName(node[side], repeats ? counts : names);
  });
  for (const std::string &name : counts)
    names.erase(name);
  return names;
}

} // namespace devicetidy::python
