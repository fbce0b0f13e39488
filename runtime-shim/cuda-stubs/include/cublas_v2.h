// Stand-in for CUDA's cublas_v2.h. Nothing implements it: it is for reading.
#pragma once

#include "cuComplex.h"
#include "cuda_bf16.h"
#include "cuda_fp16.h"
#include "driver_types.h"
#include "library_types.h"

#define CUBLAS_VER_MAJOR 12
#define CUBLAS_VER_MINOR 4
#define CUBLAS_VERSION 120400

typedef struct cublasContext *cublasHandle_t;
typedef enum {
  CUBLAS_STATUS_SUCCESS = 0,
  CUBLAS_STATUS_NOT_INITIALIZED = 1,
  CUBLAS_STATUS_ALLOC_FAILED = 3,
  CUBLAS_STATUS_INVALID_VALUE = 7,
  CUBLAS_STATUS_ARCH_MISMATCH = 8,
  CUBLAS_STATUS_MAPPING_ERROR = 11,
  CUBLAS_STATUS_EXECUTION_FAILED = 13,
  CUBLAS_STATUS_INTERNAL_ERROR = 14,
  CUBLAS_STATUS_NOT_SUPPORTED = 15,
  CUBLAS_STATUS_LICENSE_ERROR = 16
} cublasStatus_t;
typedef enum {
  CUBLAS_OP_N = 0,
  CUBLAS_OP_T = 1,
  CUBLAS_OP_C = 2,
  CUBLAS_OP_HERMITAN = 2,
  CUBLAS_OP_CONJG = 3
} cublasOperation_t;
typedef enum {
  CUBLAS_FILL_MODE_LOWER = 0,
  CUBLAS_FILL_MODE_UPPER = 1,
  CUBLAS_FILL_MODE_FULL = 2
} cublasFillMode_t;
typedef enum { CUBLAS_DIAG_NON_UNIT = 0, CUBLAS_DIAG_UNIT = 1 } cublasDiagType_t;
typedef enum { CUBLAS_SIDE_LEFT = 0, CUBLAS_SIDE_RIGHT = 1 } cublasSideMode_t;
typedef enum { CUBLAS_POINTER_MODE_HOST = 0, CUBLAS_POINTER_MODE_DEVICE = 1 } cublasPointerMode_t;
typedef enum {
  CUBLAS_DEFAULT_MATH = 0,
  CUBLAS_TENSOR_OP_MATH = 1,
  CUBLAS_PEDANTIC_MATH = 2,
  CUBLAS_TF32_TENSOR_OP_MATH = 3,
  CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION = 16
} cublasMath_t;
typedef enum {
  CUBLAS_GEMM_DEFAULT = -1,
  CUBLAS_GEMM_DFALT = -1,
  CUBLAS_GEMM_ALGO0 = 0,
  CUBLAS_GEMM_ALGO1 = 1,
  CUBLAS_GEMM_ALGO2 = 2,
  CUBLAS_GEMM_ALGO3 = 3,
  CUBLAS_GEMM_ALGO4 = 4,
  CUBLAS_GEMM_ALGO5 = 5,
  CUBLAS_GEMM_ALGO6 = 6,
  CUBLAS_GEMM_ALGO7 = 7,
  CUBLAS_GEMM_ALGO8 = 8,
  CUBLAS_GEMM_ALGO9 = 9,
  CUBLAS_GEMM_ALGO10 = 10,
  CUBLAS_GEMM_ALGO11 = 11,
  CUBLAS_GEMM_ALGO12 = 12,
  CUBLAS_GEMM_ALGO13 = 13,
  CUBLAS_GEMM_ALGO14 = 14,
  CUBLAS_GEMM_ALGO15 = 15,
  CUBLAS_GEMM_ALGO16 = 16,
  CUBLAS_GEMM_ALGO17 = 17,
  CUBLAS_GEMM_ALGO18 = 18,
  CUBLAS_GEMM_ALGO19 = 19,
  CUBLAS_GEMM_ALGO20 = 20,
  CUBLAS_GEMM_ALGO21 = 21,
  CUBLAS_GEMM_ALGO22 = 22,
  CUBLAS_GEMM_ALGO23 = 23,
  CUBLAS_GEMM_DEFAULT_TENSOR_OP = 99,
  CUBLAS_GEMM_DFALT_TENSOR_OP = 99,
  CUBLAS_GEMM_ALGO0_TENSOR_OP = 100,
  CUBLAS_GEMM_ALGO1_TENSOR_OP = 101,
  CUBLAS_GEMM_ALGO2_TENSOR_OP = 102,
  CUBLAS_GEMM_ALGO3_TENSOR_OP = 103,
  CUBLAS_GEMM_ALGO4_TENSOR_OP = 104,
  CUBLAS_GEMM_ALGO5_TENSOR_OP = 105,
  CUBLAS_GEMM_ALGO6_TENSOR_OP = 106,
  CUBLAS_GEMM_ALGO7_TENSOR_OP = 107,
  CUBLAS_GEMM_ALGO8_TENSOR_OP = 108,
  CUBLAS_GEMM_ALGO9_TENSOR_OP = 109,
  CUBLAS_GEMM_ALGO10_TENSOR_OP = 110,
  CUBLAS_GEMM_ALGO11_TENSOR_OP = 111,
  CUBLAS_GEMM_ALGO12_TENSOR_OP = 112,
  CUBLAS_GEMM_ALGO13_TENSOR_OP = 113,
  CUBLAS_GEMM_ALGO14_TENSOR_OP = 114,
  CUBLAS_GEMM_ALGO15_TENSOR_OP = 115
} cublasGemmAlgo_t;
typedef enum {
  CUBLAS_COMPUTE_16F = 64,
  CUBLAS_COMPUTE_16F_PEDANTIC = 65,
  CUBLAS_COMPUTE_32F = 68,
  CUBLAS_COMPUTE_32F_PEDANTIC = 69,
  CUBLAS_COMPUTE_64F = 70,
  CUBLAS_COMPUTE_64F_PEDANTIC = 71,
  CUBLAS_COMPUTE_32I = 72,
  CUBLAS_COMPUTE_32I_PEDANTIC = 73,
  CUBLAS_COMPUTE_32F_FAST_16F = 74,
  CUBLAS_COMPUTE_32F_FAST_16BF = 75,
  CUBLAS_COMPUTE_32F_FAST_TF32 = 77
} cublasComputeType_t;
typedef enum { CUBLAS_ATOMICS_NOT_ALLOWED = 0, CUBLAS_ATOMICS_ALLOWED = 1 } cublasAtomicsMode_t;
typedef cudaDataType cublasDataType_t;

