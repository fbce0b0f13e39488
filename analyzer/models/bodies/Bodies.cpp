#include "analyzer/models/bodies/Bodies.h"

#include "analyzer/facts/Binary.h"

#include "BodyHeader.inc"
#include "ModelBodies.inc"

#include <cstdlib>

namespace devicetidy::models {
namespace {

std::vector<Unit> builtInUnits() {
  std::string error;
  const std::string_view bytes(reinterpret_cast<const char *>(bodyFacts), sizeof bodyFacts);
  std::optional<std::vector<Unit>> units = readBinary(bytes, error);
  if (!units) // the build wrote them with the same format
    std::abort();
  return std::move(*units);
}

} // namespace

const std::shared_ptr<const Program> &bodies() {
  static const auto builtIn = std::make_shared<const Program>(link(builtInUnits()));
  const UserModels *user = userModels();
  return user && user->bodies ? user->bodies : builtIn;
}

// The user's come first: the first definition of a function wins.
void linkBodies(UserModels &models) {
  if (models.units.empty())
    return;
  std::vector<Unit> units = models.units;
  for (Unit &unit : builtInUnits())
    units.push_back(std::move(unit));
  models.bodies = std::make_shared<const Program>(link(std::move(units)));
}

std::string_view bodyHeader() {
  return {reinterpret_cast<const char *>(bodyHeaderText), sizeof bodyHeaderText};
}

} // namespace devicetidy::models
