// Stand-in for CUB: what the host calls of it. Nothing implements it: it is for reading sources with kernels.
#pragma once

#include "../cuda_bf16.h"
#include "../cuda_fp16.h"
#include "../cuda_runtime.h"

#define CUB_VERSION 200200

#ifdef __cplusplus
#define VIRTUAL_CUB(name) template <typename... Arguments> static cudaError_t name(Arguments &&...)

namespace cub {

struct DeviceScan {
  VIRTUAL_CUB(ExclusiveSum);
  VIRTUAL_CUB(InclusiveSum);
  VIRTUAL_CUB(ExclusiveScan);
  VIRTUAL_CUB(InclusiveScan);
  VIRTUAL_CUB(InclusiveSumByKey);
  VIRTUAL_CUB(ExclusiveSumByKey);
};
struct DeviceReduce {
  VIRTUAL_CUB(Reduce);
  VIRTUAL_CUB(Sum);
  VIRTUAL_CUB(Min);
  VIRTUAL_CUB(Max);
  VIRTUAL_CUB(ArgMin);
  VIRTUAL_CUB(ArgMax);
  VIRTUAL_CUB(ReduceByKey);
};
struct DeviceSegmentedReduce {
  VIRTUAL_CUB(Reduce);
  VIRTUAL_CUB(Sum);
  VIRTUAL_CUB(Min);
  VIRTUAL_CUB(Max);
};
struct DeviceRadixSort {
  VIRTUAL_CUB(SortPairs);
  VIRTUAL_CUB(SortPairsDescending);
  VIRTUAL_CUB(SortKeys);
  VIRTUAL_CUB(SortKeysDescending);
};
struct DeviceSegmentedRadixSort {
  VIRTUAL_CUB(SortPairs);
  VIRTUAL_CUB(SortPairsDescending);
  VIRTUAL_CUB(SortKeys);
  VIRTUAL_CUB(SortKeysDescending);
};
struct DeviceSelect {
  VIRTUAL_CUB(Flagged);
  VIRTUAL_CUB(If);
  VIRTUAL_CUB(Unique);
  VIRTUAL_CUB(UniqueByKey);
};
struct DeviceRunLengthEncode {
  VIRTUAL_CUB(Encode);
};
struct DeviceHistogram {
  VIRTUAL_CUB(HistogramEven);
};

template <typename T> struct DoubleBuffer {
  T *d_buffers[2];
  int selector;
  DoubleBuffer();
  DoubleBuffer(T *current, T *alternate);
  T *Current() const;
  T *Alternate() const;
};
template <typename T, typename Offset = long> struct CountingInputIterator {
  explicit CountingInputIterator(const T &first);
};
template <typename T, typename Conversion, typename Input, typename Offset = long>
struct TransformInputIterator {
  TransformInputIterator(Input input, Conversion conversion);
};
// What works together in a kernel; types that hosts size a launch by.
enum BlockLoadAlgorithm {
  BLOCK_LOAD_DIRECT,
  BLOCK_LOAD_STRIPED,
  BLOCK_LOAD_VECTORIZE,
  BLOCK_LOAD_TRANSPOSE,
  BLOCK_LOAD_WARP_TRANSPOSE
};
enum BlockStoreAlgorithm {
  BLOCK_STORE_DIRECT,
  BLOCK_STORE_STRIPED,
  BLOCK_STORE_VECTORIZE,
  BLOCK_STORE_TRANSPOSE,
  BLOCK_STORE_WARP_TRANSPOSE
};
enum BlockScanAlgorithm { BLOCK_SCAN_RAKING, BLOCK_SCAN_RAKING_MEMOIZE, BLOCK_SCAN_WARP_SCANS };
enum BlockReduceAlgorithm {
  BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY,
  BLOCK_REDUCE_RAKING,
  BLOCK_REDUCE_WARP_REDUCTIONS
};
template <typename T, int X, int Items, BlockLoadAlgorithm Algorithm = BLOCK_LOAD_DIRECT, int Y = 1, int Z = 1>
struct BlockLoad {
  struct TempStorage {};
};
template <typename T, int X, int Items, BlockStoreAlgorithm Algorithm = BLOCK_STORE_DIRECT, int Y = 1,
          int Z = 1>
struct BlockStore {
  struct TempStorage {};
};
template <typename T, int X, BlockScanAlgorithm Algorithm = BLOCK_SCAN_RAKING, int Y = 1, int Z = 1>
struct BlockScan {
  struct TempStorage {};
};
template <typename T, int X, BlockReduceAlgorithm Algorithm = BLOCK_REDUCE_WARP_REDUCTIONS, int Y = 1,
          int Z = 1>
struct BlockReduce {
  struct TempStorage {};
};
template <typename T, int Threads = 32> struct WarpReduce {
  struct TempStorage {};
};
template <typename T, int Threads = 32> struct WarpScan {
  struct TempStorage {};
};

struct Sum {};
struct Max {};
struct Min {};

} // namespace cub
#undef VIRTUAL_CUB
#endif
