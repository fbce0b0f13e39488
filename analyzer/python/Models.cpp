#include "analyzer/python/Models.h"

#include "analyzer/python/Lower.h"
#include "analyzer/python/Parse.h"

#include <cstdlib>

namespace devicetidy::python {
namespace {

#include "PythonModels.inc"

const Parsed &models() {
  static const Parsed *parsed = [] {
    auto *read = new Parsed();
    std::string error;
    if (!readLines({reinterpret_cast<const char *>(modelTrees), sizeof modelTrees}, *read, error))
      std::abort(); // the build wrote them
    return read;
  }();
  return *parsed;
}

} // namespace

void addModels(Modules &modules) {
  for (const auto &file : models().files)
    modules.add(*file, /*isModel=*/true);
}

std::vector<Unit> lowerModels() {
  Modules modules;
  addModels(modules);
  modules.resolve();
  std::vector<Unit> units;
  for (const auto &file : models().files)
    units.push_back(lower(modules.all().at(file->path)));
  return units;
}

} // namespace devicetidy::python
