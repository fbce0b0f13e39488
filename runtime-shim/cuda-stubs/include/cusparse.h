// Stand-in for CUDA's cusparse.h. Nothing implements it: it is for reading.
#pragma once

#include "cuComplex.h"
#include "driver_types.h"
#include "library_types.h"

#define CUSPARSE_VER_MAJOR 12
#define CUSPARSE_VER_MINOR 3
#define CUSPARSE_VERSION 12300

typedef struct cusparseContext *cusparseHandle_t;
typedef struct cusparseMatDescr *cusparseMatDescr_t;
typedef struct cusparseSpMatDescr *cusparseSpMatDescr_t;
typedef struct cusparseDnMatDescr *cusparseDnMatDescr_t;
typedef struct cusparseDnVecDescr *cusparseDnVecDescr_t;
typedef struct cusparseSpVecDescr *cusparseSpVecDescr_t;
typedef struct cusparseSpGEMMDescr *cusparseSpGEMMDescr_t;
typedef struct cusparseSpSVDescr *cusparseSpSVDescr_t;
typedef struct cusparseSpSMDescr *cusparseSpSMDescr_t;
typedef const struct cusparseSpMatDescr *cusparseConstSpMatDescr_t;
typedef const struct cusparseDnMatDescr *cusparseConstDnMatDescr_t;
typedef const struct cusparseDnVecDescr *cusparseConstDnVecDescr_t;
typedef struct csrgemm2Info *csrgemm2Info_t;
typedef struct csrsv2Info *csrsv2Info_t;
typedef struct csrsm2Info *csrsm2Info_t;
typedef struct csrilu02Info *csrilu02Info_t;
typedef struct csric02Info *csric02Info_t;
typedef struct csru2csrInfo *csru2csrInfo_t;
typedef struct bsrsv2Info *bsrsv2Info_t;
typedef struct bsrsm2Info *bsrsm2Info_t;
typedef struct pruneInfo *pruneInfo_t;
typedef enum {
  CUSPARSE_STATUS_SUCCESS = 0,
  CUSPARSE_STATUS_NOT_INITIALIZED = 1,
  CUSPARSE_STATUS_ALLOC_FAILED = 2,
  CUSPARSE_STATUS_INVALID_VALUE = 3,
  CUSPARSE_STATUS_ARCH_MISMATCH = 4,
  CUSPARSE_STATUS_MAPPING_ERROR = 5,
  CUSPARSE_STATUS_EXECUTION_FAILED = 6,
  CUSPARSE_STATUS_INTERNAL_ERROR = 7,
  CUSPARSE_STATUS_MATRIX_TYPE_NOT_SUPPORTED = 8,
  CUSPARSE_STATUS_ZERO_PIVOT = 9,
  CUSPARSE_STATUS_NOT_SUPPORTED = 10,
  CUSPARSE_STATUS_INSUFFICIENT_RESOURCES = 11
} cusparseStatus_t;
typedef enum { CUSPARSE_INDEX_BASE_ZERO = 0, CUSPARSE_INDEX_BASE_ONE = 1 } cusparseIndexBase_t;
typedef enum { CUSPARSE_INDEX_16U = 1, CUSPARSE_INDEX_32I = 2, CUSPARSE_INDEX_64I = 3 } cusparseIndexType_t;
typedef enum { CUSPARSE_ORDER_COL = 1, CUSPARSE_ORDER_ROW = 2 } cusparseOrder_t;
typedef enum { CUSPARSE_POINTER_MODE_HOST = 0, CUSPARSE_POINTER_MODE_DEVICE = 1 } cusparsePointerMode_t;
typedef enum {
  CUSPARSE_OPERATION_NON_TRANSPOSE = 0,
  CUSPARSE_OPERATION_TRANSPOSE = 1,
  CUSPARSE_OPERATION_CONJUGATE_TRANSPOSE = 2
} cusparseOperation_t;
typedef enum {
  CUSPARSE_SPMM_ALG_DEFAULT = 0,
  CUSPARSE_MM_ALG_DEFAULT = 0,
  CUSPARSE_SPMM_COO_ALG1 = 1,
  CUSPARSE_COOMM_ALG1 = 1,
  CUSPARSE_SPMM_COO_ALG2 = 2,
  CUSPARSE_COOMM_ALG2 = 2,
  CUSPARSE_SPMM_COO_ALG3 = 3,
  CUSPARSE_COOMM_ALG3 = 3,
  CUSPARSE_SPMM_CSR_ALG1 = 4,
  CUSPARSE_SPMM_COO_ALG4 = 5,
  CUSPARSE_SPMM_CSR_ALG2 = 6
} cusparseSpMMAlg_t;

