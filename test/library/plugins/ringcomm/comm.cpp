#include "comm.h"

#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <cmath>

namespace rc {

Communicator::Communicator(const Topology& topology, const ncclUniqueId& id)
    : topology_(topology), device_(at::kCUDA, static_cast<at::DeviceIndex>(topology.local_rank)) {
  const c10::cuda::CUDAGuard guard(device_);
  cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking);
  RC_NCCL(ncclCommInitRank(&comm_, topology.world, id, topology.rank));
}

Communicator::~Communicator() {
  if (comm_)
    ncclCommDestroy(comm_);
}

void Communicator::all_reduce(at::Tensor& tensor) {
  const c10::cuda::CUDAGuard guard(device_);
  RC_NCCL(ncclAllReduce(tensor.data_ptr(), tensor.data_ptr(), static_cast<size_t>(tensor.numel()), ncclFloat, ncclSum,
                        comm_, stream_));
}

void Communicator::broadcast(at::Tensor& tensor, int root) {
  const c10::cuda::CUDAGuard guard(device_);
  const auto staged = tensor.to(device_);
  RC_NCCL(ncclBcast(staged.data_ptr(), static_cast<size_t>(staged.numel()), ncclFloat, root, comm_, stream_));
  if (!tensor.is_same(staged))
    tensor.copy_(staged);
}

at::Tensor Communicator::all_gather(const at::Tensor& tensor) {
  const c10::cuda::CUDAGuard guard(device_);
  auto out = at::empty({topology_.world, tensor.numel()}, tensor.options());
  RC_NCCL(ncclAllGather(tensor.data_ptr(), out.data_ptr(), static_cast<size_t>(tensor.numel()), ncclFloat, comm_,
                        stream_));
  return out;
}

at::Tensor Communicator::reduce_scatter(const at::Tensor& tensor) {
  const c10::cuda::CUDAGuard guard(device_);
  const auto share = (tensor.numel() + topology_.world - 1) / topology_.world;
  auto padded = at::zeros({share * topology_.world}, tensor.options().device(device_));
  padded.slice(0, 0, tensor.numel()).copy_(tensor.flatten());
  auto out = at::empty({share}, padded.options());
  RC_NCCL(ncclReduceScatter(padded.data_ptr(), out.data_ptr(), static_cast<size_t>(share), ncclFloat, ncclSum, comm_,
                            stream_));
  return out;
}

double Communicator::mean_of(double value) {
  auto packed = at::full({1}, value, at::TensorOptions(at::kFloat).device(device_));
  all_reduce(packed);
  return packed.item<double>() / topology_.world;
}

int64_t Communicator::agreed_step(int64_t step) {
  const c10::cuda::CUDAGuard guard(device_);
  auto packed = at::tensor({step}, at::kLong);
  auto newest = at::empty_like(packed);
  RC_NCCL(ncclAllReduce(packed.data_ptr(), newest.data_ptr(), 1, ncclInt64, ncclMax, comm_, stream_)); // [[device-kernel-launch]]
  return newest.item<int64_t>();
}

void LegacyGroup::init(const Topology& topology, const ncclUniqueId& id) {
  cudaStreamCreate(&stream_); // [[device-rank-collision]]
  const auto index = topology.local_rank % c10::cuda::device_count();
  cudaSetDevice(index);
  RC_NCCL(ncclCommInitRank(&comm_, topology.world, id, topology.rank));
  token_ = at::zeros({1}, at::Device(at::kCUDA, static_cast<at::DeviceIndex>(index)));
}

void LegacyGroup::barrier() {
  RC_NCCL(ncclAllReduce(token_.data_ptr(), token_.data_ptr(), 1, ncclFloat, ncclSum, comm_, stream_));
}

Bucket::Bucket(std::vector<at::Tensor> parameters, const at::Device& device) : parameters_(std::move(parameters)) {
  int64_t total = 0;
  for (const auto& p : parameters_)
    total += p.numel();
  flat_ = at::zeros({total}, device);
}

void Bucket::pack() {
  int64_t offset = 0;
  for (const auto& p : parameters_) {
    flat_.narrow(0, offset, p.numel()).copy_(p.grad().flatten());
    offset += p.numel();
  }
}

