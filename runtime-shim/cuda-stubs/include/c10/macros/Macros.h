// In front of LibTorch's c10/macros/Macros.h, which shows the bounds of launches to CUDA's compiler only.
#pragma once

#include_next <c10/macros/Macros.h>

#if defined(__CUDA__) && !defined(__CUDACC__)
#define C10_MAX_THREADS_PER_BLOCK(threads) (threads)
#define C10_MIN_BLOCKS_PER_SM(threads, blocks) (blocks)
#define C10_LAUNCH_BOUNDS_0
#define C10_LAUNCH_BOUNDS_1(threads)
#define C10_LAUNCH_BOUNDS_2(threads, blocks)
#endif