typedef enum {
  CUSPARSE_MATRIX_TYPE_GENERAL = 0,
  CUSPARSE_MATRIX_TYPE_SYMMETRIC = 1,
  CUSPARSE_MATRIX_TYPE_HERMITIAN = 2,
  CUSPARSE_MATRIX_TYPE_TRIANGULAR = 3
} cusparseMatrixType_t;
typedef enum { CUSPARSE_FILL_MODE_LOWER = 0, CUSPARSE_FILL_MODE_UPPER = 1 } cusparseFillMode_t;
typedef enum { CUSPARSE_DIAG_TYPE_NON_UNIT = 0, CUSPARSE_DIAG_TYPE_UNIT = 1 } cusparseDiagType_t;
typedef enum { CUSPARSE_DIRECTION_ROW = 0, CUSPARSE_DIRECTION_COLUMN = 1 } cusparseDirection_t;
typedef enum { CUSPARSE_ACTION_SYMBOLIC = 0, CUSPARSE_ACTION_NUMERIC = 1 } cusparseAction_t;
typedef enum {
  CUSPARSE_SOLVE_POLICY_NO_LEVEL = 0,
  CUSPARSE_SOLVE_POLICY_USE_LEVEL = 1
} cusparseSolvePolicy_t;
typedef enum { CUSPARSE_SPMAT_FILL_MODE = 0, CUSPARSE_SPMAT_DIAG_TYPE = 1 } cusparseSpMatAttribute_t;
typedef enum {
  CUSPARSE_CSR2CSC_ALG_DEFAULT = 1,
  CUSPARSE_CSR2CSC_ALG1 = 1,
  CUSPARSE_CSR2CSC_ALG2 = 2
} cusparseCsr2CscAlg_t;
typedef enum {
  CUSPARSE_SPMV_ALG_DEFAULT = 0,
  CUSPARSE_MV_ALG_DEFAULT = 0,
  CUSPARSE_SPMV_COO_ALG1 = 1,
  CUSPARSE_SPMV_CSR_ALG1 = 2,
  CUSPARSE_SPMV_CSR_ALG2 = 3,
  CUSPARSE_SPMV_COO_ALG2 = 4
} cusparseSpMVAlg_t;
typedef enum {
  CUSPARSE_SPGEMM_DEFAULT = 0,
  CUSPARSE_SPGEMM_ALG1 = 3,
  CUSPARSE_SPGEMM_ALG2 = 4,
  CUSPARSE_SPGEMM_ALG3 = 5
} cusparseSpGEMMAlg_t;
typedef enum { CUSPARSE_SDDMM_ALG_DEFAULT = 0 } cusparseSDDMMAlg_t;
typedef enum { CUSPARSE_SPSV_ALG_DEFAULT = 0 } cusparseSpSVAlg_t;
typedef enum { CUSPARSE_SPSM_ALG_DEFAULT = 0 } cusparseSpSMAlg_t;
typedef enum { CUSPARSE_SPARSETODENSE_ALG_DEFAULT = 0 } cusparseSparseToDenseAlg_t;
typedef enum { CUSPARSE_DENSETOSPARSE_ALG_DEFAULT = 0 } cusparseDenseToSparseAlg_t;