#ifdef __cplusplus
extern "C" {
#endif
cublasStatus_t cublasCreate_v2(cublasHandle_t *handle);
cublasStatus_t cublasDestroy_v2(cublasHandle_t handle);
cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, cudaStream_t stream);
cublasStatus_t cublasGetStream_v2(cublasHandle_t handle, cudaStream_t *stream);
cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void *workspace, size_t bytes);
cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode);
cublasStatus_t cublasGetMathMode(cublasHandle_t handle, cublasMath_t *mode);
cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t mode);
cublasStatus_t cublasGetPointerMode_v2(cublasHandle_t handle, cublasPointerMode_t *mode);
cublasStatus_t cublasSetAtomicsMode(cublasHandle_t handle, cublasAtomicsMode_t mode);
cublasStatus_t cublasGetAtomicsMode(cublasHandle_t handle, cublasAtomicsMode_t *mode);
cublasStatus_t cublasGetVersion_v2(cublasHandle_t handle, int *version);
cublasStatus_t cublasGetProperty(libraryPropertyType type, int *value);
size_t cublasGetCudartVersion(void);
const char *cublasGetStatusName(cublasStatus_t status);
cublasStatus_t cublasSetVector(int count, int size, const void *from, int stepFrom, void *to, int stepTo);
cublasStatus_t cublasGetVector(int count, int size, const void *from, int stepFrom, void *to, int stepTo);
cublasStatus_t cublasSetMatrix(int rows, int columns, int size, const void *from, int stepFrom, void *to,
                               int stepTo);
