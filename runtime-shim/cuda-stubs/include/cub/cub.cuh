// Stand-in for CUB: what the host calls of it. Nothing implements it: it is for reading sources with kernels.
#pragma once

#include "../cuda_bf16.h"
#include "../cuda_fp16.h"
#include "../cuda_runtime.h"

#define CUB_VERSION 200200
#define CUB_NS_PREFIX
#define CUB_NS_POSTFIX
#define CubDebug(error) (error)
#define CubDebugExit(error) (void)(error)

#ifdef __cplusplus
#define VIRTUAL_CUB(name)                                                                                    \
  template <typename... Arguments>                                                                           \
  static cudaError_t name(Arguments &&...) VIRTUAL_CUDA_BODY(cudaErrorNotSupported)

namespace cub {

struct DeviceScan {
  VIRTUAL_CUB(ExclusiveSum);
  VIRTUAL_CUB(InclusiveSum);
  VIRTUAL_CUB(ExclusiveScan);
  VIRTUAL_CUB(InclusiveScan);
  VIRTUAL_CUB(InclusiveSumByKey);
  VIRTUAL_CUB(InclusiveScanByKey);
  VIRTUAL_CUB(ExclusiveScanByKey);
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
  VIRTUAL_CUB(ArgMin);
  VIRTUAL_CUB(ArgMax);
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
  VIRTUAL_CUB(NonTrivialRuns);
};
struct DeviceHistogram {
  VIRTUAL_CUB(HistogramEven);
  VIRTUAL_CUB(HistogramRange);
  VIRTUAL_CUB(MultiHistogramEven);
};
struct DevicePartition {
  VIRTUAL_CUB(Flagged);
  VIRTUAL_CUB(If);
};
struct DeviceMergeSort {
  VIRTUAL_CUB(SortPairs);
  VIRTUAL_CUB(SortKeys);
  VIRTUAL_CUB(StableSortPairs);
  VIRTUAL_CUB(StableSortKeys);
};
struct DeviceSegmentedSort {
  VIRTUAL_CUB(SortPairs);
  VIRTUAL_CUB(SortPairsDescending);
  VIRTUAL_CUB(SortKeys);
  VIRTUAL_CUB(SortKeysDescending);
  VIRTUAL_CUB(StableSortPairs);
  VIRTUAL_CUB(StableSortKeys);
};
struct DeviceAdjacentDifference {
  VIRTUAL_CUB(SubtractLeft);
  VIRTUAL_CUB(SubtractLeftCopy);
  VIRTUAL_CUB(SubtractRightCopy);
};

template <typename T> struct DoubleBuffer {
  T *d_buffers[2];
  int selector;
  DoubleBuffer();
  DoubleBuffer(T *current, T *alternate);
  T *Current() const;
  T *Alternate() const;
};
#define CUB_WARP_THREADS(architecture) 32
#define CUB_LOG_WARP_THREADS(architecture) 5
#define CUB_PTX_WARP_THREADS 32
#define CUB_PTX_LOG_WARP_THREADS 5
#define CUB_MIN(a, b) ((b) < (a) ? (b) : (a))
#define CUB_MAX(a, b) ((a) < (b) ? (b) : (a))
#define CUB_RUNTIME_FUNCTION
// Rounded up.
template <int N> struct Log2 {
  static constexpr int VALUE = N <= 1 ? 0 : 1 + Log2<(N + 1) / 2>::VALUE;
};
template <> struct Log2<1> {
  static constexpr int VALUE = 0;
};
template <> struct Log2<0> {
  static constexpr int VALUE = 0;
};
template <int N> struct PowerOfTwo {
  static constexpr int VALUE = (N & (N - 1)) == 0;
};
template <int N> struct Int2Type {
  static constexpr int VALUE = N;
};
template <typename T> struct Uninitialized {
  T storage;
  __host__ __device__ T &Alias() { return storage; }
};

template <typename T, typename Offset = long> struct CountingInputIterator {
  explicit CountingInputIterator(const T &first) {}
};
template <typename T, typename Conversion, typename Input, typename Offset = long>
struct TransformInputIterator {
  TransformInputIterator(Input input, Conversion conversion) {}
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
template <typename T, int X, int Items, BlockLoadAlgorithm Algorithm = BLOCK_LOAD_DIRECT, int Y = 1,
          int Z = 1>
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

template <typename T, int X, int Items, typename Value = void> struct BlockRadixSort {
  struct TempStorage {};
};
template <typename T, int X> struct BlockDiscontinuity {
  struct TempStorage {};
};
template <typename T, int X, int Items> struct BlockExchange {
  struct TempStorage {};
};

template <typename T, int X> struct BlockRakingLayout {
  static constexpr int SHARED_ELEMENTS = X, RAKING_THREADS = 32, SEGMENT_LENGTH = (X + 31) / 32;
  static constexpr bool UNGUARDED = X % 32 == 0;
  struct TempStorage {};
  static __host__ __device__ T *PlacementPtr(TempStorage &, unsigned int);
  static __host__ __device__ T *RakingPtr(TempStorage &, unsigned int);
};

struct NullType {};
template <typename Key, typename Value> struct KeyValuePair {
  typedef Key Key_t;
  typedef Value Value_t;
  Key key;
  Value value;
};
template <typename T, typename Offset = long> struct ConstantInputIterator {
  explicit ConstantInputIterator(const T &value) {}
};
template <typename Input, typename Offset = long> struct ArgIndexInputIterator {
  explicit ArgIndexInputIterator(Input input) {}
};
template <typename Offset = long> struct DiscardOutputIterator {
  explicit DiscardOutputIterator(Offset offset = 0);
};
enum CacheLoadModifier { LOAD_DEFAULT, LOAD_CA, LOAD_CG, LOAD_CS, LOAD_CV, LOAD_LDG, LOAD_VOLATILE };
template <CacheLoadModifier Modifier, typename T, typename Offset = long> struct CacheModifiedInputIterator {
  explicit CacheModifiedInputIterator(T *pointer);
};
struct CachingDeviceAllocator {
  template <typename... Arguments> explicit CachingDeviceAllocator(Arguments &&...);
  template <typename... Arguments> cudaError_t DeviceAllocate(Arguments &&...);
  template <typename... Arguments> cudaError_t DeviceFree(Arguments &&...);
  cudaError_t FreeAllCached();
};

// What kernels and scans join numbers by.
#define VIRTUAL_CUB_OPERATION(name, value)                                                                   \
  struct name {                                                                                              \
    template <typename T> __host__ __device__ T operator()(const T &a, const T &b) const { return value; }   \
  };
VIRTUAL_CUB_OPERATION(Sum, a + b)
VIRTUAL_CUB_OPERATION(Difference, a - b)
VIRTUAL_CUB_OPERATION(Max, a < b ? b : a)
VIRTUAL_CUB_OPERATION(Min, b < a ? b : a)
VIRTUAL_CUB_OPERATION(ArgMax, a.value < b.value ? b : a)
VIRTUAL_CUB_OPERATION(ArgMin, b.value < a.value ? b : a)
#undef VIRTUAL_CUB_OPERATION
struct Equality {
  template <typename T> __host__ __device__ bool operator()(const T &a, const T &b) const { return a == b; }
};

} // namespace cub
#undef VIRTUAL_CUB
#endif
