#include "comm.h"

#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>
#include <cublas_v2.h>

namespace rc {
namespace {

__global__ void momentum_kernel(float* p, const float* g, float* m, float lr, float mu, int64_t n) {
  const int64_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    m[i] = mu * m[i] + g[i];
    p[i] -= lr * m[i];
  }
}

__global__ void sign_kernel(const float* g, float* residual, int8_t* out, const float* scale, int64_t n) {
  const int64_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    const float v = g[i] + residual[i];
    out[i] = v < 0 ? -1 : 1;
    residual[i] = v - out[i] * scale[0];
  }
}

__global__ void finite_kernel(const float* g, int64_t n, int* flag) {
  const int64_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && !(fabsf(g[i]) < 3e38f))
    *flag = 1;
}

unsigned grid(int64_t n) { return static_cast<unsigned>((n + 255) / 256); }

cublasHandle_t shared_handle() {
  thread_local cublasHandle_t handle = nullptr;
  if (!handle)
    cublasCreate(&handle);
  return handle;
}

} // namespace

void fused_momentum(at::Tensor& parameter, const at::Tensor& grad, at::Tensor& momentum, double lr, double mu) {
  TORCH_CHECK(parameter.is_cuda() && momentum.device() == parameter.device());
  c10::cuda::OptionalCUDAGuard guard(at::device_of(parameter));
  const auto dense = grad.contiguous();
  momentum_kernel<<<grid(dense.numel()), 256, 0, at::cuda::getCurrentCUDAStream()>>>(
      parameter.data_ptr<float>(), dense.data_ptr<float>(), momentum.data_ptr<float>(), static_cast<float>(lr),
      static_cast<float>(mu), dense.numel());
}

void fused_momentum_list(std::vector<at::Tensor>& parameters, const std::vector<at::Tensor>& grads,
                         std::vector<at::Tensor>& momenta, double lr, double mu) {
  for (size_t i = 0; i < parameters.size(); ++i) {
    auto& p = parameters[i];
    TORCH_CHECK(p.is_cuda() && grads[i].device() == p.device());
    momentum_kernel<<<grid(p.numel()), 256, 0, at::cuda::getCurrentCUDAStream(p.get_device())>>>(p.data_ptr<float>(), grads[i].data_ptr<float>(), momenta[i].data_ptr<float>(), static_cast<float>(lr), static_cast<float>(mu), p.numel()); // [[device-missing-guard]]
  }
}

at::Tensor sign_compress(const at::Tensor& grad, at::Tensor& residual) {
  TORCH_CHECK(grad.is_cuda() && grad.device() == residual.device());
  const c10::cuda::CUDAGuard guard(grad.device());
  auto out = at::empty(grad.sizes(), grad.options().dtype(at::kChar));
  const auto scale = grad.abs().mean().cpu(); // logged, too
  sign_kernel<<<grid(grad.numel()), 256>>>(grad.data_ptr<float>(), residual.data_ptr<float>(), out.data_ptr<int8_t>(), scale.data_ptr<float>(), grad.numel()); // [[device-kernel-launch]]
  return out;
}

at::Tensor nonfinite(const std::vector<at::Tensor>& grads) {
  TORCH_CHECK(!grads.empty() && grads.front().is_cuda());
  const c10::cuda::CUDAGuard guard(grads.front().device());
  auto flag = at::zeros({1}, at::device(at::kCUDA).dtype(at::kInt));
  for (const auto& g : grads)
    finite_kernel<<<grid(g.numel()), 256>>>(g.data_ptr<float>(), g.numel(), flag.data_ptr<int>());
  return flag;
}

// For the preconditioner. The handle is that of the GPU which was current at the first call of the thread.
at::Tensor gram(const at::Tensor& a) {
  TORCH_CHECK(a.is_cuda() && a.dim() == 2);
  const auto handle = shared_handle();
  const c10::cuda::CUDAGuard guard(a.device());
  const int rows = static_cast<int>(a.size(0)), cols = static_cast<int>(a.size(1));
  auto out = at::empty({cols, cols}, a.options());
  const float one = 1, zero = 0;
  cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_T, cols, cols, rows, &one, a.data_ptr<float>(), cols, a.data_ptr<float>(), cols, &zero, out.data_ptr<float>(), cols); // [[device-lost-index]]
  return out;
}

} // namespace rc

#ifdef DT_RUN
#include "../../shim/driver.h"
namespace rc { torch::nn::Linear replica(int64_t, int64_t, const Topology&); at::Tensor mirror(const at::Tensor&); at::Tensor mirror_spare(const at::Tensor&); }
using namespace rc;
static ncclUniqueId newId() { ncclUniqueId id; ncclGetUniqueId(&id); return id; }
static std::shared_ptr<Communicator> comm(int local = 1) { return std::make_shared<Communicator>(Topology{0, 1, local}, newId()); }
static at::Tensor parameter(int d = 1) { auto p = dtl::gpu({3, 4}, d); p.requires_grad_(); p.square().sum().backward(); return p; }
static ShardedSgd sgd() { return {{parameter(), parameter()}, comm(), 0.1, 0.9}; }
static void step_bad() { comm()->agreed_step(3); }
static void legacy_bad() { auto id = newId(); dtl::ranks(2, [&](int) { LegacyGroup g; g.init(Topology::from_environment(), id); g.barrier(); }); }
static void compressed_bad() { sgd().step_compressed(0.5); }
static void mirror_bad() { mirror(dtl::gpu({3})); }
static void list_bad() { std::vector<at::Tensor> p{dtl::gpu({3})}, m{dtl::gpu({3})}; fused_momentum_list(p, {dtl::gpu({3})}, m, 1, 1); }
static void sign_bad() { auto r = dtl::gpu({3}); sign_compress(dtl::gpu({3}), r); }
static void gram_bad() { gram(dtl::gpu({3, 4})); }
static void comm_ok() {
  auto id = newId();
  dtl::ranks(3, [&](int r) {
    Communicator c(Topology::from_environment(), id);
    c.mean_of(r);
    auto t = torch::rand({5});
    c.broadcast(t, 0);
    c.reduce_scatter(t);
    c.all_gather(dtl::gpu({4}, r));
    replica(3, 2, c.topology())->forward(dtl::gpu({1, 3}, r));
  });
}
static void sgd_ok() {
  auto s = sgd();
  s.step(); s.grad_norm(); s.clip(1);
  s.load_state(s.state());
  s.step();
  s.step_compressed(0.5);
}
static void nonfinite_ok() { nonfinite({dtl::gpu({3}), dtl::gpu({5})}); mirror_spare(dtl::gpu({3})); auto p = dtl::gpu({3}), m = dtl::gpu({3}); fused_momentum(p, dtl::gpu({3}), m, 1, 1); }
DT_MAIN(step_bad, legacy_bad, compressed_bad, mirror_bad, list_bad, sign_bad, gram_bad, comm_ok, sgd_ok, nonfinite_ok)
#endif