#ifdef __cplusplus
extern "C" {
#endif
const char *cusparseGetErrorString(cusparseStatus_t status);
cusparseStatus_t cusparseCreate(cusparseHandle_t *handle);
cusparseStatus_t cusparseDestroy(cusparseHandle_t handle);
cusparseStatus_t cusparseSetStream(cusparseHandle_t handle, cudaStream_t stream);
cusparseStatus_t cusparseGetStream(cusparseHandle_t handle, cudaStream_t *stream);
const char *cusparseGetErrorName(cusparseStatus_t status);
cusparseStatus_t cusparseGetVersion(cusparseHandle_t handle, int *version);
cusparseStatus_t cusparseSetPointerMode(cusparseHandle_t handle, cusparsePointerMode_t mode);
cusparseStatus_t cusparseGetPointerMode(cusparseHandle_t handle, cusparsePointerMode_t *mode);
cusparseStatus_t cusparseCreateMatDescr(cusparseMatDescr_t *matrix);
cusparseStatus_t cusparseDestroyMatDescr(cusparseMatDescr_t matrix);
cusparseStatus_t cusparseSetMatType(cusparseMatDescr_t matrix, cusparseMatrixType_t type);
cusparseStatus_t cusparseSetMatIndexBase(cusparseMatDescr_t matrix, cusparseIndexBase_t base);
cusparseStatus_t cusparseSetMatFillMode(cusparseMatDescr_t matrix, cusparseFillMode_t mode);
cusparseStatus_t cusparseSetMatDiagType(cusparseMatDescr_t matrix, cusparseDiagType_t type);
cusparseMatrixType_t cusparseGetMatType(const cusparseMatDescr_t matrix);
cusparseIndexBase_t cusparseGetMatIndexBase(const cusparseMatDescr_t matrix);
#ifdef __cplusplus
}

