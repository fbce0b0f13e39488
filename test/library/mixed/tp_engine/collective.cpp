#include "comm.h"

#include <iostream>

namespace tpe {

ncclDataType_t dataType(const torch::Tensor &tensor) {
  switch (tensor.scalar_type()) {
  case torch::kFloat:
    return ncclFloat32;
  case torch::kDouble:
    return ncclFloat64;
  case torch::kHalf:
    return ncclFloat16;
  case torch::kLong:
    return ncclInt64;
  case torch::kInt:
    return ncclInt32;
  default:
    TORCH_CHECK(false, "no NCCL type for ", tensor.scalar_type());
  }
}

StreamCollective::~StreamCollective() {
  if (comm_)
    ncclCommDestroy(comm_);
}

void StreamCollective::open(const LaunchInfo &info, const ncclUniqueId &id) {
  TORCH_CHECK(!comm_, "the collective is open already");
  info_ = info;
  int least = 0, greatest = 0;
  TPE_CUDA(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  TPE_CUDA(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, greatest)); // [[device-rank-collision]]
  TPE_CUDA(cudaSetDevice(info.local_rank));
  TPE_NCCL(ncclCommInitRank(&comm_, info.world, id, info.rank));
  std::cerr << "rank " << info.rank << " of " << info.world << " is on cuda:" << info.local_rank << "\n";
}

void StreamCollective::allReduce(torch::Tensor &tensor) {
  TORCH_CHECK(tensor.is_cuda() && tensor.is_contiguous(), "a contiguous CUDA tensor is expected");
  const c10::cuda::CUDAGuard guard(tensor.device());
  TPE_NCCL(ncclAllReduce(tensor.data_ptr(), tensor.data_ptr(), tensor.numel(), dataType(tensor), ncclSum, comm_, stream_));
  TPE_CUDA(cudaStreamSynchronize(stream_));
}

GradientCollective::~GradientCollective() {
  if (comm_)
    ncclCommDestroy(comm_);
}

void GradientCollective::open(const LaunchInfo &info, const ncclUniqueId &id) {
  info_ = info;
  device_ = info.device();
  TPE_CUDA(cudaSetDevice(info.local_rank));
  TPE_NCCL(ncclCommInitRank(&comm_, info.world, id, info.rank));
}

void GradientCollective::allReduce(torch::Tensor &tensor) {
  TORCH_CHECK(tensor.is_cuda(), "a CUDA tensor is expected");
  const c10::cuda::CUDAGuard guard(tensor.device());
  auto buffer = tensor.contiguous();
  TPE_NCCL(ncclAllReduce(buffer.data_ptr(), buffer.data_ptr(), buffer.numel(), dataType(buffer), ncclSum, comm_,
                         at::cuda::getCurrentCUDAStream()));
  if (!buffer.is_same(tensor))
    tensor.copy_(buffer);
}

torch::Tensor GradientCollective::gatherCounts(const std::vector<int64_t> &counts) {
  const c10::cuda::CUDAGuard guard(device_);
  auto mine = torch::tensor(counts, torch::kLong);
  auto all = torch::empty({info_.world, mine.numel()}, torch::TensorOptions().dtype(torch::kLong).device(device_));
  TPE_NCCL(ncclAllGather(mine.data_ptr<int64_t>(), all.data_ptr<int64_t>(), mine.numel(), ncclInt64, comm_, // [[device-kernel-launch]]
                         at::cuda::getCurrentCUDAStream()));
  return all.cpu();
}

torch::Tensor GradientCollective::gatherLengths(const std::vector<int64_t> &lengths) {
  const c10::cuda::CUDAGuard guard(device_);
  auto mine = torch::tensor(lengths, torch::kLong).to(device_);
  auto all = torch::empty({info_.world, mine.numel()}, mine.options());
  TPE_NCCL(ncclAllGather(mine.data_ptr<int64_t>(), all.data_ptr<int64_t>(), mine.numel(), ncclInt64, comm_,
                         at::cuda::getCurrentCUDAStream()));
  return all.cpu();
}

torch::Tensor GradientCollective::reduceScatter(const torch::Tensor &gradient) {
  TORCH_CHECK(gradient.numel() % info_.world == 0, "the gradient does not divide among the ranks");
  c10::cuda::OptionalCUDAGuard guard;
  guard.set_device(device_);
  auto flat = gradient.reshape({-1}).contiguous();
  auto shard = torch::empty({flat.numel() / info_.world}, flat.options());
  TPE_NCCL(ncclReduceScatter(flat.data_ptr(), shard.data_ptr(), shard.numel(), dataType(flat), ncclSum, comm_,
                             at::cuda::getCurrentCUDAStream()));
  return shard;
}

void GradientCollective::broadcast(std::vector<torch::Tensor> &parameters, int root) {
  const c10::cuda::CUDAGuard guard(device_);
  TPE_NCCL(ncclGroupStart());
  for (auto &p : parameters) {
    TORCH_CHECK(p.device() == device_, "a parameter is on ", p.device());
    TPE_NCCL(ncclBroadcast(p.data_ptr(), p.data_ptr(), p.numel(), dataType(p), root, comm_, at::cuda::getCurrentCUDAStream()));
  }
  TPE_NCCL(ncclGroupEnd());
}

void MetricReducer::open(const ncclUniqueId &id) {
  const auto info = LaunchInfo::fromEnvironment();
  TPE_CUDA(cudaSetDevice(info.local_rank));
  buffer_ = torch::zeros({slots_}, torch::TensorOptions().device(torch::Device(torch::kCUDA, 0))); // [[device-rank-collision]]
  TPE_NCCL(ncclCommInitRank(&comm_, info.world, id, info.rank));
}

void MetricReducer::reduce() {
  TORCH_CHECK(comm_, "open() comes first");
  TPE_NCCL(ncclAllReduce(buffer_.data_ptr<float>(), buffer_.data_ptr<float>(), buffer_.numel(), ncclFloat32, ncclSum, comm_,
                         at::cuda::getCurrentCUDAStream()));
}

void ReplicaGroup::join(const ncclUniqueId &id) {
  const auto info = LaunchInfo::fromEnvironment();
  if (info.world < 2)
    return;
  TPE_NCCL(ncclCommInitRank(&comm_, info.world, id, info.rank)); // [[device-rank-collision]]
  TPE_CUDA(cudaSetDevice(info.local_rank));
  TPE_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
}

void ReplicaGroup::leave() {
  if (comm_)
    TPE_NCCL(ncclCommDestroy(comm_));
  comm_ = nullptr;
}

void StepMarker::mark() {
  const c10::cuda::CUDAGuard guard(device_);
  TPE_CUDA(cudaEventRecord(done_, at::cuda::getCurrentCUDAStream())); // [[device-lost-index]]
}

void StepMarker::wait() const { TPE_CUDA(cudaEventSynchronize(done_)); }

void LazyTimer::start() {
  const c10::cuda::CUDAGuard guard(device_);
  if (!begin_) {
    TPE_CUDA(cudaEventCreate(&begin_));
    TPE_CUDA(cudaEventCreate(&end_));
  }
  TPE_CUDA(cudaEventRecord(begin_, at::cuda::getCurrentCUDAStream()));
}

float LazyTimer::stop() {
  const c10::cuda::CUDAGuard guard(device_);
  float milliseconds = 0;
  TPE_CUDA(cudaEventRecord(end_, at::cuda::getCurrentCUDAStream()));
  TPE_CUDA(cudaEventSynchronize(end_));
  TPE_CUDA(cudaEventElapsedTime(&milliseconds, begin_, end_));
  return milliseconds;
}

} // namespace tpe
