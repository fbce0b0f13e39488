#include "params/LaggingParameters.h"

#include <mutex>
#include <unordered_map>

namespace device_shim::detail {
namespace {

struct Known {
  std::mutex mutex;
  std::unordered_map<const void *, const LaggingParameters *> owners;
};

// Never destroyed: models may live as long as the process.
Known &known() {
  static auto *all = new Known;
  return *all;
}

} // namespace

LaggingParameters::LaggingParameters(const torch::nn::Module &module) : all(module.parameters()) {
  std::lock_guard<std::mutex> lock(known().mutex);
  for (const auto &parameter : all)
    known().owners[parameter.unsafeGetTensorImpl()] = this;
}

LaggingParameters::~LaggingParameters() {
  std::lock_guard<std::mutex> lock(known().mutex);
  for (const auto &parameter : all)
    known().owners.erase(parameter.unsafeGetTensorImpl());
}

void LaggingParameters::set(bool lag) {
  std::lock_guard<std::mutex> lock(known().mutex);
  now = lag;
}

bool lags(const at::Tensor &parameter) {
  std::lock_guard<std::mutex> lock(known().mutex);
  const auto owner = known().owners.find(parameter.unsafeGetTensorImpl());
  return owner != known().owners.end() && owner->second->now;
}

} // namespace device_shim::detail
