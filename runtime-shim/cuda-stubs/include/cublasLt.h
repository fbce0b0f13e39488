// Stand-in for CUDA's cublasLt.h. Nothing implements it: it is for reading.
#pragma once

#include "cublas_v2.h"

#include <stdint.h>

typedef struct cublasLtContext *cublasLtHandle_t;
typedef struct {
  uint64_t data[8];
} cublasLtMatrixLayoutOpaque_t, cublasLtMatmulDescOpaque_t, cublasLtMatmulPreferenceOpaque_t,
    cublasLtMatrixTransformDescOpaque_t, cublasLtMatmulAlgo_t;
typedef cublasLtMatrixLayoutOpaque_t *cublasLtMatrixLayout_t;
typedef cublasLtMatmulDescOpaque_t *cublasLtMatmulDesc_t;
typedef cublasLtMatmulPreferenceOpaque_t *cublasLtMatmulPreference_t;
typedef cublasLtMatrixTransformDescOpaque_t *cublasLtMatrixTransformDesc_t;
typedef struct {
  cublasLtMatmulAlgo_t algo;
  size_t workspaceSize;
  cublasStatus_t state;
  float wavesCount;
  int reserved[4];
} cublasLtMatmulHeuristicResult_t;
typedef enum {
  CUBLASLT_ORDER_COL = 0,
  CUBLASLT_ORDER_ROW = 1,
  CUBLASLT_ORDER_COL32 = 2,
  CUBLASLT_ORDER_COL4_4R2_8C = 3,
  CUBLASLT_ORDER_COL32_2R_4R4 = 4
} cublasLtOrder_t;
typedef enum {
  CUBLASLT_EPILOGUE_DEFAULT = 1,
  CUBLASLT_EPILOGUE_RELU = 2,
  CUBLASLT_EPILOGUE_BIAS = 4,
  CUBLASLT_EPILOGUE_RELU_BIAS = 6,
  CUBLASLT_EPILOGUE_GELU = 32,
  CUBLASLT_EPILOGUE_GELU_BIAS = 36,
  CUBLASLT_EPILOGUE_RELU_AUX = 130,
  CUBLASLT_EPILOGUE_RELU_AUX_BIAS = 134,
  CUBLASLT_EPILOGUE_DRELU_BGRAD = 152,
  CUBLASLT_EPILOGUE_GELU_AUX = 160,
  CUBLASLT_EPILOGUE_GELU_AUX_BIAS = 164,
  CUBLASLT_EPILOGUE_DGELU_BGRAD = 208,
  CUBLASLT_EPILOGUE_BGRADA = 256,
  CUBLASLT_EPILOGUE_BGRADB = 512
} cublasLtEpilogue_t;
typedef enum {
  CUBLASLT_MATMUL_DESC_POINTER_MODE = 2,
  CUBLASLT_MATMUL_DESC_TRANSA = 3,
  CUBLASLT_MATMUL_DESC_TRANSB = 4,
  CUBLASLT_MATMUL_DESC_EPILOGUE = 7,
  CUBLASLT_MATMUL_DESC_BIAS_POINTER = 8,
  CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER = 11,
  CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD = 12
} cublasLtMatmulDescAttributes_t;
typedef enum {
  CUBLASLT_MATRIX_LAYOUT_TYPE = 0,
  CUBLASLT_MATRIX_LAYOUT_ORDER = 1,
  CUBLASLT_MATRIX_LAYOUT_ROWS = 2,
  CUBLASLT_MATRIX_LAYOUT_COLS = 3,
  CUBLASLT_MATRIX_LAYOUT_LD = 4,
  CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT = 5,
  CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET = 6
} cublasLtMatrixLayoutAttribute_t;
typedef enum {
  CUBLASLT_MATMUL_PREF_SEARCH_MODE = 0,
  CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES = 1
} cublasLtMatmulPreferenceAttributes_t;

#ifdef __cplusplus
// Nothing depends on the types of what these get.
#define VIRTUAL_CUBLAS(name) template <typename... Arguments> cublasStatus_t name(Arguments &&...)
VIRTUAL_CUBLAS(cublasLtCreate);
VIRTUAL_CUBLAS(cublasLtDestroy);
VIRTUAL_CUBLAS(cublasLtMatmul);
VIRTUAL_CUBLAS(cublasLtMatmulAlgoGetHeuristic);
VIRTUAL_CUBLAS(cublasLtMatmulDescInit);
VIRTUAL_CUBLAS(cublasLtMatmulDescCreate);
VIRTUAL_CUBLAS(cublasLtMatmulDescDestroy);
VIRTUAL_CUBLAS(cublasLtMatmulDescSetAttribute);
VIRTUAL_CUBLAS(cublasLtMatrixLayoutInit);
VIRTUAL_CUBLAS(cublasLtMatrixLayoutCreate);
VIRTUAL_CUBLAS(cublasLtMatrixLayoutDestroy);
VIRTUAL_CUBLAS(cublasLtMatrixLayoutSetAttribute);
VIRTUAL_CUBLAS(cublasLtMatmulPreferenceInit);
VIRTUAL_CUBLAS(cublasLtMatmulPreferenceCreate);
VIRTUAL_CUBLAS(cublasLtMatmulPreferenceDestroy);
VIRTUAL_CUBLAS(cublasLtMatmulPreferenceSetAttribute);
#undef VIRTUAL_CUBLAS
#endif
