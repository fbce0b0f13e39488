#include <device_shim/ShardedDataParallel.h>

#include "checkpoint/ShardedCheckpoint.h"
#include "sharded/ShardedModel.h"

namespace device_shim {

ShardedCore::ShardedCore(std::shared_ptr<torch::nn::Module> module, std::shared_ptr<Communicator> ranks,
                         const ShardedOptions &options)
    : model(std::make_unique<detail::ShardedModel>(std::move(module), std::move(ranks), options)) {}
ShardedCore::~ShardedCore() = default;
ShardedCore::ShardedCore(ShardedCore &&) noexcept = default;

std::vector<at::Tensor> ShardedCore::optimizer_parameters() const { return model->masters(); }

std::vector<at::Tensor> ShardedCore::optimizer_parameters(int group) const { return model->masters(group); }

double ShardedCore::unscale_and_clip_grads(double max_norm, GradScaler *scaler) {
  return model->unscaleAndClip(max_norm, scaler);
}
double ShardedCore::grad_norm() { return model->gradNorm(); }

void ShardedCore::save(const std::string &path, torch::optim::Optimizer *optimizer,
                       const GradScaler *scaler) {
  model->requireUntouched();
  detail::saveCheckpoint(*model, path, optimizer, scaler);
}
void ShardedCore::save_adapters(const std::string &path) {
  model->requireUntouched();
  detail::saveAdapters(*model, path);
}
void ShardedCore::load(const std::string &path, torch::optim::Optimizer *optimizer, GradScaler *scaler) {
  detail::loadCheckpoint(*model, path, optimizer, scaler);
}

int64_t ShardedCore::bytes_held() const { return model->memoryCount().now; }
int64_t ShardedCore::peak_bytes_held() const { return model->memoryCount().peak; }

void ShardedCore::synchronize() {
  model->requireUntouched();
  model->synchronize();
}
void ShardedCore::begin_forward() { model->beginForward(); }
void ShardedCore::end_forward(const std::vector<at::Tensor *> &outputs) { model->endForward(outputs); }

at::Tensor ShardedCore::converted(const at::Tensor &input) const {
  const auto type = model->wanted().parameter_type;
  return type && input.defined() && input.is_floating_point() ? input.to(*type) : input;
}

StageChain *ShardedCore::chain() { return model->stageChain(); }

} // namespace device_shim
