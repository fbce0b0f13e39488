// Stand-in for CUDA's device_functions.h, math_functions.h and sm_*_intrinsics.h: what code that is for hosts
// and GPUs alike calls on the GPU, and what signatures of kernels' helpers ask for. Bodies for GPUs alone are
// not read. All are templates: projects bring functions of the same names, for old GPUs and for hosts, and
// those are preferred.
#pragma once

#include "vector_types.h"

#include <type_traits>

// CUDA has these outside of std, for hosts too.
#define VIRTUAL_CUDA_MIN_MAX(name, op)                                                                       \
  template <typename A, typename B,                                                                          \
            typename = std::enable_if_t<std::is_arithmetic<A>::value && std::is_arithmetic<B>::value>>       \
  __host__ __device__ constexpr std::common_type_t<A, B> name(A a, B b) {                                    \
    return a op b ? static_cast<std::common_type_t<A, B>>(a) : static_cast<std::common_type_t<A, B>>(b);     \
  }
VIRTUAL_CUDA_MIN_MAX(min, <)
VIRTUAL_CUDA_MIN_MAX(max, >)
#undef VIRTUAL_CUDA_MIN_MAX

// A function by the type of its result.
#define VIRTUAL_CUDA_DEVICE(type, name)                                                                      \
  template <typename... Arguments> __host__ __device__ type name(Arguments...);
#define VIRTUAL_CUDA_DEVICE2(type, first, second)                                                            \
  VIRTUAL_CUDA_DEVICE(type, first)                                                                           \
  VIRTUAL_CUDA_DEVICE(type, second)
#define VIRTUAL_CUDA_DEVICE4(type, first, second, third, fourth)                                             \
  VIRTUAL_CUDA_DEVICE2(type, first, second)                                                                  \
  VIRTUAL_CUDA_DEVICE2(type, third, fourth)
