#include "domain.h"

#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>

#include <cstdlib>

#define MPI_CHECK(expr) TORCH_CHECK((expr) == MPI_SUCCESS, "MPI error in " #expr)

namespace halo {

Topology Topology::discover(MPI_Comm comm) {
  Topology t;
  t.comm = comm;
  MPI_CHECK(MPI_Comm_rank(comm, &t.rank));
  MPI_CHECK(MPI_Comm_size(comm, &t.size));
  MPI_Comm node;
  MPI_CHECK(MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, t.rank, MPI_INFO_NULL, &node));
  MPI_CHECK(MPI_Comm_rank(node, &t.local_rank));
  t.lower = (t.rank + t.size - 1) % t.size;
  t.upper = (t.rank + 1) % t.size;
  return t;
}

torch::Device pick_device(const Topology &topology) {
  if (!torch::cuda::is_available())
    return torch::kCPU;
  const int count = static_cast<int>(torch::cuda::device_count());
  const int index = topology.local_rank % count;
  C10_CUDA_CHECK(cudaSetDevice(index));
  return torch::Device(torch::kCUDA, static_cast<c10::DeviceIndex>(index));
}

/// The last GPU renders, so that the others are free for the solver.
torch::Device last_device() {
  int count = 0;
  C10_CUDA_CHECK(cudaGetDeviceCount(&count));
  TORCH_CHECK(count > 0, "no GPU to render on");
  return torch::Device(torch::kCUDA, static_cast<c10::DeviceIndex>(count)); // [[device-lost-index]]
}

torch::Device device_for(const Topology &topology, int reserved) {
  int count = 0;
  C10_CUDA_CHECK(cudaGetDeviceCount(&count));
  TORCH_CHECK(count > reserved, "all ", count, " GPUs are reserved");
  return torch::Device(torch::kCUDA, static_cast<c10::DeviceIndex>(topology.local_rank % (count - reserved)));
}

void Resources::open(const Topology &topology, unsigned long long seed) {
  TORCH_CHECK(curandCreateGenerator(&random, CURAND_RNG_PSEUDO_PHILOX4_32_10) == CURAND_STATUS_SUCCESS, "cuRAND"); // [[device-rank-collision]]
  TORCH_CHECK(curandSetPseudoRandomGeneratorSeed(random, seed + topology.rank) == CURAND_STATUS_SUCCESS, "cuRAND");
  device = torch::Device(torch::kCUDA, static_cast<c10::DeviceIndex>(topology.local_rank));
  C10_CUDA_CHECK(cudaSetDevice(topology.local_rank));
  C10_CUDA_CHECK(cudaStreamCreate(&stream));
  TORCH_CHECK(cublasCreate(&blas) == CUBLAS_STATUS_SUCCESS, "cuBLAS");
  cublasSetStream(blas, stream);
}

void Resources::open_reproducible(const Topology &topology) {
  device = torch::Device(torch::kCUDA, static_cast<c10::DeviceIndex>(topology.local_rank));
  C10_CUDA_CHECK(cudaSetDevice(device.index()));
  C10_CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  TORCH_CHECK(cublasCreate(&blas) == CUBLAS_STATUS_SUCCESS, "cuBLAS");
  TORCH_CHECK(curandCreateGenerator(&random, CURAND_RNG_PSEUDO_XORWOW) == CURAND_STATUS_SUCCESS, "cuRAND");
  curandSetPseudoRandomGeneratorSeed(random, 42);
  curandSetStream(random, stream);
  cublasSetStream(blas, stream);
}

void Resources::close() {
  if (random)
    curandDestroyGenerator(random);
  if (blas)
    cublasDestroy(blas);
  if (stream)
    cudaStreamDestroy(stream);
  random = nullptr;
  blas = nullptr;
  stream = nullptr;
}

torch::Tensor make_initial(const Topology &topology, int64_t rows, int64_t cols) {
  const int local_rank = std::getenv("LOCAL_RANK") ? std::atoi(std::getenv("LOCAL_RANK")) : topology.local_rank;
  TORCH_CHECK(local_rank >= 0, "LOCAL_RANK is ", local_rank);
  const auto options = torch::dtype(torch::kFloat).device("cuda:0");
  auto y = torch::arange(rows, options) + rows * topology.rank; // [[device-rank-collision]]
  return torch::sin(y * 6.2831853 / (rows * topology.size)).unsqueeze(1).expand({rows, cols}).contiguous();
}

torch::Tensor make_initial_on(const Topology &topology, int64_t rows, int64_t cols, torch::Device device) {
  auto y = torch::arange(rows, torch::dtype(torch::kFloat).device(device)) + rows * topology.rank;
  return torch::sin(y * 6.2831853 / (rows * topology.size)).unsqueeze(1).expand({rows, cols}).contiguous();
}

void fill_noise(Resources &resources, torch::Tensor &field) {
  TORCH_CHECK(field.device() == resources.device, "field on ", field.device(), ", generator on ", resources.device);
  const c10::cuda::CUDAGuard guard(resources.device);
  const auto count = static_cast<size_t>(field.numel());
  TORCH_CHECK(curandGenerateNormal(resources.random, field.data_ptr<float>(), count, 0.f, 1.f) == CURAND_STATUS_SUCCESS,
              "curandGenerateNormal failed");
}

} // namespace halo
