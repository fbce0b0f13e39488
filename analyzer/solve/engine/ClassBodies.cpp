#include "analyzer/solve/engine/ClassBodies.h"

#include "analyzer/facts/NameParts.h"

#include <algorithm>

namespace devicetidy {

static constexpr std::string_view body = "@class";

bool isClassBody(const Function &function) { return lastPart(function.name.view()) == body; }

std::vector<const Function *> classBodies(const Machine &machine, Name className) {
  std::vector<const Function *> bodies;
  for (Name each : machine.types.lookupOrder(className))
    if (const Function *found = ownMethod(machine, each, body))
      bodies.push_back(found);
  std::reverse(bodies.begin(), bodies.end());
  return bodies;
}

bool isOrDerivesFrom(const Program &program, Name derived, Name base) {
  std::vector<Name> behind{derived}; // with the class itself; some seem to be behind themselves
  for (std::size_t i = 0; i < behind.size() && behind[i] != base; ++i)
    if (const Type *type = program.type(behind[i]))
      for (Name each : type->bases)
        if (std::find(behind.begin(), behind.end(), each) == behind.end())
          behind.push_back(each);
  return std::find(behind.begin(), behind.end(), base) != behind.end();
}

bool areRelated(const Program &program, Name a, Name b) {
  return isOrDerivesFrom(program, a, b) || isOrDerivesFrom(program, b, a);
}

} // namespace devicetidy
