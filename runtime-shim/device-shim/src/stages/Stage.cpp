#include <device_shim/Stage.h>

#include <device_shim/Error.h>

namespace device_shim {

StageHooks::~StageHooks() = default;
StageBase::~StageBase() = default;

void StageBase::set_hooks(std::shared_ptr<StageHooks> newHooks) {
  if (installed && newHooks)
    throw UsageError(
        "this stage belongs to a wrapper already; a model is either sharded or dispatched, and once");
  installed = std::move(newHooks);
}

} // namespace device_shim
