// Stand-in for CUDA's texture_types.h, and for channel_descriptor.h, surface_types.h,
// texture_fetch_functions.h: arrays of texels, textures and surfaces. There are none on virtual GPUs: it is
// for reading.
#pragma once

#include "driver_types.h"

enum cudaChannelFormatKind {
  cudaChannelFormatKindSigned = 0,
  cudaChannelFormatKindUnsigned = 1,
  cudaChannelFormatKindFloat = 2,
  cudaChannelFormatKindNone = 3
};
struct cudaChannelFormatDesc {
  int x, y, z, w;
  enum cudaChannelFormatKind f;
};
enum cudaTextureAddressMode {
  cudaAddressModeWrap = 0,
  cudaAddressModeClamp = 1,
  cudaAddressModeMirror = 2,
  cudaAddressModeBorder = 3
};
enum cudaTextureFilterMode { cudaFilterModePoint = 0, cudaFilterModeLinear = 1 };
enum cudaTextureReadMode { cudaReadModeElementType = 0, cudaReadModeNormalizedFloat = 1 };
enum cudaSurfaceBoundaryMode {
  cudaBoundaryModeZero = 0,
  cudaBoundaryModeClamp = 1,
  cudaBoundaryModeTrap = 2
};
enum cudaResourceType {
  cudaResourceTypeArray = 0,
  cudaResourceTypeMipmappedArray = 1,
  cudaResourceTypeLinear = 2,
  cudaResourceTypePitch2D = 3
};
typedef unsigned long long cudaTextureObject_t;
typedef unsigned long long cudaSurfaceObject_t;
typedef struct cudaArray *cudaArray_t;
typedef const struct cudaArray *cudaArray_const_t;
typedef struct cudaMipmappedArray *cudaMipmappedArray_t;

struct cudaExtent {
  size_t width, height, depth;
};
struct cudaPos {
  size_t x, y, z;
};
struct cudaPitchedPtr {
  void *ptr;
  size_t pitch, xsize, ysize;
};
struct cudaMemcpy3DParms {
  cudaArray_t srcArray;
  struct cudaPos srcPos;
  struct cudaPitchedPtr srcPtr;
  cudaArray_t dstArray;
  struct cudaPos dstPos;
  struct cudaPitchedPtr dstPtr;
  struct cudaExtent extent;
  enum cudaMemcpyKind kind;
};
struct cudaResourceDesc {
  enum cudaResourceType resType;
  union {
    struct {
      cudaArray_t array;
    } array;
    struct {
      cudaMipmappedArray_t mipmap;
    } mipmap;
    struct {
      void *devPtr;
      struct cudaChannelFormatDesc desc;
      size_t sizeInBytes;
    } linear;
    struct {
      void *devPtr;
      struct cudaChannelFormatDesc desc;
      size_t width, height, pitchInBytes;
    } pitch2D;
  } res;
};
struct cudaTextureDesc {
  enum cudaTextureAddressMode addressMode[3];
  enum cudaTextureFilterMode filterMode;
  enum cudaTextureReadMode readMode;
  int sRGB;
  float borderColor[4];
  int normalizedCoords;
  unsigned int maxAnisotropy;
  enum cudaTextureFilterMode mipmapFilterMode;
  float mipmapLevelBias, minMipmapLevelClamp, maxMipmapLevelClamp;
  int disableTrilinearOptimization;
};
struct cudaResourceViewDesc {
  int format;
  size_t width, height, depth;
  unsigned int firstMipmapLevel, lastMipmapLevel, firstLayer, lastLayer;
};
#define cudaArrayDefault 0x00
#define cudaArrayLayered 0x01
#define cudaArraySurfaceLoadStore 0x02
#define cudaArrayCubemap 0x04
#define cudaTextureType1D 0x01
#define cudaTextureType2D 0x02
#define cudaTextureType3D 0x03
#define cudaTextureTypeCubemap 0x0C

#ifdef __cplusplus
extern "C" {
#endif
struct cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, enum cudaChannelFormatKind f);
cudaError_t cudaCreateTextureObject(cudaTextureObject_t *texture, const struct cudaResourceDesc *resource,
                                    const struct cudaTextureDesc *description,
                                    const struct cudaResourceViewDesc *view);
cudaError_t cudaDestroyTextureObject(cudaTextureObject_t texture);
cudaError_t cudaCreateSurfaceObject(cudaSurfaceObject_t *surface, const struct cudaResourceDesc *resource);
cudaError_t cudaDestroySurfaceObject(cudaSurfaceObject_t surface);
cudaError_t cudaArrayGetInfo(struct cudaChannelFormatDesc *description, struct cudaExtent *extent,
                             unsigned int *flags, cudaArray_t array);
