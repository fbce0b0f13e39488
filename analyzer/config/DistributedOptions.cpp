#include "analyzer/config/DistributedOptions.h"

#include "analyzer/config/Values.h"

namespace devicetidy::config {
namespace {

std::set<std::string, std::less<>> namesIn(const std::string &list) {
  std::set<std::string, std::less<>> names;
  for (std::string &name : splitNames(list))
    names.insert(std::move(name));
  return names;
}

} // namespace

DistributedNames distributedNames(const std::function<std::string(const char *option)> &option) {
  return {namesIn(option("LoaderFunctions")), namesIn(option("InitFunctions")),
          namesIn(option("LaunchFunctions"))};
}

} // namespace devicetidy::config
