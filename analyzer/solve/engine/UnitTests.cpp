#include "analyzer/solve/engine/UnitTests.h"

#include "analyzer/facts/Language.h"
#include "analyzer/facts/NameParts.h"
#include "analyzer/models/Models.h"

namespace devicetidy {

bool isUnitTest(const Function &function) {
  for (std::string_view name = function.name.view(); !name.empty(); name = scopeOf(name)) {
    const std::string_view last = lastPart(name);
    const std::size_t end = last.find_last_not_of("0123456789"); // macros number what they declare
    if (end != std::string_view::npos && models::hasRole(last.substr(0, end + 1), "test"))
      return true;
  }
  return false;
}

bool isOfTestFile(const Function &function) {
  const std::string_view path = function.where.file.view();
  return isTestOfPython(path) || path.substr(path.rfind('/') + 1) == "conftest.py";
}

} // namespace devicetidy
