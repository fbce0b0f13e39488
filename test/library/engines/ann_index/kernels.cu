#include "ann_index.h"

#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>

#include <thread>

namespace ann {

namespace {

__global__ void scan_kernel(int64_t n, int subspaces, const float* tables, const uint8_t* codes, float* out) {
  const int64_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    for (int s = 0; s < subspaces; ++s)
      out[i] += tables[s * 256 + codes[i * subspaces + s]];
}

__global__ void encode_kernel(int64_t n, const float* x, const float* codebook, const float* norms, uint8_t* codes) {
  const int64_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    codes[i] = x[i] * codebook[i] > norms[0];
}

__global__ void hamming_kernel(int64_t n, const int64_t* a, const int64_t* b, int* out) {
  const int64_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = __popcll(a[0] ^ b[i]);
}

__global__ void count_kernel(int64_t n, const int64_t* assignment, int* counts) {
  const int64_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    atomicAdd(counts + assignment[i], 1);
}

struct ScanJob {
  int64_t rows;
  int subspaces;
  const float* tables;
  const uint8_t* codes;
  float* out;
};

void enqueue(const ScanJob& job, cudaStream_t stream) {
  scan_kernel<<<(job.rows + 255) / 256, 256, 0, stream>>>(job.rows, job.subspaces, job.tables, job.codes, job.out);
}

ScanJob make_job(const torch::Tensor& tables, const torch::Tensor& codes, torch::Tensor& out) {
  return {codes.size(0), static_cast<int>(codes.size(1)), tables.data_ptr<float>(), codes.data_ptr<uint8_t>(),
          out.data_ptr<float>()};
}

} // namespace

torch::Tensor pq_distances(const torch::Tensor& tables, const torch::Tensor& codes) {
  TORCH_CHECK(tables.device() == codes.device(), "tables and codes are apart");
  const c10::cuda::CUDAGuard guard(codes.device());
  auto out = torch::zeros({codes.size(0)}, tables.options());
  enqueue(make_job(tables, codes, out), at::cuda::getCurrentCUDAStream());
  return out;
}

torch::Tensor pq_encode(const torch::Tensor& x, const torch::Tensor& codebook) {
  const c10::cuda::CUDAGuard guard(x.device());
  const auto norms = codebook.detach().cpu().pow(2).sum(-1).contiguous();
  auto codes = torch::zeros({x.size(0), 1}, x.options().dtype(torch::kUInt8));
  encode_kernel<<<(x.size(0) + 255) / 256, 256>>>(x.size(0), x.data_ptr<float>(), codebook.data_ptr<float>(), norms.data_ptr<float>(), codes.data_ptr<uint8_t>()); // [[device-kernel-launch]]
  return codes;
}

torch::Tensor inner_products(const torch::Tensor& queries, const torch::Tensor& base) {
  TORCH_CHECK(queries.is_cuda() && base.is_cuda(), "inner_products is for GPUs");
  const auto q = queries.contiguous(), b = base.contiguous();
  const int n = q.size(0), m = b.size(0), d = q.size(1);
  auto out = torch::empty({n, m}, q.options());
  const float one = 1, zero = 0;
  cublasSgemm(at::cuda::getCurrentCUDABlasHandle(), CUBLAS_OP_T, CUBLAS_OP_N, m, n, d, &one, b.data_ptr<float>(), d, q.data_ptr<float>(), d, &zero, out.data_ptr<float>(), m); // [[device-missing-guard]]
  return out;
}

torch::Tensor hamming(const torch::Tensor& queries, const torch::Tensor& codes) {
  TORCH_CHECK(codes.is_cuda());
  const int previous = c10::cuda::current_device();
  cudaSetDevice(codes.get_device());
  const auto q = queries.to(codes.device());
  auto out = torch::zeros({codes.size(0)}, codes.options().dtype(torch::kInt));
  hamming_kernel<<<(codes.size(0) + 255) / 256, 256>>>(codes.size(0), q.data_ptr<int64_t>(), codes.data_ptr<int64_t>(),
                                                       out.data_ptr<int>());
  cudaSetDevice(previous);
  return out;
}

std::vector<torch::Tensor> scan_parallel(const torch::Tensor& tables, const std::vector<torch::Tensor>& parts) {
  const c10::cuda::CUDAGuard guard(tables.device());
  std::vector<torch::Tensor> out(parts.size());
  std::exception_ptr error;
  std::vector<std::thread> workers;
  for (size_t i = 0; i < parts.size(); ++i) {
    out[i] = torch::zeros({parts[i].size(0)}, tables.options());
    workers.emplace_back([&, i] {
      try {
        scan_kernel<<<(parts[i].size(0) + 255) / 256, 256>>>(parts[i].size(0), static_cast<int>(parts[i].size(1)), tables.data_ptr<float>(), parts[i].data_ptr<uint8_t>(), out[i].data_ptr<float>()); // [[device-missing-guard]]
      } catch (...) {
        error = std::current_exception();
      }
    });
  }
  for (auto& worker : workers)
    worker.join();
  if (error)
    std::rethrow_exception(error);
  return out;
}

float timed_scan(const torch::Tensor& tables, const torch::Tensor& codes) {
  cudaEvent_t begin, end;
  cudaEventCreate(&begin); // [[device-lost-index]]
  const c10::cuda::CUDAGuard guard(codes.device());
  cudaEventCreate(&end);
  const auto stream = at::cuda::getCurrentCUDAStream();
  auto out = torch::zeros({codes.size(0)}, tables.options());
  cudaEventRecord(begin, stream);
  enqueue(make_job(tables, codes, out), stream);
  cudaEventRecord(end, stream);
  cudaEventSynchronize(end);
  float ms = 0;
  cudaEventElapsedTime(&ms, begin, end);
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  return ms;
}

torch::Tensor histogram_lists(const torch::Tensor& assignment, int64_t lists) {
  if (!assignment.is_cuda())
    return assignment.bincount({}, lists).to(torch::kInt);
  c10::cuda::CUDAGuard guard(assignment.device());
  auto counts = torch::zeros({lists}, assignment.options().dtype(torch::kInt));
  count_kernel<<<(assignment.numel() + 255) / 256, 256, 0, at::cuda::getCurrentCUDAStream(assignment.get_device())>>>(
      assignment.numel(), assignment.data_ptr<int64_t>(), counts.data_ptr<int>());
  return counts;
}

} // namespace ann