cudaError_t cudaFreeArray(cudaArray_t array);
cudaError_t cudaFreeMipmappedArray(cudaMipmappedArray_t array);
cudaError_t cudaGetMipmappedArrayLevel(cudaArray_t *array, cudaMipmappedArray_t all, unsigned int level);
cudaError_t cudaMalloc3D(struct cudaPitchedPtr *pointer, struct cudaExtent extent);
cudaError_t cudaMemset3D(struct cudaPitchedPtr pointer, int value, struct cudaExtent extent);
cudaError_t cudaMemcpy3D(const struct cudaMemcpy3DParms *parameters);
#ifdef __cplusplus
}

cudaError_t cudaMalloc3DArray(cudaArray_t *array, const cudaChannelFormatDesc *description, cudaExtent extent,
                              unsigned int flags = 0);
cudaError_t cudaMallocMipmappedArray(cudaMipmappedArray_t *array, const cudaChannelFormatDesc *description,
                                     cudaExtent extent, unsigned int levels, unsigned int flags = 0);
cudaError_t cudaMallocArray(cudaArray_t *array, const cudaChannelFormatDesc *description, size_t width,
                            size_t height = 0, unsigned int flags = 0);
cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms *parameters, cudaStream_t stream = 0);
cudaError_t cudaMemcpyToArray(cudaArray_t target, size_t x, size_t y, const void *source, size_t bytes,
                              cudaMemcpyKind kind);
cudaError_t cudaMemcpy2DToArray(cudaArray_t target, size_t x, size_t y, const void *source, size_t pitch,
                                size_t width, size_t height, cudaMemcpyKind kind);
cudaError_t cudaMemcpy2DToArrayAsync(cudaArray_t target, size_t x, size_t y, const void *source, size_t pitch,
                                     size_t width, size_t height, cudaMemcpyKind kind,
                                     cudaStream_t stream = 0);
cudaError_t cudaMemcpy2DFromArray(void *target, size_t pitch, cudaArray_const_t source, size_t x, size_t y,
                                  size_t width, size_t height, cudaMemcpyKind kind);

template <typename T> cudaChannelFormatDesc cudaCreateChannelDesc();
inline cudaExtent make_cudaExtent(size_t width, size_t height, size_t depth) {
  return {width, height, depth};
}
inline cudaPos make_cudaPos(size_t x, size_t y, size_t z) { return {x, y, z}; }
inline cudaPitchedPtr make_cudaPitchedPtr(void *pointer, size_t pitch, size_t width, size_t height) {
  return {pointer, pitch, width, height};
}

// References to textures, which CUDA 12 no longer has.
struct textureReference {
  int normalized;
  cudaTextureFilterMode filterMode;
  cudaTextureAddressMode addressMode[3];
  cudaChannelFormatDesc channelDesc;
};
template <typename T, int Dimensions = cudaTextureType1D, cudaTextureReadMode Mode = cudaReadModeElementType>
struct texture : textureReference {};
template <typename... Arguments> cudaError_t cudaBindTexture(Arguments &&...);
template <typename... Arguments> cudaError_t cudaBindTexture2D(Arguments &&...);
template <typename... Arguments> cudaError_t cudaBindTextureToArray(Arguments &&...);
template <typename... Arguments> cudaError_t cudaUnbindTexture(Arguments &&...);

// What kernels read and write through: with the type written out, and through a pointer.
#define VIRTUAL_CUDA_TEXTURE(name)                                                                           \
  template <typename T, typename... Arguments> __device__ T name(cudaTextureObject_t, Arguments...);         \
  template <typename T, typename... Arguments> __device__ void name(T *, cudaTextureObject_t, Arguments...);
VIRTUAL_CUDA_TEXTURE(tex1D)
VIRTUAL_CUDA_TEXTURE(tex1Dfetch)
VIRTUAL_CUDA_TEXTURE(tex2D)
VIRTUAL_CUDA_TEXTURE(tex2DLod)
VIRTUAL_CUDA_TEXTURE(tex2DLayered)
VIRTUAL_CUDA_TEXTURE(tex3D)
VIRTUAL_CUDA_TEXTURE(tex3DLod)
VIRTUAL_CUDA_TEXTURE(texCubemap)
VIRTUAL_CUDA_TEXTURE(surf1Dread)
VIRTUAL_CUDA_TEXTURE(surf2Dread)
VIRTUAL_CUDA_TEXTURE(surf3Dread)
#undef VIRTUAL_CUDA_TEXTURE
template <typename T, typename... Arguments> __device__ void surf1Dwrite(T, Arguments...);
template <typename T, typename... Arguments> __device__ void surf2Dwrite(T, Arguments...);
template <typename T, typename... Arguments> __device__ void surf3Dwrite(T, Arguments...);
#endif