cublasStatus_t cublasGetMatrix(int rows, int columns, int size, const void *from, int stepFrom, void *to,
                               int stepTo);
const char *cublasGetStatusString(cublasStatus_t status);
#ifdef __cplusplus
}

// Products of matrices: code takes their addresses.
#define VIRTUAL_GEMM(letter, Number)                                                                         \
  cublasStatus_t cublas##letter##gemm(cublasHandle_t handle, cublasOperation_t opA, cublasOperation_t opB,   \
                                      int m, int n, int k, const Number *alpha, const Number *a, int lda,    \
                                      const Number *b, int ldb, const Number *beta, Number *c, int ldc);     \
  cublasStatus_t cublas##letter##gemmStridedBatched(                                                         \
      cublasHandle_t handle, cublasOperation_t opA, cublasOperation_t opB, int m, int n, int k,              \
      const Number *alpha, const Number *a, int lda, long long strideA, const Number *b, int ldb,            \
      long long strideB, const Number *beta, Number *c, int ldc, long long strideC, int batches);            \
  cublasStatus_t cublas##letter##gemmBatched(                                                                \
      cublasHandle_t handle, cublasOperation_t opA, cublasOperation_t opB, int m, int n, int k,              \
      const Number *alpha, const Number *const a[], int lda, const Number *const b[], int ldb,               \
      const Number *beta, Number *const c[], int ldc, int batches);
VIRTUAL_GEMM(H, __half)
VIRTUAL_GEMM(S, float)
VIRTUAL_GEMM(D, double)
VIRTUAL_GEMM(C, cuComplex)
VIRTUAL_GEMM(Z, cuDoubleComplex)
#undef VIRTUAL_GEMM

// The others have many arguments each, and nothing depends on their types.
#define VIRTUAL_CUBLAS(name) template <typename... Arguments> cublasStatus_t name(Arguments &&...)
VIRTUAL_CUBLAS(cublasCherk);
VIRTUAL_CUBLAS(cublasZherk);
VIRTUAL_CUBLAS(cublasCdotu);
VIRTUAL_CUBLAS(cublasCdotc);
VIRTUAL_CUBLAS(cublasZdotu);
VIRTUAL_CUBLAS(cublasZdotc);
VIRTUAL_CUBLAS(cublasCgeru);
VIRTUAL_CUBLAS(cublasCgerc);
VIRTUAL_CUBLAS(cublasZgeru);
VIRTUAL_CUBLAS(cublasZgerc);
VIRTUAL_CUBLAS(cublasChemm);
VIRTUAL_CUBLAS(cublasZhemm);
VIRTUAL_CUBLAS(cublasCsscal);
VIRTUAL_CUBLAS(cublasZdscal);
VIRTUAL_CUBLAS(cublasScnrm2);
VIRTUAL_CUBLAS(cublasDznrm2);
VIRTUAL_CUBLAS(cublasScasum);
VIRTUAL_CUBLAS(cublasDzasum);
VIRTUAL_CUBLAS(cublasIsamax);
VIRTUAL_CUBLAS(cublasIdamax);
VIRTUAL_CUBLAS(cublasIcamax);
VIRTUAL_CUBLAS(cublasIzamax);
VIRTUAL_CUBLAS(cublasIsamin);
VIRTUAL_CUBLAS(cublasIdamin);
VIRTUAL_CUBLAS(cublasCgemm3m);
VIRTUAL_CUBLAS(cublasSgemmEx);
VIRTUAL_CUBLAS(cublasCgemmEx);
VIRTUAL_CUBLAS(cublasGemmEx);
VIRTUAL_CUBLAS(cublasGemmBatchedEx);
VIRTUAL_CUBLAS(cublasGemmStridedBatchedEx);
VIRTUAL_CUBLAS(cublasGemmGroupedBatchedEx);
VIRTUAL_CUBLAS(cublasAxpyEx);
VIRTUAL_CUBLAS(cublasDotEx);
VIRTUAL_CUBLAS(cublasDotcEx);
VIRTUAL_CUBLAS(cublasNrm2Ex);
VIRTUAL_CUBLAS(cublasScalEx);
VIRTUAL_CUBLAS(cublasRotEx);
VIRTUAL_CUBLAS(cublasHSHgemvBatched);
VIRTUAL_CUBLAS(cublasHSSgemvBatched);

