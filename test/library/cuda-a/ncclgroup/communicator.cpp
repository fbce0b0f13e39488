#include "communicator.h"

namespace ncclgroup {
namespace {

int env_int(const char *name, int fallback) {
  const char *value = std::getenv(name);
  return value && *value ? std::atoi(value) : fallback;
}

} // namespace

RankInfo rank_from_env() {
  RankInfo info;
  info.rank = env_int("RANK", 0);
  info.local_rank = env_int("LOCAL_RANK", 0);
  info.world_size = env_int("WORLD_SIZE", 1);
  return info;
}

ncclDataType_t nccl_type(at::ScalarType type) {
  switch (type) {
  case at::kFloat:
    return ncclFloat32;
  case at::kDouble:
    return ncclFloat64;
  case at::kHalf:
    return ncclFloat16;
  case at::kInt:
    return ncclInt32;
  case at::kLong:
    return ncclInt64;
  case at::kByte:
    return ncclUint8;
  default:
    TORCH_CHECK(false, "unsupported type for NCCL: ", type);
  }
}

Communicator::Communicator(CommOptions options)
    : options_(std::move(options)), device_(torch::kCUDA, static_cast<c10::DeviceIndex>(options_.ranks.local_rank)) {
  const RankInfo &ranks = options_.ranks;
  TORCH_CHECK(ranks.rank >= 0 && ranks.rank < ranks.world_size, "rank ", ranks.rank, " of ", ranks.world_size);
  C10_CUDA_CHECK(cudaSetDevice(ranks.local_rank));
  int least = 0, greatest = 0;
  C10_CUDA_CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  C10_CUDA_CHECK(
      cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, options_.high_priority ? greatest : least));
  C10_CUDA_CHECK(cudaEventCreateWithFlags(&done_, cudaEventDisableTiming));
  NCCL_CHECK(ncclCommInitRank(&comm_, ranks.world_size, options_.id, ranks.rank));
}

Communicator::~Communicator() {
  if (comm_)
    ncclCommDestroy(comm_);
  if (done_)
    cudaEventDestroy(done_);
  if (stream_)
    cudaStreamDestroy(stream_);
}

void Communicator::all_reduce(torch::Tensor &tensor) {
  TORCH_CHECK(tensor.device() == device_, "all_reduce: tensor on ", tensor.device(), ", communicator on ", device_);
  TORCH_CHECK(tensor.is_contiguous(), "all_reduce: tensor must be contiguous");
  const c10::cuda::CUDAGuard guard(device_);
  NCCL_CHECK(ncclAllReduce(tensor.data_ptr(), tensor.data_ptr(), tensor.numel(), nccl_type(tensor.scalar_type()),
                           ncclSum, comm_, stream_));
  C10_CUDA_CHECK(cudaEventRecord(done_, stream_));
}

void Communicator::broadcast(torch::Tensor &tensor, int root) {
  auto staged = tensor.is_cuda() ? tensor.contiguous() : tensor.to(device_);
  NCCL_CHECK(ncclBroadcast(staged.data_ptr(), staged.data_ptr(), staged.numel(), nccl_type(staged.scalar_type()), root,
                           comm_, stream_));
  wait();
  if (!staged.is_same(tensor))
    tensor.copy_(staged);
}

void Communicator::barrier() {
  auto flag = torch::zeros({1}, torch::dtype(torch::kInt).device(device_));
  NCCL_CHECK(ncclAllReduce(flag.data_ptr<int>(), flag.data_ptr<int>(), 1, ncclInt32, ncclSum, comm_, stream_));
  wait();
}

void Communicator::barrier_on(at::cuda::CUDAStream stream) {
  auto flag = torch::ones({1}, torch::kInt);
  NCCL_CHECK(ncclAllReduce(flag.data_ptr<int>(), flag.data_ptr<int>(), 1, ncclInt32, ncclSum, comm_, stream.stream())); // [[device-kernel-launch]]
  stream.synchronize();
}

torch::Tensor Communicator::all_gather(const torch::Tensor &tensor) {
  auto local = tensor.to(device_).contiguous();
  std::vector<int64_t> sizes = local.sizes().vec();
  sizes.insert(sizes.begin(), size());
  auto gathered = torch::empty(sizes, local.options());
  NCCL_CHECK(ncclAllGather(local.data_ptr(), gathered.data_ptr(), local.numel(), nccl_type(local.scalar_type()), comm_,
                           stream_));
  wait();
  return gathered;
}

torch::Tensor Communicator::reduce_scalar(double value) {
  auto total = torch::full({1}, value, torch::dtype(torch::kDouble).device(device_));
  NCCL_CHECK(ncclAllReduce(total.data_ptr<double>(), total.data_ptr<double>(), 1, ncclFloat64, ncclSum, comm_, stream_));
  wait();
  return total.cpu() / size();
}

void Communicator::wait() const { C10_CUDA_CHECK(cudaStreamSynchronize(stream_)); }

