#include "checks/CheckRegistry.h"

#define DEVICE_TIDY_CHECK_HEADERS
#include "CheckRegistry.inc"
#undef DEVICE_TIDY_CHECK_HEADERS

namespace devicetidy {

const std::vector<CheckInfo> &checkInfos() {
  static const std::vector<CheckInfo> infos = {
#define DEVICE_TIDY_CHECK_INFOS
#include "CheckRegistry.inc"
#undef DEVICE_TIDY_CHECK_INFOS
  };
  return infos;
}

const CheckInfo *findCheckInfo(std::string_view name) {
  for (const CheckInfo &info : checkInfos())
    if (info.name == name)
      return &info;
  return nullptr;
}

std::vector<std::unique_ptr<Check>> makeChecks() {
  std::vector<std::unique_ptr<Check>> checks;
#define DEVICE_TIDY_CHECK(CLASS) checks.push_back(std::make_unique<CLASS>());
#include "CheckRegistry.inc"
#undef DEVICE_TIDY_CHECK
  return checks;
}

} // namespace devicetidy
