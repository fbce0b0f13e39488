// That the parameters of a sharded module are still those that its partitions made: what programs write into
// them after wrapping would have no effect, or be undone by the next step, and nothing would learn.
#include "sharded/ShardedModel.h"

#include <device_shim/Error.h>

#include <string>

namespace device_shim::detail {
namespace {

const char *const kInstead =
    "; do so before ShardedDataParallel is made, or make it again, or use its own load(), which reads what "
    "torch::save() wrote of the unsharded model";

} // namespace

void ShardedModel::requireUntouched(bool overwritten) {
  for (auto *partition : partitions()) {
    if (const auto *member = partition->replaced())
      throw UsageError(
          "parameter " + member->name +
          " was replaced after ShardedDataParallel was made, as torch::load() and Module::to() do, "
          "and is not part of its partition any more" +
          kInstead);
    if (const auto *member = overwritten ? nullptr : partition->overwrittenMember())
      throw UsageError(
          "parameter " + member->name +
          " was changed in place after ShardedDataParallel was made, but the values are those of "
          "the partitions" +
          kInstead);
  }
  for (const auto &unit : units)
    for (const auto &hook : unit->hooks)
      if (hook->lost())
        throw UsageError(
            "parameter " + hook->ofParameter() +
            " got another type after ShardedDataParallel was made, as by Module::to(), and back, "
            "and no gradients come from it any more" +
            kInstead);
}

} // namespace device_shim::detail