// Nothing depends on the types of what these get.
#define VIRTUAL_CUSPARSE(name) template <typename... Arguments> cusparseStatus_t name(Arguments &&...)
VIRTUAL_CUSPARSE(cusparseCreateCoo);
VIRTUAL_CUSPARSE(cusparseCreateConstCoo);
VIRTUAL_CUSPARSE(cusparseCreateCsr);
VIRTUAL_CUSPARSE(cusparseCreateConstCsr);
VIRTUAL_CUSPARSE(cusparseCreateCsc);
VIRTUAL_CUSPARSE(cusparseCreateBsr);
VIRTUAL_CUSPARSE(cusparseCreateBlockedEll);
VIRTUAL_CUSPARSE(cusparseCreateDnMat);
VIRTUAL_CUSPARSE(cusparseCreateConstDnMat);
VIRTUAL_CUSPARSE(cusparseCreateDnVec);
VIRTUAL_CUSPARSE(cusparseCreateConstDnVec);
VIRTUAL_CUSPARSE(cusparseCreateSpVec);
VIRTUAL_CUSPARSE(cusparseDestroySpMat);
VIRTUAL_CUSPARSE(cusparseDestroyDnMat);
VIRTUAL_CUSPARSE(cusparseDestroyDnVec);
VIRTUAL_CUSPARSE(cusparseDestroySpVec);
VIRTUAL_CUSPARSE(cusparseSpMatGetSize);
VIRTUAL_CUSPARSE(cusparseSpMatGetValues);
VIRTUAL_CUSPARSE(cusparseSpMatSetValues);
VIRTUAL_CUSPARSE(cusparseSpMatSetAttribute);
VIRTUAL_CUSPARSE(cusparseSpMatSetStridedBatch);
VIRTUAL_CUSPARSE(cusparseDnMatGet);
VIRTUAL_CUSPARSE(cusparseDnMatSetStridedBatch);
VIRTUAL_CUSPARSE(cusparseDnMatSetValues);
VIRTUAL_CUSPARSE(cusparseDnVecSetValues);
VIRTUAL_CUSPARSE(cusparseDnVecGetValues);
VIRTUAL_CUSPARSE(cusparseCsrSetPointers);
VIRTUAL_CUSPARSE(cusparseCooSetPointers);
VIRTUAL_CUSPARSE(cusparseCsrGet);
VIRTUAL_CUSPARSE(cusparseCooGet);
VIRTUAL_CUSPARSE(cusparseCsrSetStridedBatch);
VIRTUAL_CUSPARSE(cusparseCooSetStridedBatch);
VIRTUAL_CUSPARSE(cusparseSpMM_bufferSize);
VIRTUAL_CUSPARSE(cusparseSpMM_preprocess);
VIRTUAL_CUSPARSE(cusparseSpMM);
VIRTUAL_CUSPARSE(cusparseSpMV_bufferSize);
VIRTUAL_CUSPARSE(cusparseSpMV_preprocess);
VIRTUAL_CUSPARSE(cusparseSpMV);
VIRTUAL_CUSPARSE(cusparseSpVV_bufferSize);
VIRTUAL_CUSPARSE(cusparseSpVV);
VIRTUAL_CUSPARSE(cusparseSDDMM_bufferSize);
VIRTUAL_CUSPARSE(cusparseSDDMM_preprocess);
VIRTUAL_CUSPARSE(cusparseSDDMM);
VIRTUAL_CUSPARSE(cusparseSpGEMM_createDescr);
VIRTUAL_CUSPARSE(cusparseSpGEMM_destroyDescr);
VIRTUAL_CUSPARSE(cusparseSpGEMM_workEstimation);
VIRTUAL_CUSPARSE(cusparseSpGEMM_compute);
VIRTUAL_CUSPARSE(cusparseSpGEMM_copy);
VIRTUAL_CUSPARSE(cusparseSpGEMM_getNumProducts);
VIRTUAL_CUSPARSE(cusparseSpGEMM_estimateMemory);
VIRTUAL_CUSPARSE(cusparseSpGEMMreuse_workEstimation);
VIRTUAL_CUSPARSE(cusparseSpGEMMreuse_nnz);
VIRTUAL_CUSPARSE(cusparseSpGEMMreuse_copy);
VIRTUAL_CUSPARSE(cusparseSpGEMMreuse_compute);
VIRTUAL_CUSPARSE(cusparseSpSV_createDescr);
VIRTUAL_CUSPARSE(cusparseSpSV_destroyDescr);
VIRTUAL_CUSPARSE(cusparseSpSV_bufferSize);
VIRTUAL_CUSPARSE(cusparseSpSV_analysis);
VIRTUAL_CUSPARSE(cusparseSpSV_solve);
VIRTUAL_CUSPARSE(cusparseSpSM_createDescr);
VIRTUAL_CUSPARSE(cusparseSpSM_destroyDescr);
VIRTUAL_CUSPARSE(cusparseSpSM_bufferSize);
VIRTUAL_CUSPARSE(cusparseSpSM_analysis);
VIRTUAL_CUSPARSE(cusparseSpSM_solve);
VIRTUAL_CUSPARSE(cusparseSparseToDense_bufferSize);
VIRTUAL_CUSPARSE(cusparseSparseToDense);
VIRTUAL_CUSPARSE(cusparseDenseToSparse_bufferSize);
VIRTUAL_CUSPARSE(cusparseDenseToSparse_analysis);
VIRTUAL_CUSPARSE(cusparseDenseToSparse_convert);
VIRTUAL_CUSPARSE(cusparseGather);
VIRTUAL_CUSPARSE(cusparseScatter);
VIRTUAL_CUSPARSE(cusparseAxpby);
VIRTUAL_CUSPARSE(cusparseRot);
VIRTUAL_CUSPARSE(cusparseCsr2cscEx2_bufferSize);
VIRTUAL_CUSPARSE(cusparseCsr2cscEx2);
VIRTUAL_CUSPARSE(cusparseXcoo2csr);
VIRTUAL_CUSPARSE(cusparseXcsr2coo);
VIRTUAL_CUSPARSE(cusparseXcoosort_bufferSizeExt);
VIRTUAL_CUSPARSE(cusparseXcoosortByRow);
VIRTUAL_CUSPARSE(cusparseXcoosortByColumn);
VIRTUAL_CUSPARSE(cusparseXcsrsort_bufferSizeExt);
VIRTUAL_CUSPARSE(cusparseXcsrsort);
VIRTUAL_CUSPARSE(cusparseXcscsort_bufferSizeExt);
VIRTUAL_CUSPARSE(cusparseXcscsort);
VIRTUAL_CUSPARSE(cusparseCreateIdentityPermutation);
VIRTUAL_CUSPARSE(cusparseCreateCsrgemm2Info);
VIRTUAL_CUSPARSE(cusparseDestroyCsrgemm2Info);
VIRTUAL_CUSPARSE(cusparseXcsrgemmNnz);
VIRTUAL_CUSPARSE(cusparseXcsrgemm2Nnz);
VIRTUAL_CUSPARSE(cusparseXcsrgeamNnz);
VIRTUAL_CUSPARSE(cusparseXcsrgeam2Nnz);
VIRTUAL_CUSPARSE(cusparseXcsr2bsrNnz);
VIRTUAL_CUSPARSE(cusparseXcsrilu02_zeroPivot);
VIRTUAL_CUSPARSE(cusparseCreateCsrsv2Info);
VIRTUAL_CUSPARSE(cusparseDestroyCsrsv2Info);
VIRTUAL_CUSPARSE(cusparseCreateCsrilu02Info);
VIRTUAL_CUSPARSE(cusparseDestroyCsrilu02Info);

