#include "analyzer/models/Distributed.h"

#include "analyzer/facts/NameParts.h"
#include "analyzer/models/Models.h"

namespace devicetidy {

bool isListed(const std::set<std::string, std::less<>> &names, std::string_view name) {
  return !names.empty() && (names.count(name) || names.count(lastPart(name)));
}

bool initialises(std::string_view name, const DistributedNames &names) {
  return models::hasRole(name, "init") || isListed(names.initialisers, name);
}

bool runsPython(std::string_view callee) { return models::hasRole(callee, "runs_python"); }

bool startsProgram(std::string_view callee, const DistributedNames &names) {
  return isListed(names.launchers, callee) || models::hasRole(callee, "starts_program");
}

} // namespace devicetidy