// One for each mode of rounding.
#define VIRTUAL_CUDA_ROUNDED(type, name)                                                                     \
  VIRTUAL_CUDA_DEVICE4(type, name##_rn, name##_rz, name##_ru, name##_rd)

// Order and votes.
VIRTUAL_CUDA_DEVICE4(void, __syncthreads, __syncwarp, __threadfence, __threadfence_block)
VIRTUAL_CUDA_DEVICE4(void, __threadfence_system, __nanosleep, __trap, __brkpt)
VIRTUAL_CUDA_DEVICE4(int, __syncthreads_count, __syncthreads_and, __syncthreads_or, __any_sync)
VIRTUAL_CUDA_DEVICE4(int, __all_sync, __any, __all, __isShared)
VIRTUAL_CUDA_DEVICE4(unsigned int, __ballot_sync, __ballot, __activemask, __match_any_sync)
VIRTUAL_CUDA_DEVICE4(unsigned int, __match_all_sync, __fns, __isGlobal, __isLocal)
VIRTUAL_CUDA_DEVICE2(long long, clock64, clock)
VIRTUAL_CUDA_DEVICE2(size_t, __cvta_generic_to_shared, __cvta_generic_to_global)

// Numbers.
VIRTUAL_CUDA_DEVICE4(float, __expf, __exp10f, __logf, __log2f)
VIRTUAL_CUDA_DEVICE4(float, __log10f, __sinf, __cosf, __tanf)
VIRTUAL_CUDA_DEVICE4(float, __powf, __fdividef, __saturatef, __tanhf)
VIRTUAL_CUDA_DEVICE4(float, rsqrtf, rcbrtf, normcdff, normcdfinvf)
VIRTUAL_CUDA_DEVICE4(float, erfcxf, erfinvf, erfcinvf, __frsqrt_rn)
VIRTUAL_CUDA_DEVICE4(float, sinpif, cospif, norm3df, norm4df)
VIRTUAL_CUDA_DEVICE4(float, rnorm3df, rnorm4df, rhypotf, fdividef)
VIRTUAL_CUDA_DEVICE4(float, normf, cyl_bessel_i0f, cyl_bessel_i1f, __uint_as_float)
VIRTUAL_CUDA_DEVICE4(double, rsqrt, rcbrt, normcdf, normcdfinv)
VIRTUAL_CUDA_DEVICE4(double, erfcx, erfinv, erfcinv, __hiloint2double)
VIRTUAL_CUDA_DEVICE4(double, sinpi, cospi, norm3d, norm4d)
VIRTUAL_CUDA_DEVICE4(double, cyl_bessel_i0, cyl_bessel_i1, __longlong_as_double, rhypot)
VIRTUAL_CUDA_DEVICE4(void, sincospif, sincospi, __sincosf, __prof_trigger)
VIRTUAL_CUDA_ROUNDED(float, __fadd)
VIRTUAL_CUDA_ROUNDED(float, __fsub)
VIRTUAL_CUDA_ROUNDED(float, __fmul)
VIRTUAL_CUDA_ROUNDED(float, __fdiv)
VIRTUAL_CUDA_ROUNDED(float, __fmaf)
VIRTUAL_CUDA_ROUNDED(float, __frcp)
VIRTUAL_CUDA_ROUNDED(float, __fsqrt)
VIRTUAL_CUDA_ROUNDED(double, __dadd)
VIRTUAL_CUDA_ROUNDED(double, __dsub)
VIRTUAL_CUDA_ROUNDED(double, __dmul)
VIRTUAL_CUDA_ROUNDED(double, __ddiv)
VIRTUAL_CUDA_ROUNDED(double, __fma)
VIRTUAL_CUDA_ROUNDED(double, __drcp)
VIRTUAL_CUDA_ROUNDED(double, __dsqrt)

// Conversions.
VIRTUAL_CUDA_ROUNDED(int, __float2int)
VIRTUAL_CUDA_ROUNDED(unsigned int, __float2uint)
VIRTUAL_CUDA_ROUNDED(long long, __float2ll)
VIRTUAL_CUDA_ROUNDED(unsigned long long, __float2ull)
VIRTUAL_CUDA_ROUNDED(int, __double2int)
VIRTUAL_CUDA_ROUNDED(unsigned int, __double2uint)
VIRTUAL_CUDA_ROUNDED(long long, __double2ll)
VIRTUAL_CUDA_ROUNDED(unsigned long long, __double2ull)
VIRTUAL_CUDA_ROUNDED(float, __double2float)
VIRTUAL_CUDA_ROUNDED(float, __int2float)
VIRTUAL_CUDA_ROUNDED(float, __uint2float)
VIRTUAL_CUDA_ROUNDED(float, __ll2float)
VIRTUAL_CUDA_ROUNDED(float, __ull2float)
VIRTUAL_CUDA_ROUNDED(double, __ll2double)
VIRTUAL_CUDA_ROUNDED(double, __ull2double)
VIRTUAL_CUDA_DEVICE2(double, __int2double_rn, __uint2double_rn)
VIRTUAL_CUDA_DEVICE4(int, __float_as_int, __double2hiint, __double2loint, __vabsdiffs4)
VIRTUAL_CUDA_DEVICE(unsigned int, __float_as_uint)
VIRTUAL_CUDA_DEVICE2(long long, __double_as_longlong, __mul64hi)
VIRTUAL_CUDA_DEVICE(float, __int_as_float)

// Bits and integers.
VIRTUAL_CUDA_DEVICE4(int, __clz, __clzll, __ffs, __ffsll)
VIRTUAL_CUDA_DEVICE4(int, __popc, __popcll, __mul24, __mulhi)
VIRTUAL_CUDA_DEVICE4(int, __vavgs4, __rhadd, __dp4a, __dp2a_lo)
VIRTUAL_CUDA_DEVICE4(int, __dp2a_hi, __sad, __vseteq4, __vsads4)
VIRTUAL_CUDA_DEVICE4(unsigned int, __brev, __byte_perm, __funnelshift_l, __funnelshift_r)
VIRTUAL_CUDA_DEVICE4(unsigned int, __umul24, __umulhi, __usad, __uhadd)
VIRTUAL_CUDA_DEVICE4(unsigned int, __funnelshift_lc, __funnelshift_rc, __urhadd, __vadd2)
VIRTUAL_CUDA_DEVICE4(unsigned int, __vadd4, __vsub4, __vmaxs4, __vmins4)
VIRTUAL_CUDA_DEVICE4(unsigned int, __vsub2, __vsubss4, __vcmpeq4, __vcmpne4)
VIRTUAL_CUDA_DEVICE4(unsigned int, __vabsdiffu4, __vmaxu4, __vminu4, __vabs4)
VIRTUAL_CUDA_DEVICE4(unsigned long long, __brevll, __umul64hi, __globaltimer, __double_as_ulonglong)

// Memory.
#define VIRTUAL_CUDA_LOAD(name)                                                                              \
  template <typename T> __host__ __device__ T name(const T *address) { return *address; }
VIRTUAL_CUDA_LOAD(__ldg)
VIRTUAL_CUDA_LOAD(__ldcs)
VIRTUAL_CUDA_LOAD(__ldca)
VIRTUAL_CUDA_LOAD(__ldcg)
VIRTUAL_CUDA_LOAD(__ldcv)
VIRTUAL_CUDA_LOAD(__ldlu)
VIRTUAL_CUDA_DEVICE4(void, __stcs, __stcg, __stwb, __stwt)
#define VIRTUAL_CUDA_ATOMIC(name)                                                                            \
  template <typename T, typename... Values> __host__ __device__ T name(T *address, Values...) {              \
    return *address;                                                                                         \
  }                                                                                                          \
  template <typename T, typename... Values> __host__ __device__ T name##_block(T *address, Values...) {      \
    return *address;                                                                                         \
  }                                                                                                          \
  template <typename T, typename... Values> __host__ __device__ T name##_system(T *address, Values...) {     \
    return *address;                                                                                         \
  }
