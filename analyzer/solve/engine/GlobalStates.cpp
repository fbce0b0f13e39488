#include "analyzer/solve/engine/GlobalStates.h"

#include <algorithm>

namespace devicetidy {
namespace {

// Can an object of `type` lead to a tensor, a module or a device?
bool holdsState(const Types &types, Name type, std::set<Name> &seen) {
  if (!seen.insert(type).second)
    return false;
  switch (types.classOf(type)) {
  case TypeClass::Tensor:
  case TypeClass::Device:
  case TypeClass::Holder:
  case TypeClass::AnyModule:
    return true;
  default:
    break;
  }
  const Type *known = types.program.type(type);
  if (!known)
    return false;
  auto leadsOn = [&](Name part) { return holdsState(types, part, seen); };
  return types.isModule(type) || (!types.inner(type).empty() && leadsOn(types.inner(type))) ||
         std::any_of(known->args.begin(), known->args.end(), leadsOn) ||
         (known->isProject && std::any_of(known->fields.begin(), known->fields.end(),
                                          [&](const Field &field) { return leadsOn(field.type); }));
}

// Puts what `from` holds behind what `to` holds.
template <typename Part> void append(std::vector<Part> &to, std::vector<Part> &from) {
  to.insert(to.end(), from.begin(), from.end());
  from.clear();
}

} // namespace

std::vector<GlobalState>
globalStates(const Types &types, const std::set<Name> &flags, const std::vector<const Function *> &functions,
             const std::function<const std::set<Name> &(const Function &)> &mentioned) {
  std::set<Name> shared;
  auto isStaticLocal = [&](Name id) {
    return flags.count(Name(id.str() + std::string(initialisedSuffix))) != 0;
  };
  for (const auto &[id, global] : types.program.globals)
    if (std::set<Name> seen; (!global.isConst || isStaticLocal(id)) && holdsState(types, global.type, seen))
      shared.insert(id);
  std::vector<GlobalState> groups;
  for (const Function *function : functions) {
    GlobalState *own = nullptr;
    for (Name name : mentioned(*function)) {
      if (!shared.count(name))
        continue;
      const auto has = [&](const GlobalState &group) {
        return std::find(group.globals.begin(), group.globals.end(), name) != group.globals.end();
      };
      const auto found = std::find_if(groups.begin(), groups.end(), has);
      if (found == groups.end()) {
        if (!own)
          own = &groups.emplace_back();
        own->globals.push_back(name);
      } else if (!own) {
        own = &*found;
      } else if (own != &*found) {
        append(own->globals, found->globals);
        append(own->functions, found->functions);
      }
    }
    if (own)
      own->functions.push_back(function);
  }
  groups.erase(std::remove_if(groups.begin(), groups.end(),
                              [&](const GlobalState &group) {
                                return group.functions.size() < 2 &&
                                       std::none_of(group.globals.begin(), group.globals.end(),
                                                    isStaticLocal);
                              }),
               groups.end());
  return groups;
}

} // namespace devicetidy
