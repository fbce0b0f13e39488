#include "analyzer/solve/engine/Drivers.h"

#include "analyzer/facts/NameParts.h"

#include <algorithm>

namespace devicetidy {
namespace {

// Is it a method of a model, from which other methods of its class are run?
bool isDriver(const Function &method) {
  return method.isModel && models::hasRole(lastPart(method.name.view()), "drives");
}

std::vector<const Function *> ownDrivers(const Machine &machine, Name className) {
  std::vector<const Function *> drivers;
  if (const Type *type = machine.program.type(className))
    for (Name id : type->methods)
      if (const Function *method = machine.program.function(id); method && isDriver(*method))
        drivers.push_back(method);
  return drivers;
}

} // namespace

std::vector<const Function *> driversOf(const Machine &machine, Name className) {
  std::vector<const Function *> drivers;
  for (Name each : machine.types.lookupOrder(className))
    for (const Function *driver : ownDrivers(machine, each))
      if (findMethod(machine, className, lastPart(driver->name.view())) == driver)
        drivers.push_back(driver);
  return drivers;
}

bool isDriven(const Machine &machine, const Function &method) {
  const std::string_view name = lastPart(method.name.view());
  if (method.className.empty() || method.isModel || driversOf(machine, method.className).empty())
    return false;
  const std::vector<Name> order = machine.types.lookupOrder(method.className);
  return std::any_of(order.begin(), order.end(), [&](Name each) {
    const Function *base = ownMethod(machine, each, name);
    return base && base->isModel && !base->isConstructor && !ownDrivers(machine, each).empty();
  });
}

} // namespace devicetidy
