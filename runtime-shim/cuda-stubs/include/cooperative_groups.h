// Stand-in for CUDA's cooperative_groups.h, with what its reduce.h, scan.h and memcpy_async.h add. What the
// groups do is for kernels.
#pragma once

#include "host_defines.h"
#include "vector_types.h"

#ifdef __cplusplus
namespace cooperative_groups {

/// What the threads of a group of some size can do together.
#define VIRTUAL_CUDA_EXCHANGE(name)                                                                          \
  template <typename T, typename... Arguments> __host__ __device__ T name(T value, Arguments...) const;
class thread_group {
public:
  __host__ __device__ void sync() const;
  __host__ __device__ unsigned long long size() const;
  __host__ __device__ unsigned long long num_threads() const;
  __host__ __device__ unsigned long long thread_rank() const;
  __host__ __device__ bool is_valid() const;
  __host__ __device__ int any(int predicate) const;
  __host__ __device__ int all(int predicate) const;
  __host__ __device__ unsigned int ballot(int predicate) const;
  __host__ __device__ unsigned long long meta_group_rank() const;
  __host__ __device__ unsigned long long meta_group_size() const;
  template <typename T> __host__ __device__ unsigned int match_any(T value) const;
  VIRTUAL_CUDA_EXCHANGE(shfl)
  VIRTUAL_CUDA_EXCHANGE(shfl_up)
  VIRTUAL_CUDA_EXCHANGE(shfl_down)
  VIRTUAL_CUDA_EXCHANGE(shfl_xor)
};
#undef VIRTUAL_CUDA_EXCHANGE
class thread_block : public thread_group {
public:
  __host__ __device__ dim3 group_index() const;
  __host__ __device__ dim3 thread_index() const;
  __host__ __device__ dim3 group_dim() const;
  __host__ __device__ dim3 dim_threads() const;
};
class grid_group : public thread_group {
public:
  __host__ __device__ dim3 group_dim() const;
  __host__ __device__ unsigned long long block_rank() const;
  __host__ __device__ unsigned long long num_blocks() const;
};
class multi_grid_group : public thread_group {};
class cluster_group : public thread_group {
public:
  __host__ __device__ unsigned int block_rank() const;
  __host__ __device__ dim3 block_index() const;
  __host__ __device__ unsigned int num_blocks() const;
  template <typename T> __host__ __device__ T *map_shared_rank(T *pointer, int rank) const;
};
class coalesced_group : public thread_group {};
template <unsigned int Size, typename Parent = void> class thread_block_tile : public thread_group {};

__host__ __device__ thread_block this_thread_block();
__host__ __device__ grid_group this_grid();
__host__ __device__ multi_grid_group this_multi_grid();
__host__ __device__ cluster_group this_cluster();
__host__ __device__ coalesced_group coalesced_threads();
template <unsigned int Size, typename Group>
__host__ __device__ thread_block_tile<Size, Group> tiled_partition(const Group &group);
template <typename Group>
__host__ __device__ thread_group tiled_partition(const Group &group, unsigned int size);
template <typename... Arguments> __host__ __device__ coalesced_group binary_partition(Arguments &&...);
template <typename... Arguments> __host__ __device__ coalesced_group labeled_partition(Arguments &&...);
template <typename Group> __host__ __device__ void sync(const Group &group);

template <typename T = void> struct plus {};
template <typename T = void> struct less {};
template <typename T = void> struct greater {};
template <typename T = void> struct bit_and {};
template <typename T = void> struct bit_or {};
template <typename T = void> struct bit_xor {};
template <typename Group, typename T, typename Operation>
__host__ __device__ T reduce(const Group &group, T value, Operation operation);
template <typename Group, typename T, typename... Operation>
__host__ __device__ T inclusive_scan(const Group &group, T value, Operation...);
template <typename Group, typename T, typename... Operation>
__host__ __device__ T exclusive_scan(const Group &group, T value, Operation...);
template <typename... Arguments> __host__ __device__ void memcpy_async(Arguments &&...);
template <typename Group> __host__ __device__ void wait(const Group &group);
template <unsigned int Stages, typename Group> __host__ __device__ void wait_prior(const Group &group);

} // namespace cooperative_groups
#endif
