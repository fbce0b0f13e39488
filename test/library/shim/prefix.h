// Force-included when a program is run: what a launch f<<<...>>>(...) becomes, and the checks of what it gets.
#pragma once
#define DT_SHIM 1
#include <torch/torch.h>
#include <cstdint>
namespace at { template <typename T> struct RestrictPtrTraits { typedef T *__restrict__ PtrType; }; }
namespace torch { using at::RestrictPtrTraits; }
#include <torch/library.h>
#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/CUDAEvent.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <cuda_runtime.h>
#include <device_functions.h>
#include <device_launch_parameters.h>
#include <cublas_v2.h>
#include <cusparse.h>
#include <curand.h>
#include <nccl.h>
#include "../../cases/cases.h"

extern "C" int virtual_cuda_device_of(const void *) __attribute__((weak));
extern "C" int virtual_cuda_is_pinned(const void *) __attribute__((weak));

namespace dtl {
[[noreturn]] void fail(const std::string &what);
int current();
int streamDevice(cudaStream_t stream); // -1: null
int eventDevice(cudaEvent_t event);
int blasDevice(cublasHandle_t handle);
int sparseDevice(cusparseHandle_t handle);
int commDevice(ncclComm_t comm);
void checkDevicePointer(const char *what, const void *p, bool hostAllowed = false);
void checkStream(const char *what, cudaStream_t stream);
void checkWord(const char *what, const void *p);
void checkBlas(const char *what, cublasHandle_t handle);
void checkSparse(const char *what, cusparseHandle_t handle);
// What a driver asks of results that no call checks.
inline void require(bool good, const std::string &what) {
  if (!good)
    fail(what);
}
inline void onDevice(const torch::Tensor &t, int device, const std::string &what) {
  require(t.is_cuda() && t.get_device() == device, what + " is not on cuda:" + std::to_string(device));
}
// Whether the memory was freed under a pointer: MALLOC_PERTURB_ fills it.
extern volatile bool never;

template <typename T, typename = void> struct HasData : std::false_type {};
template <typename T> struct HasData<T, std::void_t<decltype(std::declval<T>().data()), decltype(std::declval<T>().size(0))>> : std::true_type {};

template <typename T> void checkArgument(const T &value) {
  using V = std::decay_t<T>;
  if constexpr (std::is_pointer_v<V>) {
    if constexpr (!std::is_function_v<std::remove_pointer_t<V>>)
      checkDevicePointer("kernel launch", (const void *)value);
  } else if constexpr (HasData<V>::value) {
    checkDevicePointer("kernel launch", (const void *)value.data());
  } else if constexpr (std::is_class_v<V> && sizeof(V) >= 8) {
    for (size_t i = 0; i + 8 <= sizeof(V); i += 8) {
      const void *word;
      memcpy(&word, (const char *)&value + i, 8);
      checkWord("kernel launch", word);
    }
  }
}
template <typename F> struct Call {
  F f;
  template <typename... A> void operator()(A &&...a) const {
    (checkArgument(a), ...);
    if (never)
      f(std::forward<A>(a)...);
  }
};
struct Launch {
  template <typename G, typename B> Launch(G, B, size_t = 0, cudaStream_t stream = nullptr) { checkStream("kernel launch", stream); }
  template <typename F> Call<F> go(F f) const { return {f}; }
};
template <typename... A> void blasArguments(const char *what, std::vector<int> scalars, A &&...a) {
  int position = 0;
  auto one = [&](const auto &v) {
    using V = std::decay_t<decltype(v)>;
    if constexpr (std::is_pointer_v<V> && !std::is_same_v<V, cublasHandle_t> && !std::is_same_v<V, cusparseHandle_t>) {
      const bool scalar = std::find(scalars.begin(), scalars.end(), position) != scalars.end();
      ++position;
      if (!scalar || (v && virtual_cuda_device_of && virtual_cuda_device_of((const void *)v) >= 0))
        checkDevicePointer(what, (const void *)v);
    } else if constexpr (std::is_same_v<V, cublasHandle_t>) {
      checkBlas(what, v);
    }
  };
  (one(a), ...);
}
struct Descriptor { int magic; std::vector<const void *> pointers; };
} // namespace dtl

