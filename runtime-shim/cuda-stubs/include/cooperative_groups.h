// Stand-in for CUDA's cooperative_groups.h: the groups by name. What they do is for kernels.
#pragma once

#include "host_defines.h"

#ifdef __cplusplus
namespace cooperative_groups {

class thread_group {
public:
  __device__ void sync() const;
  __device__ unsigned long long size() const;
  __device__ unsigned long long thread_rank() const;
};
class thread_block : public thread_group {};
class grid_group : public thread_group {};
class cluster_group : public thread_group {};
class coalesced_group : public thread_group {};
template <unsigned int Size, typename Parent = void> class thread_block_tile : public thread_group {};

__device__ thread_block this_thread_block();
__device__ grid_group this_grid();
__device__ coalesced_group coalesced_threads();
template <unsigned int Size, typename Group>
__device__ thread_block_tile<Size, Group> tiled_partition(const Group &group);

} // namespace cooperative_groups
#endif
