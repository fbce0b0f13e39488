// Stand-in for CUDA's cusparse.h. Nothing implements it: it is for reading.
#pragma once

#include "driver_types.h"
#include "library_types.h"

typedef struct cusparseContext *cusparseHandle_t;
typedef struct cusparseMatDescr *cusparseMatDescr_t;
typedef struct cusparseSpMatDescr *cusparseSpMatDescr_t;
typedef struct cusparseDnMatDescr *cusparseDnMatDescr_t;
typedef struct cusparseDnVecDescr *cusparseDnVecDescr_t;
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

#ifdef __cplusplus
extern "C" {
#endif
const char *cusparseGetErrorString(cusparseStatus_t status);
cusparseStatus_t cusparseCreate(cusparseHandle_t *handle);
cusparseStatus_t cusparseDestroy(cusparseHandle_t handle);
cusparseStatus_t cusparseSetStream(cusparseHandle_t handle, cudaStream_t stream);
#ifdef __cplusplus
}

// Nothing depends on the types of what these get.
#define VIRTUAL_CUSPARSE(name) template <typename... Arguments> cusparseStatus_t name(Arguments &&...)
VIRTUAL_CUSPARSE(cusparseCreateCoo);
VIRTUAL_CUSPARSE(cusparseCreateCsr);
VIRTUAL_CUSPARSE(cusparseCreateDnMat);
VIRTUAL_CUSPARSE(cusparseCreateDnVec);
VIRTUAL_CUSPARSE(cusparseDestroySpMat);
VIRTUAL_CUSPARSE(cusparseDestroyDnMat);
VIRTUAL_CUSPARSE(cusparseDestroyDnVec);
VIRTUAL_CUSPARSE(cusparseSpMM_bufferSize);
VIRTUAL_CUSPARSE(cusparseSpMM);
VIRTUAL_CUSPARSE(cusparseSpMV_bufferSize);
VIRTUAL_CUSPARSE(cusparseSpMV);
VIRTUAL_CUSPARSE(cusparseXcoo2csr);
VIRTUAL_CUSPARSE(cusparseXcoosort_bufferSizeExt);
VIRTUAL_CUSPARSE(cusparseXcoosortByRow);
#undef VIRTUAL_CUSPARSE
#endif
