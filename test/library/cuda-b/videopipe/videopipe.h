/* C interface of the decoder side: frames go in as bytes and come out as tensors for a model, or as bytes again. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef int vp_handle;
typedef struct {
  int width, height;
  int device; /* index of a GPU */
  int ring;   /* frames in flight */
} vp_config;

enum { VP_OK = 0, VP_BAD_HANDLE = 1, VP_BAD_ARGUMENT = 2, VP_DEVICE_ERROR = 3 };

int vp_open(const vp_config *config, vp_handle *out);
int vp_close(vp_handle handle);

int vp_push_nv12(vp_handle handle, const uint8_t *luma, const uint8_t *chroma);
int vp_push_rgb(vp_handle handle, const uint8_t *pixels);
int vp_push_device(vp_handle handle, const void *device_pixels);
int vp_push_shared(vp_handle handle, uint8_t *pixels);

int vp_convert(vp_handle handle);
int vp_resize(vp_handle handle, int width, int height);
int vp_tone_map(vp_handle handle, float gamma);
int vp_equalize(vp_handle handle);
int vp_blend_previous(vp_handle handle, float weight);
int vp_blend_reference(vp_handle handle, const float *reference, float weight);
int vp_overlay(vp_handle handle, const float *mask);

int vp_read_rgb(vp_handle handle, uint8_t *out, size_t bytes);
int vp_read_planar(vp_handle handle, float *out, size_t count);
const float *vp_map(vp_handle handle);
const float *vp_luma_row(vp_handle handle, int row);
int vp_mean(vp_handle handle, float *out);
const char *vp_last_error(void);

#ifdef __cplusplus
}
#endif