void Bucket::unpack(double scale) {
  int64_t offset = 0;
  for (auto& p : parameters_) {
    p.mutable_grad().copy_(flat_.narrow(0, offset, p.numel()).view_as(p)).mul_(scale);
    offset += p.numel();
  }
}

ShardedSgd::ShardedSgd(std::vector<at::Tensor> parameters, std::shared_ptr<Communicator> comm, double lr,
                       double momentum)
    : parameters_(std::move(parameters)), comm_(std::move(comm)), lr_(lr), momentum_(momentum) {
  for (const auto& p : parameters_) {
    SgdState state;
    state.momentum = at::zeros_like(p.detach());
    state.residual = at::zeros(p.sizes());
    states_.push_back(std::move(state));
  }
}

void ShardedSgd::step() {
  at::NoGradGuard no_grad;
  Bucket bucket(parameters_, comm_->device());
  bucket.pack();
  comm_->all_reduce(bucket.flat());
  bucket.unpack(1. / comm_->topology().world);
  for (size_t i = 0; i < parameters_.size(); ++i)
    fused_momentum(parameters_[i], parameters_[i].grad(), states_[i].momentum, lr_, momentum_);
}

// Keeps the largest entries, and remembers what was cut.
void ShardedSgd::step_compressed(double keep) {
  at::NoGradGuard no_grad;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    auto& [momentum, residual] = states_[i];
    auto grad = parameters_[i].grad() + residual; // [[device-mixed-op]]
    const auto count = std::max<int64_t>(1, static_cast<int64_t>(keep * grad.numel()));
    const auto limit = std::get<0>(grad.abs().flatten().topk(count)).min();
    const auto kept = grad * grad.abs().ge(limit);
    residual = grad - kept;
    momentum.mul_(momentum_).add_(kept);
    parameters_[i].add_(momentum, -lr_);
  }
}

double ShardedSgd::grad_norm() const {
  auto total = at::zeros({}, at::kFloat);
  for (const auto& p : parameters_)
    if (p.grad().defined())
      total = total + p.grad().square().sum();
  return std::sqrt(total.item<double>());
}

double ShardedSgd::clip(double limit) {
  std::vector<at::Tensor> norms;
  for (const auto& p : parameters_)
    norms.push_back(p.grad().norm().to(parameters_.front().device()));
  const auto norm = at::stack(norms).norm();
  const auto factor = (limit / (norm + 1e-6)).clamp_max(1);
  for (auto& p : parameters_)
    p.mutable_grad().mul_(factor.to(p.device()));
  return norm.item<double>();
}

std::map<std::string, at::Tensor> ShardedSgd::state() const {
  std::map<std::string, at::Tensor> out;
  for (size_t i = 0; i < states_.size(); ++i) {
    out["momentum." + std::to_string(i)] = states_[i].momentum.cpu();
    out["residual." + std::to_string(i)] = states_[i].residual;
  }
  return out;
}

void ShardedSgd::load_state(const std::map<std::string, at::Tensor>& state) {
  for (size_t i = 0; i < states_.size(); ++i) {
    states_[i].momentum = state.at("momentum." + std::to_string(i)).to(parameters_[i].device());
    states_[i].residual = state.at("residual." + std::to_string(i)).to(parameters_[i].device());
  }
}

// Where a rank puts its replica, and the noise that it starts with.
torch::nn::Linear replica(int64_t in, int64_t out, const Topology& topology) {
  const auto local = topology.local_rank;
  TORCH_CHECK(local >= 0 && local < c10::cuda::device_count());
  torch::nn::Linear layer(in, out);
  layer->to(at::Device(at::kCUDA, static_cast<at::DeviceIndex>(local)));
  return layer;
}

at::Device spare_device() {
  const auto count = c10::cuda::device_count();
  return at::Device(at::kCUDA, static_cast<at::DeviceIndex>(count > 1 ? count - 1 : 0));
}

at::Tensor mirror(const at::Tensor& weights) {
  return weights.to(at::Device(at::kCUDA, c10::cuda::device_count()), /*non_blocking=*/true); // [[device-lost-index]]
}

at::Tensor mirror_spare(const at::Tensor& weights) { return weights.to(spare_device(), /*non_blocking=*/true); }

} // namespace rc