// These have a name for each type of numbers.
#define VIRTUAL_CUBLAS_TYPES(name)                                                                           \
  VIRTUAL_CUBLAS(cublasS##name);                                                                             \
  VIRTUAL_CUBLAS(cublasD##name);                                                                             \
  VIRTUAL_CUBLAS(cublasC##name);                                                                             \
  VIRTUAL_CUBLAS(cublasZ##name);
VIRTUAL_CUBLAS_TYPES(gemv)
VIRTUAL_CUBLAS_TYPES(gemvBatched)
VIRTUAL_CUBLAS_TYPES(gemvStridedBatched)
VIRTUAL_CUBLAS_TYPES(ger)
VIRTUAL_CUBLAS_TYPES(geam)
VIRTUAL_CUBLAS_TYPES(dgmm)
VIRTUAL_CUBLAS_TYPES(axpy)
VIRTUAL_CUBLAS_TYPES(scal)
VIRTUAL_CUBLAS_TYPES(copy)
VIRTUAL_CUBLAS_TYPES(swap)
VIRTUAL_CUBLAS_TYPES(dot)
VIRTUAL_CUBLAS_TYPES(nrm2)
VIRTUAL_CUBLAS_TYPES(asum)
VIRTUAL_CUBLAS_TYPES(rot)
VIRTUAL_CUBLAS_TYPES(rotg)
VIRTUAL_CUBLAS_TYPES(trsm)
VIRTUAL_CUBLAS_TYPES(trsmBatched)
VIRTUAL_CUBLAS_TYPES(trmm)
VIRTUAL_CUBLAS_TYPES(trsv)
VIRTUAL_CUBLAS_TYPES(symm)
VIRTUAL_CUBLAS_TYPES(symv)
VIRTUAL_CUBLAS_TYPES(syrk)
VIRTUAL_CUBLAS_TYPES(syrkx)
VIRTUAL_CUBLAS_TYPES(syr2k)
VIRTUAL_CUBLAS_TYPES(getrfBatched)
VIRTUAL_CUBLAS_TYPES(getrsBatched)
VIRTUAL_CUBLAS_TYPES(getriBatched)
VIRTUAL_CUBLAS_TYPES(matinvBatched)
VIRTUAL_CUBLAS_TYPES(geqrfBatched)
VIRTUAL_CUBLAS_TYPES(gelsBatched)
#undef VIRTUAL_CUBLAS_TYPES
#undef VIRTUAL_CUBLAS
#endif

#define cublasCreate cublasCreate_v2
#define cublasDestroy cublasDestroy_v2
#define cublasSetStream cublasSetStream_v2
#define cublasGetStream cublasGetStream_v2
#define cublasSetWorkspace cublasSetWorkspace_v2
#define cublasSetPointerMode cublasSetPointerMode_v2
#define cublasGetPointerMode cublasGetPointerMode_v2
#define cublasGetVersion cublasGetVersion_v2
