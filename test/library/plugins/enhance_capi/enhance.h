/* C interface of the speech enhancer; no type of C++ is visible to the caller. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct enh_model enh_model;
typedef struct enh_stream enh_stream;

typedef enum { ENH_OK = 0, ENH_INVALID = 1, ENH_FAILED = 2 } enh_status;

typedef struct {
  int fft;
  int hop;
  int bands;
  int gpu; /* below zero: the CPU */
} enh_config;

enh_status enh_model_create(const enh_config* config, enh_model** out);
enh_status enh_model_load(enh_model* model, const char* checkpoint);
enh_status enh_model_set_gpu(enh_model* model, int gpu);
void enh_model_destroy(enh_model* model);

enh_status enh_stream_open(enh_model* model, enh_stream** out);
void enh_stream_close(enh_stream* stream);
enh_status enh_stream_push(enh_stream* stream, const float* samples, size_t count);
enh_status enh_stream_pull(enh_stream* stream, float* samples, size_t* count);
enh_status enh_stream_reset(enh_stream* stream);
const float* enh_stream_gains(enh_stream* stream, size_t* count);
const float* enh_stream_noise(enh_stream* stream, size_t* count);
double enh_stream_snr(enh_stream* stream);
enh_status enh_stream_set_reference(enh_stream* stream, const float* samples, size_t count);
enh_status enh_stream_profile(enh_stream* stream, const char* file);
const char* enh_last_error(void);

#ifdef __cplusplus
}
#endif
