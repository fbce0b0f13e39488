#include "analyzer/solve/questions/Loaders.h"

#include "analyzer/solve/domain/NameParts.h"
#include "analyzer/solve/library/config/Config.h"
#include "analyzer/solve/library/config/MapText.h"
#include "analyzer/solve/questions/Distributed.h"

#include <algorithm>
#include <cctype>

namespace devicetidy {
namespace {

bool hasWord(const std::string &lowered, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return lowered.find(word) != std::string::npos; });
}

std::string lowered(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  return result;
}

bool namesLoading(const std::string &name) {
  return hasWord(name, {"load", "pretrained", "dispatch", "build", "create", "make", "construct",
                        "instantiate", "restore", "initmodel", "init_model", "setupmodel", "setup_model",
                        "getmodel", "get_model", "preparemodel", "prepare_model", "open"});
}

bool namesModel(const std::string &name) {
  return hasWord(
      name, {"model", "pretrained", "checkpoint", "weights", "network", "llm", "transformer", "backbone"});
}

// Python methods of dictionaries and of reporting that get a device_map without loading anything.
bool isBookkeeping(std::string_view method) {
  return isOneOf(method, {"update",  "pop",        "get",    "setdefault", "__setitem__", "items", "keys",
                          "values",  "print",      "format", "join",       "append",      "info",  "debug",
                          "warning", "error",      "dumps",  "dump",       "dict",        "len",   "str",
                          "repr",    "isinstance", "copy",   "deepcopy"});
}

bool isMaker(std::string_view callee) { return isOneOf(callee, {"std::make_shared", "std::make_unique"}); }

LoaderKind pythonKind(const std::string &path) {
  return isBookkeeping(std::string_view(path).substr(path.rfind('.') + 1)) ? LoaderKind::None
                                                                           : LoaderKind::Strong;
}

} // namespace

bool Loaders::holdsModules(Name id) {
  if (id.empty())
    return false;
  if (auto found = known.find(id); found != known.end())
    return found->second;
  known[id] = false; // ends recursion
  const Types &types = machine.types;
  const TypeClass kind = types.classOf(id);
  bool holds = types.isModule(id) || kind == TypeClass::Holder || kind == TypeClass::AnyModule ||
               id == Name("torch::jit::Module") || id == Name("torch::jit::script::Module");
  if (const Type *type = machine.program.type(id); type && !holds) {
    std::vector<Name> parts = type->args;
    parts.insert(parts.end(), type->bases.begin(), type->bases.end());
    parts.push_back(type->pointee);
    if (type->isProject)
      for (const Field &field : type->fields)
        parts.push_back(field.type);
    holds = std::any_of(parts.begin(), parts.end(), [&](Name part) { return holdsModules(part); });
  }
  return known[id] = holds;
}

std::string Loaders::nameOf(const Call &call) {
  if (std::string path = pythonCallee(call); !path.empty() && path != "?")
    return path.substr(0, 2) == "?." ? path.substr(2) : path;
  if (call.fact.kind == FactKind::Construct)
    return call.fact.type.str();
  const std::string_view name = call.fact.name.view();
  if (isMaker(name) && !call.fact.templateTypes.empty())
    return call.fact.templateTypes[0].str();
  // PyRun_SimpleString is a macro over PyRun_SimpleStringFlags.
  constexpr std::string_view suffix = "Flags";
  const bool isWrapped =
      runsPython(name) && name.size() > suffix.size() && name.substr(name.size() - suffix.size()) == suffix;
  return std::string(isWrapped ? name.substr(0, name.size() - suffix.size()) : name);
}

LoaderKind Loaders::kindOf(const Call &call) {
  const Fact &fact = call.fact;
  const std::string_view callee = fact.name.view();
  if (runsPython(callee) || startsProgram(callee, machine.names))
    return LoaderKind::Strong;
  if (std::string path = pythonCallee(call); !path.empty())
    return pythonKind(path);
  if (fact.kind == FactKind::Construct) {
    if (machine.types.isModule(fact.type) || machine.types.classOf(fact.type) == TypeClass::Holder)
      return LoaderKind::Strong;
    return machine.types.isProject(fact.type) && holdsModules(fact.type) ? LoaderKind::Weak
                                                                         : LoaderKind::None;
  }
  if (fact.hasObject && isDeviceMapSetter(lastPart(callee))) // keeps the map for a loader
    return LoaderKind::None;
  const bool makes = isMaker(callee);
  const bool isProject = !fact.target.empty() && machine.program.function(fact.target);
  const std::string_view last = lastPart(callee);
  if (models::isDistributed(last, "loader") || isListed(machine.names.loaders, callee))
    return LoaderKind::Known;
  // Library calls (containers, smart pointers, JSON) carry options about; they load nothing.
  if (!makes && !isProject)
    return LoaderKind::None;
  const std::string name = lowered(last);
  const bool modules = holdsModules(fact.type) || hasWord(lowered(fact.type.view()), {"model", "network"});
  if (makes)
    return modules ? (machine.types.isModule(fact.templateTypes.empty() ? Name() : fact.templateTypes[0])
                          ? LoaderKind::Strong
                          : LoaderKind::Weak)
                   : LoaderKind::None;
  const bool isPlan =
      hasWord(lowered(fact.type.view()), {"config", "option", "argument", "setting", "basic_string"});
  if (namesLoading(name) && !isPlan) {
    if (modules || namesModel(name))
      return LoaderKind::Strong;
    if (fact.hasObject &&
        (holdsModules(fact.operands[0].type) || namesModel(lowered(fact.operands[0].type.view()))))
      return LoaderKind::Strong;
  }
  return modules && !isPlan ? LoaderKind::Weak : LoaderKind::None;
}

} // namespace devicetidy
