#include "prefix.h"
#include <dlfcn.h>
#include <sys/mman.h>
#include <mutex>

struct CUevent_st { int magic, device; bool recorded; };
struct cublasContext { int device; cudaStream_t stream; };
struct cusparseContext { int device; };
struct curandGenerator_st { int device; };
struct ncclComm { int device, rank, count; std::string id; };

namespace dtl {
volatile bool never = false;
void fail(const std::string &what) { TORCH_CHECK(false, "device error: ", what); }
int current() { int d = 0; cudaGetDevice(&d); return d; }
int streamDevice(cudaStream_t s) { auto i = reinterpret_cast<uint64_t>(s); return i >> 40 ? static_cast<int>(i >> 40) - 1 : -1; }
int eventDevice(cudaEvent_t e) { return e->device; }
int blasDevice(cublasHandle_t h) { return h->device; }
int sparseDevice(cusparseHandle_t h) { return h->device; }
int commDevice(ncclComm_t c) { return c->device; }
static bool managed(const void *p) { cudaPointerAttributes a; return cudaPointerGetAttributes(&a, p) == cudaSuccess && a.type == cudaMemoryTypeManaged; }
static std::string name(int d) { return "cuda:" + std::to_string(d); }
void checkDevicePointer(const char *what, const void *p, bool hostAllowed) {
  if (!p) return;
  const int device = virtual_cuda_device_of(p);
  if (device < 0) {
    if (!hostAllowed && !virtual_cuda_is_pinned(p))
      fail(std::string(what) + ": illegal memory access: not memory of a GPU");
    return;
  }
  if (device != current() && !managed(p))
    fail(std::string(what) + ": illegal memory access: memory of " + name(device) + " on " + name(current()));
}
void checkStream(const char *what, cudaStream_t s) {
  const int device = streamDevice(s);
  if (device >= 0 && device != current())
    fail(std::string(what) + ": invalid resource handle: stream of " + name(device) + " on " + name(current()));
}
void checkWord(const char *what, const void *p) {
  if (!p) return;
  if (virtual_cuda_device_of(p) >= 0) return checkDevicePointer(what, p);
  const auto w = reinterpret_cast<uint64_t>(p);
  if (w < 0x400000ull || w >> 47) return;
  unsigned char vec;
  if (mincore(reinterpret_cast<void *>(w & ~4095ull), 1, &vec) == 0 && !virtual_cuda_is_pinned(p))
    fail(std::string(what) + ": illegal memory access: not memory of a GPU in a struct");
}
void checkBlas(const char *what, cublasHandle_t h) {
  if (h->device != current()) fail(std::string(what) + ": handle of " + name(h->device) + " on " + name(current()));
}
void checkSparse(const char *what, cusparseHandle_t h) {
  if (h->device != current()) fail(std::string(what) + ": handle of " + name(h->device) + " on " + name(current()));
}
template <typename F> F *next(const char *n) { return reinterpret_cast<F *>(dlsym(RTLD_NEXT, n)); }
static void memory(const char *what, cudaError_t e) {
  if (e != cudaSuccess) { (void)cudaGetLastError(); fail(std::string(what) + ": " + cudaGetErrorString(e)); }
}
} // namespace dtl
using namespace dtl;

extern "C" {
cudaError_t cudaStreamCreate(cudaStream_t *s) {
  static uint64_t made = 0x1000;
  *s = reinterpret_cast<cudaStream_t>((static_cast<uint64_t>(current()) + 1) << 40 | ++made);
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *s, unsigned) { return cudaStreamCreate(s); }
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *s, unsigned, int) { return cudaStreamCreate(s); }
cudaError_t cudaDeviceGetStreamPriorityRange(int *l, int *g) { *l = 0; *g = -1; return cudaSuccess; }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *e, unsigned) { *e = new CUevent_st{7, current(), false}; return cudaSuccess; }
cudaError_t cudaEventCreate(cudaEvent_t *e) { return cudaEventCreateWithFlags(e, 0); }
cudaError_t cudaEventDestroy(cudaEvent_t e) { delete e; return cudaSuccess; }
cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s) {
  const int d = streamDevice(s) >= 0 ? streamDevice(s) : current();
  if (!e || e->device != d) fail("cudaEventRecord: invalid resource handle: event of " + name(e ? e->device : -1) + ", stream of " + name(d));
  e->recorded = true;
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t a, cudaEvent_t b) {
  if (!a || !b || a->device != b->device) fail("cudaEventElapsedTime: invalid resource handle");
  *ms = 1; return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t e, unsigned) { if (!e) fail("cudaStreamWaitEvent: no event"); return cudaSuccess; }
