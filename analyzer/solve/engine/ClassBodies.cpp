#include "analyzer/solve/engine/ClassBodies.h"

#include "analyzer/facts/NameParts.h"

#include <algorithm>
#include <set>

namespace devicetidy {
namespace {

void addBodies(const Program &program, Name className, std::set<Name> &seen,
               std::vector<const Function *> &bodies) {
  const Type *type = program.type(className);
  if (!type || !seen.insert(className).second)
    return;
  for (auto base = type->bases.rbegin(); base != type->bases.rend(); ++base) // the first one counts most
    addBodies(program, *base, seen, bodies);
  for (Name id : type->methods)
    if (const Function *method = program.function(id);
        method && method->hasBody && endsWith(method->name.view(), "::@class"))
      bodies.push_back(method);
}

} // namespace

std::vector<const Function *> classBodies(const Program &program, Name className) {
  std::vector<const Function *> bodies;
  std::set<Name> seen;
  addBodies(program, className, seen, bodies);
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