void HybridComm::init(const RankInfo &ranks, const ncclUniqueId &tp_id, const ncclUniqueId &dp_id, int tp_size) {
  TORCH_CHECK(tp_size > 0 && ranks.world_size % tp_size == 0, "tensor parallel size ", tp_size, " does not divide ",
              ranks.world_size);
  C10_CUDA_CHECK(cudaStreamCreateWithFlags(&side_stream, cudaStreamNonBlocking)); // [[device-rank-collision]]
  C10_CUDA_CHECK(cudaSetDevice(ranks.local_rank));
  NCCL_CHECK(ncclGroupStart());
  NCCL_CHECK(ncclCommInitRank(&tp, tp_size, tp_id, ranks.rank % tp_size));
  NCCL_CHECK(ncclCommInitRank(&dp, ranks.world_size / tp_size, dp_id, ranks.rank / tp_size));
  NCCL_CHECK(ncclGroupEnd());
}

void HybridComm::init_single(const RankInfo &ranks, const ncclUniqueId &id) {
  C10_CUDA_CHECK(cudaSetDevice(ranks.local_rank % std::max<int>(1, c10::cuda::device_count())));
  C10_CUDA_CHECK(cudaStreamCreateWithFlags(&side_stream, cudaStreamNonBlocking));
  NCCL_CHECK(ncclCommInitRank(&tp, ranks.world_size, id, ranks.rank));
  dp = tp;
}

void HybridComm::destroy() {
  if (tp)
    ncclCommDestroy(tp);
  if (dp && dp != tp)
    ncclCommDestroy(dp);
  tp = dp = nullptr;
  if (side_stream)
    cudaStreamDestroy(side_stream);
  side_stream = nullptr;
}

torch::Tensor make_workspace(int64_t bytes) {
  const RankInfo ranks = rank_from_env();
  if (ranks.rank == 0)
    std::printf("[ncclgroup] workspace of %lld bytes per rank\n", static_cast<long long>(bytes));
  return torch::empty({bytes}, torch::dtype(torch::kByte).device(torch::Device(torch::kCUDA, 0))); // [[device-rank-collision]]
}

torch::Tensor make_workspace_on_rank(int64_t bytes) {
  const RankInfo ranks = rank_from_env();
  const torch::Device device(torch::kCUDA, static_cast<c10::DeviceIndex>(ranks.local_rank));
  return torch::empty({bytes}, torch::dtype(torch::kByte).device(device));
}

ncclComm_t connect(const RankInfo &ranks, const ncclUniqueId &id) {
  ncclComm_t comm = nullptr;
  int version = 0;
  NCCL_CHECK(ncclGetVersion(&version));
  TORCH_CHECK(version >= 2700, "NCCL ", version, " is too old");
  const int device_count = c10::cuda::device_count();
  TORCH_CHECK(ranks.local_rank < device_count, "local rank ", ranks.local_rank, ", but only ", device_count, " GPUs");
  NCCL_CHECK(ncclCommInitRank(&comm, ranks.world_size, id, ranks.rank)); // [[device-rank-collision]]
  return comm;
}

double time_all_reduce(ncclComm_t comm, torch::Tensor tensor, int iterations) {
  TORCH_CHECK(tensor.is_cuda(), "time_all_reduce: expected a CUDA tensor");
  cudaEvent_t start = nullptr, stop = nullptr;
  C10_CUDA_CHECK(cudaEventCreate(&start));
  const c10::cuda::CUDAGuard guard(tensor.device());
  const auto stream = c10::cuda::getStreamFromPool(/*isHighPriority=*/false, tensor.get_device());
  C10_CUDA_CHECK(cudaEventRecord(start, stream)); // [[device-lost-index]]
  for (int i = 0; i < iterations; ++i)
    NCCL_CHECK(ncclAllReduce(tensor.data_ptr(), tensor.data_ptr(), tensor.numel(), nccl_type(tensor.scalar_type()),
                             ncclSum, comm, stream));
  C10_CUDA_CHECK(cudaEventCreate(&stop));
  C10_CUDA_CHECK(cudaEventRecord(stop, stream));
  C10_CUDA_CHECK(cudaEventSynchronize(stop));
  float milliseconds = 0;
  C10_CUDA_CHECK(cudaEventElapsedTime(&milliseconds, start, stop));
  cudaEventDestroy(start);
  cudaEventDestroy(stop);
  return milliseconds / iterations;
}

double time_broadcast(ncclComm_t comm, torch::Tensor tensor, int iterations) {
  TORCH_CHECK(tensor.is_cuda(), "time_broadcast: expected a CUDA tensor");
  const auto stream = c10::cuda::getStreamFromPool(/*isHighPriority=*/true, tensor.get_device());
  at::cuda::CUDAEvent start(cudaEventDefault), stop(cudaEventDefault);
  start.record(stream);
  for (int i = 0; i < iterations; ++i)
    NCCL_CHECK(ncclBcast(tensor.data_ptr(), tensor.numel(), nccl_type(tensor.scalar_type()), 0, comm, stream));
  stop.record(stream);
  stop.synchronize();
  return start.elapsed_time(stop) / iterations;
}

} // namespace ncclgroup