#define DTL_BLAS(name, ...) template <typename... A> cublasStatus_t name(A &&...a) { dtl::blasArguments(#name, {__VA_ARGS__}, a...); return CUBLAS_STATUS_SUCCESS; }
DTL_BLAS(cublasSgemm, 0, 3)
DTL_BLAS(cublasDgemm, 0, 3)
DTL_BLAS(cublasGemmEx, 0, 3)
DTL_BLAS(cublasSgemmStridedBatched, 0, 3)
DTL_BLAS(cublasGemmStridedBatchedEx, 0, 3)
DTL_BLAS(cublasSgemv, 0, 3)
DTL_BLAS(cublasSgeam, 0, 2)
DTL_BLAS(cublasSaxpy, 0)
DTL_BLAS(cublasSdot, 2)
DTL_BLAS(cublasStrsm, 0)
// Descriptors remember their pointers; the call that uses them checks.
template <typename D, typename... A> cusparseStatus_t dtlDescribe(D *d, A... a) {
  auto *made = new dtl::Descriptor{0x5eed, {}};
  auto one = [&](auto v) { if constexpr (std::is_pointer_v<decltype(v)>) made->pointers.push_back((const void *)v); };
  (one(a), ...);
  *d = reinterpret_cast<D>(made);
  return CUSPARSE_STATUS_SUCCESS;
}
#define DTL_DESCRIBE(name) template <typename... A> cusparseStatus_t name(A &&...a) { return dtlDescribe(std::decay_t<A>(a)...); }
DTL_DESCRIBE(cusparseCreateCoo)
DTL_DESCRIBE(cusparseCreateCsr)
DTL_DESCRIBE(cusparseCreateDnMat)
DTL_DESCRIBE(cusparseCreateDnVec)
template <typename... A> cusparseStatus_t dtlSparse(const char *what, const A &...a) {
  auto one = [&](auto v) {
    using V = decltype(v);
    if constexpr (std::is_same_v<V, cusparseHandle_t>) dtl::checkSparse(what, v);
    else if constexpr (std::is_same_v<V, cusparseSpMatDescr_t> || std::is_same_v<V, cusparseDnMatDescr_t> || std::is_same_v<V, cusparseDnVecDescr_t>)
      for (auto p : reinterpret_cast<dtl::Descriptor *>(v)->pointers) dtl::checkDevicePointer(what, p);
  };
  (one(a), ...);
  return CUSPARSE_STATUS_SUCCESS;
}
template <typename... A> cusparseStatus_t cusparseSpMM(A &&...a) { return dtlSparse("cusparseSpMM", a...); }
template <typename... A> cusparseStatus_t cusparseSpMV(A &&...a) { return dtlSparse("cusparseSpMV", a...); }
template <typename T> void dtlSize(T v) { if constexpr (std::is_same_v<T, size_t *>) *v = 256; }
template <typename... A> cusparseStatus_t cusparseSpMM_bufferSize(A &&...a) { dtlSparse("cusparseSpMM_bufferSize", a...); (dtlSize(std::decay_t<A>(a)), ...); return CUSPARSE_STATUS_SUCCESS; }
template <typename... A> cusparseStatus_t cusparseSpMV_bufferSize(A &&...a) { dtlSparse("cusparseSpMV_bufferSize", a...); (dtlSize(std::decay_t<A>(a)), ...); return CUSPARSE_STATUS_SUCCESS; }
template <typename... A> cusparseStatus_t cusparseXcoo2csr(A &&...a) {
  auto one = [&](auto v) { using V = decltype(v); if constexpr (std::is_same_v<V, cusparseHandle_t>) dtl::checkSparse("cusparseXcoo2csr", v); else if constexpr (std::is_pointer_v<V>) dtl::checkDevicePointer("cusparseXcoo2csr", (const void *)v); };
  (one(std::decay_t<A>(a)), ...);
  return CUSPARSE_STATUS_SUCCESS;
}
template <typename... A> cusparseStatus_t cusparseDestroySpMat(A &&...) { return CUSPARSE_STATUS_SUCCESS; }
template <typename... A> cusparseStatus_t cusparseDestroyDnMat(A &&...) { return CUSPARSE_STATUS_SUCCESS; }
template <typename... A> cusparseStatus_t cusparseDestroyDnVec(A &&...) { return CUSPARSE_STATUS_SUCCESS; }