cudaError_t cudaMemcpy(void *t, const void *f, size_t n, cudaMemcpyKind k) {
  static auto *real = next<cudaError_t(void *, const void *, size_t, cudaMemcpyKind)>("cudaMemcpy");
  memory("cudaMemcpy", real(t, f, n, k)); return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void *t, const void *f, size_t n, cudaMemcpyKind k, cudaStream_t) { return cudaMemcpy(t, f, n, k); }
cudaError_t cudaMemcpyPeerAsync(void *t, int td, const void *f, int fd, size_t n, cudaStream_t) {
  static auto *real = next<cudaError_t(void *, int, const void *, int, size_t)>("cudaMemcpyPeer");
  memory("cudaMemcpyPeer", real(t, td, f, fd, n)); return cudaSuccess;
}
cudaError_t cudaMemset(void *t, int v, size_t n) {
  static auto *real = next<cudaError_t(void *, int, size_t)>("cudaMemset");
  memory("cudaMemset", real(t, v, n)); return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void *t, int v, size_t n, cudaStream_t) { return cudaMemset(t, v, n); }

cublasStatus_t cublasCreate_v2(cublasHandle_t *h) { *h = new cublasContext{current(), nullptr}; return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasDestroy_v2(cublasHandle_t h) { delete h; return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasSetStream_v2(cublasHandle_t h, cudaStream_t s) {
  if (streamDevice(s) >= 0 && streamDevice(s) != h->device) fail("cublasSetStream: stream of another GPU");
  h->stream = s; return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasGetStream_v2(cublasHandle_t h, cudaStream_t *s) { *s = h->stream; return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t h, void *p, size_t) {
  if (virtual_cuda_device_of(p) != h->device) fail("cublasSetWorkspace: memory of another GPU");
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetMathMode(cublasHandle_t, cublasMath_t) { return CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t, cublasPointerMode_t) { return CUBLAS_STATUS_SUCCESS; }
const char *cublasGetStatusString(cublasStatus_t) { return "status"; }
cusparseStatus_t cusparseCreate(cusparseHandle_t *h) { *h = new cusparseContext{current()}; return CUSPARSE_STATUS_SUCCESS; }
cusparseStatus_t cusparseDestroy(cusparseHandle_t h) { delete h; return CUSPARSE_STATUS_SUCCESS; }
cusparseStatus_t cusparseSetStream(cusparseHandle_t h, cudaStream_t s) {
  if (streamDevice(s) >= 0 && streamDevice(s) != h->device) fail("cusparseSetStream: stream of another GPU");
  return CUSPARSE_STATUS_SUCCESS;
}
const char *cusparseGetErrorString(cusparseStatus_t) { return "status"; }
curandStatus_t curandCreateGenerator(curandGenerator_t *g, curandRngType_t) { *g = new curandGenerator_st{current()}; return CURAND_STATUS_SUCCESS; }
curandStatus_t curandDestroyGenerator(curandGenerator_t g) { delete g; return CURAND_STATUS_SUCCESS; }
curandStatus_t curandSetStream(curandGenerator_t g, cudaStream_t s) {
  if (streamDevice(s) >= 0 && streamDevice(s) != g->device) fail("curandSetStream: stream of another GPU");
  return CURAND_STATUS_SUCCESS;
}
curandStatus_t curandSetPseudoRandomGeneratorSeed(curandGenerator_t, unsigned long long) { return CURAND_STATUS_SUCCESS; }
curandStatus_t curandGenerateUniform(curandGenerator_t g, float *p, size_t) {
  if (g->device != current()) fail("curandGenerateUniform: generator of another GPU");
  checkDevicePointer("curandGenerateUniform", p); return CURAND_STATUS_SUCCESS;
}
curandStatus_t curandGenerateNormal(curandGenerator_t g, float *p, size_t n, float, float) { return curandGenerateUniform(g, p, n); }

// cuFFT: plans are numbers.
static std::vector<int> plans;
int cufftPlan1d(int *plan, int, int, int) { plans.push_back(current()); *plan = static_cast<int>(plans.size()); return 0; }
int cufftPlan2d(int *plan, int, int, int) { return cufftPlan1d(plan, 0, 0, 0); }
int cufftPlanMany(int *plan, int, int *, int *, int, int, int *, int, int, int, int) { return cufftPlan1d(plan, 0, 0, 0); }
int cufftDestroy(int) { return 0; }
int cufftSetStream(int plan, cudaStream_t s) {
  if (streamDevice(s) >= 0 && streamDevice(s) != plans.at(plan - 1)) fail("cufftSetStream: stream of another GPU");
  return 0;
}
static int exec(const char *what, int plan, const void *in, const void *out) {
  if (plans.at(plan - 1) != current()) fail(std::string(what) + ": plan of " + name(plans.at(plan - 1)) + " on " + name(current()));
  checkDevicePointer(what, in); checkDevicePointer(what, out); return 0;
}
int cufftExecC2C(int plan, void *in, void *out, int) { return exec("cufftExecC2C", plan, in, out); }
int cufftExecR2C(int plan, void *in, void *out) { return exec("cufftExecR2C", plan, in, out); }
int cufftExecC2R(int plan, void *in, void *out) { return exec("cufftExecC2R", plan, in, out); }

// NCCL: nothing is sent; ranks of one id must be on GPUs of their own.
static std::mutex ranksMutex;
static std::map<std::string, std::map<int, int>> ranks;
ncclResult_t ncclGetVersion(int *v) { *v = 22005; return ncclSuccess; }
ncclResult_t ncclGetUniqueId(ncclUniqueId *id) { static int made = 0; memset(id, 0, sizeof *id); snprintf(id->internal, 32, "id%d", ++made); return ncclSuccess; }
ncclResult_t ncclCommInitRank(ncclComm_t *c, int n, ncclUniqueId id, int rank) {
  std::lock_guard<std::mutex> lock(ranksMutex);
  auto &taken = ranks[std::string(id.internal, 32)];
  for (auto &[r, d] : taken)
    if (r != rank && d == current()) fail("ncclCommInitRank: Duplicate GPU detected: rank " + std::to_string(r) + " and rank " + std::to_string(rank) + " both on " + name(d));
  taken[rank] = current();
  *c = new ncclComm{current(), rank, n, id.internal};
  return ncclSuccess;
}
ncclResult_t ncclCommInitAll(ncclComm_t *c, int n, const int *devices) {
  std::map<int, int> seen; int count = 0; cudaGetDeviceCount(&count);
  for (int i = 0; i < n; ++i) {
    int d = devices ? devices[i] : i;
    if (d < 0 || d >= count) fail("ncclCommInitAll: invalid device ordinal");
    if (seen[d]++) fail("ncclCommInitAll: Duplicate GPU detected");
    c[i] = new ncclComm{d, i, n, "all"};
  }
  return ncclSuccess;
}
ncclResult_t ncclCommDestroy(ncclComm_t c) { delete c; return ncclSuccess; }
ncclResult_t ncclCommAbort(ncclComm_t c) { delete c; return ncclSuccess; }
ncclResult_t ncclCommCount(const ncclComm_t c, int *n) { *n = c->count; return ncclSuccess; }
ncclResult_t ncclCommCuDevice(const ncclComm_t c, int *n) { *n = c->device; return ncclSuccess; }
ncclResult_t ncclCommUserRank(const ncclComm_t c, int *n) { *n = c->rank; return ncclSuccess; }
ncclResult_t ncclCommGetAsyncError(ncclComm_t, ncclResult_t *e) { *e = ncclSuccess; return ncclSuccess; }
const char *ncclGetErrorString(ncclResult_t) { return "result"; }
ncclResult_t ncclGroupStart() { return ncclSuccess; }
ncclResult_t ncclGroupEnd() { return ncclSuccess; }
static ncclResult_t collective(const char *what, const void *a, const void *b, ncclComm_t c, cudaStream_t s) {
  for (auto p : {a, b})
    if (p && virtual_cuda_device_of(p) != c->device && !virtual_cuda_is_pinned(p))
      fail(std::string(what) + ": buffer is not memory of " + name(c->device) + ", the GPU of the communicator");
  const int d = streamDevice(s) >= 0 ? streamDevice(s) : current();
  if (d != c->device) fail(std::string(what) + ": stream of " + name(d) + ", communicator of " + name(c->device));
  return ncclSuccess;
}
ncclResult_t ncclReduce(const void *a, void *b, size_t, ncclDataType_t, ncclRedOp_t, int, ncclComm_t c, cudaStream_t s) { return collective("ncclReduce", a, b, c, s); }
ncclResult_t ncclBcast(void *a, size_t, ncclDataType_t, int, ncclComm_t c, cudaStream_t s) { return collective("ncclBcast", a, a, c, s); }
ncclResult_t ncclBroadcast(const void *a, void *b, size_t, ncclDataType_t, int, ncclComm_t c, cudaStream_t s) { return collective("ncclBroadcast", a, b, c, s); }
ncclResult_t ncclAllReduce(const void *a, void *b, size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t c, cudaStream_t s) { return collective("ncclAllReduce", a, b, c, s); }
ncclResult_t ncclReduceScatter(const void *a, void *b, size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t c, cudaStream_t s) { return collective("ncclReduceScatter", a, b, c, s); }
ncclResult_t ncclAllGather(const void *a, void *b, size_t, ncclDataType_t, ncclComm_t c, cudaStream_t s) { return collective("ncclAllGather", a, b, c, s); }
ncclResult_t ncclSend(const void *a, size_t, ncclDataType_t, int, ncclComm_t c, cudaStream_t s) { return collective("ncclSend", a, a, c, s); }
ncclResult_t ncclRecv(void *a, size_t, ncclDataType_t, int, ncclComm_t c, cudaStream_t s) { return collective("ncclRecv", a, a, c, s); }

// MPI, not built for GPUs.
static void host(const char *what, const void *p) { if (virtual_cuda_device_of(p) >= 0) fail(std::string(what) + ": host code used memory of a GPU"); }
static int mpiBytes(int type) { return type == 4 ? 8 : type == 5 ? 1 : 4; }
int dtl_mpi_rank = 0, dtl_mpi_size = 2;
int MPI_Init(int *, char ***) { return 0; }
int MPI_Finalize() { return 0; }
int MPI_Comm_rank(int, int *r) { *r = dtl_mpi_rank; return 0; }
int MPI_Comm_size(int, int *n) { *n = dtl_mpi_size; return 0; }
int MPI_Comm_split_type(int, int, int, int, int *c) { *c = 1; return 0; }
int MPI_Barrier(int) { return 0; }
int MPI_Send(const void *p, int, int, int, int, int) { host("MPI_Send", p); return 0; }
int MPI_Recv(void *p, int, int, int, int, int, void *) { host("MPI_Recv", p); return 0; }
int MPI_Isend(const void *p, int, int, int, int, int, int *r) { host("MPI_Isend", p); *r = 1; return 0; }
int MPI_Irecv(void *p, int, int, int, int, int, int *r) { host("MPI_Irecv", p); *r = 1; return 0; }
int MPI_Waitall(int, int *, void *) { return 0; }
int MPI_Wait(int *, void *) { return 0; }
int MPI_Sendrecv(const void *a, int, int, int, int, void *b, int, int, int, int, int, void *) { host("MPI_Sendrecv", a); host("MPI_Sendrecv", b); return 0; }
int MPI_Bcast(void *p, int, int, int, int) { host("MPI_Bcast", p); return 0; }
int MPI_Allreduce(const void *a, void *b, int n, int t, int, int) {
  if (a != reinterpret_cast<const void *>(-1)) { host("MPI_Allreduce", a); host("MPI_Allreduce", b); memcpy(b, a, static_cast<size_t>(n) * mpiBytes(t)); }
  host("MPI_Allreduce", b); return 0;
}
int MPI_Allgather(const void *a, int, int, void *b, int, int, int) { host("MPI_Allgather", a); host("MPI_Allgather", b); return 0; }
int MPI_Gather(const void *a, int, int, void *b, int, int, int, int) { host("MPI_Gather", a); if (b) host("MPI_Gather", b); return 0; }
}

namespace at { namespace cuda {
template <typename H, typename F> static H perDevice(F create) {
  thread_local std::map<int, H> handles;
  auto &h = handles[current()];
  if (!h) create(&h);
  return h;
}
cublasHandle_t getCurrentCUDABlasHandle() { auto h = perDevice<cublasHandle_t>(cublasCreate_v2); cublasSetStream_v2(h, getCurrentCUDAStream()); return h; }
cusparseHandle_t getCurrentCUDASparseHandle() { return perDevice<cusparseHandle_t>(cusparseCreate); }
}} // namespace at::cuda