VIRTUAL_CUDA_ATOMIC(atomicAdd)
VIRTUAL_CUDA_ATOMIC(atomicSub)
VIRTUAL_CUDA_ATOMIC(atomicMax)
VIRTUAL_CUDA_ATOMIC(atomicMin)
VIRTUAL_CUDA_ATOMIC(atomicExch)
VIRTUAL_CUDA_ATOMIC(atomicCAS)
VIRTUAL_CUDA_ATOMIC(atomicAnd)
VIRTUAL_CUDA_ATOMIC(atomicOr)
VIRTUAL_CUDA_ATOMIC(atomicXor)
VIRTUAL_CUDA_ATOMIC(atomicInc)
VIRTUAL_CUDA_ATOMIC(atomicDec)

// Between the threads of a warp; the old forms have no mask.
#define VIRTUAL_CUDA_SHUFFLE(name)                                                                           \
  template <typename T>                                                                                      \
  __host__ __device__ T name##_sync(unsigned int mask, T value, int lane, int width = 32) {                  \
    return value;                                                                                            \
  }                                                                                                          \
  template <typename T> __host__ __device__ T name(T value, int lane, int width = 32) { return value; }
VIRTUAL_CUDA_SHUFFLE(__shfl)
VIRTUAL_CUDA_SHUFFLE(__shfl_up)
VIRTUAL_CUDA_SHUFFLE(__shfl_down)
VIRTUAL_CUDA_SHUFFLE(__shfl_xor)
#define VIRTUAL_CUDA_REDUCE(name)                                                                            \
  template <typename T> __host__ __device__ T name(unsigned int mask, T value) { return value; }
VIRTUAL_CUDA_REDUCE(__reduce_add_sync)
VIRTUAL_CUDA_REDUCE(__reduce_min_sync)
VIRTUAL_CUDA_REDUCE(__reduce_max_sync)
VIRTUAL_CUDA_REDUCE(__reduce_and_sync)
VIRTUAL_CUDA_REDUCE(__reduce_or_sync)
VIRTUAL_CUDA_REDUCE(__reduce_xor_sync)

#undef VIRTUAL_CUDA_DEVICE
#undef VIRTUAL_CUDA_DEVICE2
#undef VIRTUAL_CUDA_DEVICE4
#undef VIRTUAL_CUDA_ROUNDED
#undef VIRTUAL_CUDA_LOAD
#undef VIRTUAL_CUDA_ATOMIC
#undef VIRTUAL_CUDA_SHUFFLE
#undef VIRTUAL_CUDA_REDUCE
