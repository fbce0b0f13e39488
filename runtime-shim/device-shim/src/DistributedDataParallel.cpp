// What data-parallel training takes from several rooms; the rest is in ddp.
#include <device_shim/DistributedDataParallel.h>

#include "checkpoint/DataParallelCheckpoint.h"
#include "ddp/GradientBuckets.h"

namespace device_shim {

void DataParallelCore::save(const std::string &path, torch::optim::Optimizer *optimizer,
                            const GradScaler *scaler) {
  detail::saveReplica(buckets->root(), buckets->communicator(), path, optimizer, scaler);
}

void DataParallelCore::load(const std::string &path, torch::optim::Optimizer *optimizer, GradScaler *scaler) {
  detail::loadReplica(buckets->root(), buckets->communicator(), path, optimizer, scaler);
}

} // namespace device_shim
