#include "group.h"

#include <cstdlib>

#define TP_NCCL(expr) TORCH_CHECK((expr) == ncclSuccess, "NCCL failed: " #expr)
#define TP_BLAS(expr) TORCH_CHECK((expr) == CUBLAS_STATUS_SUCCESS, "cuBLAS failed: " #expr)

namespace tp {

Group::Group(Options options) {
  TORCH_CHECK(!options.devices.empty(), "a group has at least one device");
  std::vector<ncclComm_t> comms(options.devices.size());
  TP_NCCL(ncclCommInitAll(comms.data(), static_cast<int>(comms.size()), options.devices.data()));
  for (size_t i = 0; i < options.devices.size(); ++i) {
    const torch::Device device(torch::kCUDA, static_cast<c10::DeviceIndex>(options.devices[i]));
    const c10::cuda::CUDAGuard guard(device);
    Rank rank{device, c10::cuda::getStreamFromPool(false)};
    rank.comm = comms[i];
    TP_BLAS(cublasCreate(&rank.blas));
    TP_BLAS(cublasSetStream(rank.blas, rank.stream));
    rank.workspace = torch::empty({static_cast<int64_t>(options.workspace_bytes)}, torch::dtype(torch::kByte).device(torch::kCUDA));
    TP_BLAS(cublasSetWorkspace(rank.blas, rank.workspace.data_ptr(), options.workspace_bytes));
    ranks_.push_back(std::move(rank));
  }
}

Group::~Group() {
  for (auto &rank : ranks_) {
    cublasDestroy(rank.blas);
    ncclCommDestroy(rank.comm);
  }
}

void Group::each(const std::function<void(int)> &work) const {
  for (int i = 0; i < size(); ++i) {
    const c10::cuda::CUDAStreamGuard guard(ranks_[i].stream);
    work(i);
  }
}

void Group::all_reduce(std::vector<torch::Tensor> &parts) const {
  TORCH_CHECK(parts.size() == ranks_.size(), "one part per rank is expected");
  TP_NCCL(ncclGroupStart());
  for (size_t i = 0; i < ranks_.size(); ++i) {
    TORCH_CHECK(parts[i].device() == ranks_[i].device, "part ", i, " is on ", parts[i].device());
    TP_NCCL(ncclAllReduce(parts[i].data_ptr<float>(), parts[i].data_ptr<float>(), parts[i].numel(), ncclFloat, ncclSum,
                          ranks_[i].comm, ranks_[i].stream));
  }
  TP_NCCL(ncclGroupEnd());
}

std::vector<torch::Tensor> Group::all_gather(const std::vector<torch::Tensor> &parts) const {
  std::vector<torch::Tensor> gathered;
  TP_NCCL(ncclGroupStart());
  for (size_t i = 0; i < ranks_.size(); ++i) {
    gathered.push_back(torch::empty({size(), parts[i].numel()}, parts[i].options()));
    TP_NCCL(ncclAllGather(parts[i].data_ptr<float>(), gathered[i].data_ptr<float>(), parts[i].numel(), ncclFloat,
                          ranks_[i].comm, ranks_[i].stream));
  }
  TP_NCCL(ncclGroupEnd());
  return gathered;
}

/// A number of each rank, to all.
std::vector<torch::Tensor> Group::all_gather_metadata(const std::vector<int64_t> &values) const {
  TORCH_CHECK(values.size() == ranks_.size());
  std::vector<torch::Tensor> sent, received;
  for (size_t i = 0; i < ranks_.size(); ++i) {
    sent.push_back(torch::full({1}, values[i], torch::dtype(torch::kLong).device(ranks_[i].device)));
    received.push_back(torch::zeros({size()}, torch::kLong));
  }
  TP_NCCL(ncclGroupStart());
  for (size_t i = 0; i < ranks_.size(); ++i)
    TP_NCCL(ncclAllGather(sent[i].data_ptr<int64_t>(), received[i].data_ptr<int64_t>(), 1, ncclInt64, ranks_[i].comm, // [[device-kernel-launch]]
                          ranks_[i].stream));
  TP_NCCL(ncclGroupEnd());
  return received;
}

std::vector<torch::Tensor> Group::broadcast(const torch::Tensor &value) const {
  std::vector<torch::Tensor> copies;
  for (const auto &rank : ranks_)
    copies.push_back(value.to(rank.device, /*non_blocking=*/true, /*copy=*/true));
  return copies;
}

/// Milliseconds on the first GPU of the group.
float Group::elapsed(const std::function<void()> &work) const {
  cudaEvent_t start = nullptr, stop = nullptr;
  const c10::cuda::CUDAGuard guard(ranks_.front().device);
  C10_CUDA_CHECK(cudaEventCreate(&start));
  C10_CUDA_CHECK(cudaEventCreate(&stop));
  C10_CUDA_CHECK(cudaEventRecord(start, ranks_.front().stream));
  work();
  C10_CUDA_CHECK(cudaEventRecord(stop, ranks_.front().stream));
  C10_CUDA_CHECK(cudaEventSynchronize(stop));
  float milliseconds = 0;
  C10_CUDA_CHECK(cudaEventElapsedTime(&milliseconds, start, stop));
  cudaEventDestroy(start);
  cudaEventDestroy(stop);
  return milliseconds;
}

std::vector<float> Group::elapsed_each(const std::function<void(int)> &work) const {
  cudaEvent_t start = nullptr;
  C10_CUDA_CHECK(cudaEventCreate(&start));
  std::vector<float> times;
  for (int i = 0; i < size(); ++i) {
    const c10::cuda::CUDAGuard guard(ranks_[i].device);
    cudaEvent_t stop = nullptr;
    C10_CUDA_CHECK(cudaEventCreate(&stop));
    C10_CUDA_CHECK(cudaEventRecord(start, ranks_[i].stream)); // [[device-lost-index]]
    work(i);
    C10_CUDA_CHECK(cudaEventRecord(stop, ranks_[i].stream));
    C10_CUDA_CHECK(cudaEventSynchronize(stop));
    times.emplace_back();
    C10_CUDA_CHECK(cudaEventElapsedTime(&times.back(), start, stop));
    cudaEventDestroy(stop);
  }
  cudaEventDestroy(start);
  return times;
}

ProcessRank process_rank() {
  const auto number = [](const char *name, int fallback) {
    const char *text = std::getenv(name);
    return text ? std::atoi(text) : fallback;
  };
  ProcessRank rank;
  rank.rank = number("RANK", 0);
  rank.world = number("WORLD_SIZE", 1);
  rank.local_rank = number("LOCAL_RANK", rank.rank);
  return rank;
}

void ProcessRank::setup(const ncclUniqueId &id) {
  c10::cuda::set_device(static_cast<c10::DeviceIndex>(local_rank));
  TP_BLAS(cublasCreate(&blas));
  workspace = torch::empty({1 << 16}, torch::dtype(torch::kByte).device(torch::kCUDA));
  TP_BLAS(cublasSetWorkspace(blas, workspace.data_ptr(), workspace.nbytes()));
  TP_NCCL(ncclCommInitRank(&comm, world, id, rank));
}

void ProcessRank::setup_lazy(const ncclUniqueId &id) {
  TP_BLAS(cublasCreate(&blas)); // [[device-rank-collision]]
  TP_BLAS(cublasSetMathMode(blas, CUBLAS_TF32_TENSOR_OP_MATH));
  if (torch::cuda::device_count() > 1)
    C10_CUDA_CHECK(cudaSetDevice(local_rank));
  TP_NCCL(ncclCommInitRank(&comm, world, id, rank));
}

void ProcessRank::teardown() {
  if (blas)
    cublasDestroy(blas);
  if (comm)
    ncclCommDestroy(comm);
  blas = nullptr;
  comm = nullptr;
}

} // namespace tp
