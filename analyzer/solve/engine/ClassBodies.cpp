#include "analyzer/solve/engine/ClassBodies.h"

#include <algorithm>

#include "analyzer/facts/NameParts.h"

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
  const Type *type = program.type(derived);
  return derived == base || (type && std::any_of(type->bases.begin(), type->bases.end(), [&](Name each) {
                               return isOrDerivesFrom(program, each, base);
                             }));
}

bool areRelated(const Program &program, Name a, Name b) {
  return isOrDerivesFrom(program, a, b) || isOrDerivesFrom(program, b, a);
}

} // namespace devicetidy
