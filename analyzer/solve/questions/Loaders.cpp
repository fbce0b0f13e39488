#include "analyzer/solve/questions/Loaders.h"

#include "analyzer/facts/NameParts.h"
#include "analyzer/solve/library/config/Config.h"
#include "analyzer/solve/library/config/MapText.h"
#include "analyzer/solve/questions/Distributed.h"

#include <algorithm>
#include <cctype>

namespace devicetidy {
namespace {

// Does a word of this role occur in `text`, in any case?
bool hasWord(std::string_view text, std::string_view role) {
  std::string lowered(text);
  std::transform(lowered.begin(), lowered.end(), lowered.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  return !models::findRole(lowered, role).empty();
}

bool isMaker(std::string_view callee) { return models::hasRole(callee, "maker"); }

LoaderKind pythonKind(const std::string &path) {
  const std::string_view function = std::string_view(path).substr(path.rfind('.') + 1);
  return models::hasRole(function, "bookkeeping") ? LoaderKind::None : LoaderKind::Strong;
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
               types.derivesFrom(id, "torch::jit::Module");
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
  if (isLateBound(call.fact))
    return std::string(lastPart(name));
  if (isMaker(name) && !call.fact.templateTypes.empty())
    return call.fact.templateTypes[0].str();
  // PyRun_SimpleString is a macro over PyRun_SimpleStringFlags.
  return std::string(runsPython(name) ? models::findRole(name, "runs_python") : name);
}

LoaderKind Loaders::kindOf(const Call &call) {
  const Fact &fact = call.fact;
  const std::string_view callee = fact.name.view();
  if (runsPython(callee) || startsProgram(callee, machine.names))
    return LoaderKind::Strong;
  if (std::string path = pythonCallee(call); !path.empty())
    return pythonKind(path);
  if (isLateBound(fact)) {
    const std::string_view path = lastPart(callee), name = path.substr(path.rfind('.') + 1);
    return models::hasRole(name, "loader") || isListed(machine.names.loaders, name) ? LoaderKind::Known
                                                                                    : LoaderKind::None;
  }
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
  if (models::hasRole(last, "loader") || isListed(machine.names.loaders, callee))
    return LoaderKind::Known;
  // Library calls (containers, smart pointers, JSON) carry options about; they load nothing.
  if (!makes && !isProject)
    return LoaderKind::None;
  const bool modules = holdsModules(fact.type) || hasWord(fact.type.view(), "model_type");
  if (makes)
    return modules ? (machine.types.isModule(fact.templateTypes.empty() ? Name() : fact.templateTypes[0])
                          ? LoaderKind::Strong
                          : LoaderKind::Weak)
                   : LoaderKind::None;
  const bool isPlan = hasWord(fact.type.view(), "plan");
  if (hasWord(last, "loads") && !isPlan) {
    if (modules || hasWord(last, "model"))
      return LoaderKind::Strong;
    if (fact.hasObject &&
        (holdsModules(fact.operands[0].type) || hasWord(fact.operands[0].type.view(), "model")))
      return LoaderKind::Strong;
  }
  return modules && !isPlan ? LoaderKind::Weak : LoaderKind::None;
}

} // namespace devicetidy