// Older ones have a name for each type of numbers. Projects also name them without a call.
#define VIRTUAL_CUSPARSE_TYPES(name)                                                                         \
  extern "C" cusparseStatus_t cusparseS##name(...);                                                          \
  extern "C" cusparseStatus_t cusparseD##name(...);                                                          \
  extern "C" cusparseStatus_t cusparseC##name(...);                                                          \
  extern "C" cusparseStatus_t cusparseZ##name(...);
VIRTUAL_CUSPARSE_TYPES(csrmm)
VIRTUAL_CUSPARSE_TYPES(csrmm2)
VIRTUAL_CUSPARSE_TYPES(csrmv)
VIRTUAL_CUSPARSE_TYPES(csrgemm)
VIRTUAL_CUSPARSE_TYPES(csrgemm2)
VIRTUAL_CUSPARSE_TYPES(csrgemm2_bufferSizeExt)
VIRTUAL_CUSPARSE_TYPES(csrgeam)
VIRTUAL_CUSPARSE_TYPES(csrgeam2)
VIRTUAL_CUSPARSE_TYPES(csrgeam2_bufferSizeExt)
VIRTUAL_CUSPARSE_TYPES(csr2csc)
VIRTUAL_CUSPARSE_TYPES(csr2dense)
VIRTUAL_CUSPARSE_TYPES(dense2csr)
VIRTUAL_CUSPARSE_TYPES(nnz)
VIRTUAL_CUSPARSE_TYPES(csr2bsr)
VIRTUAL_CUSPARSE_TYPES(bsrmm)
VIRTUAL_CUSPARSE_TYPES(bsrmv)
VIRTUAL_CUSPARSE_TYPES(gthr)
VIRTUAL_CUSPARSE_TYPES(sctr)
VIRTUAL_CUSPARSE_TYPES(csrsv2_bufferSize)
VIRTUAL_CUSPARSE_TYPES(csrsv2_analysis)
VIRTUAL_CUSPARSE_TYPES(csrsv2_solve)
VIRTUAL_CUSPARSE_TYPES(csrilu02)
VIRTUAL_CUSPARSE_TYPES(csrilu02_bufferSize)
VIRTUAL_CUSPARSE_TYPES(csrilu02_analysis)
VIRTUAL_CUSPARSE_TYPES(gtsv2)
VIRTUAL_CUSPARSE_TYPES(gtsv2_bufferSizeExt)
VIRTUAL_CUSPARSE_TYPES(gtsv2StridedBatch)
VIRTUAL_CUSPARSE_TYPES(gtsv2StridedBatch_bufferSizeExt)
#undef VIRTUAL_CUSPARSE_TYPES
#undef VIRTUAL_CUSPARSE
#endif
