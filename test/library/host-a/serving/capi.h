/* C interface of the scoring service. Every function returns 0 on success; srv_last_error() tells the rest. */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef int64_t srv_handle;

const char *srv_last_error(void);
int srv_open(const char *model_path, int gpu_id, srv_handle *handle);
int srv_close(srv_handle handle);
int srv_reload(srv_handle handle, const char *model_path);
int srv_set_normalization(srv_handle handle, const float *mean, const float *scale, int64_t n);
int srv_set_label_mask(srv_handle handle, const int64_t *labels, int64_t n, int64_t classes);
int srv_set_temperature(srv_handle handle, float temperature);
int srv_load_prior(srv_handle handle, const char *path);
int srv_load_bias(srv_handle handle, const char *path);

int srv_normalize(srv_handle handle, const float *rows, int64_t count, float *out);
int srv_predict(srv_handle handle, const float *rows, int64_t count, float *out, int64_t capacity);
int srv_predict_biased(srv_handle handle, const float *rows, int64_t count, float *out, int64_t capacity);
int srv_predict_masked(srv_handle handle, const float *rows, int64_t count, float *out, int64_t capacity);
int srv_log_posterior(srv_handle handle, const float *rows, int64_t count, float *out, int64_t capacity);
int srv_best_label(srv_handle handle, const float *rows, int64_t count, int64_t *out);
int srv_confidence(srv_handle handle, const float *rows, int64_t count, float threshold, int64_t *above);
int srv_top_k(srv_handle handle, const float *rows, int64_t count, int64_t k, int64_t *labels, float *scores);
int srv_distance(srv_handle handle, const float *rows, int64_t count, const float *reference, float *out);
int srv_parameter_norm(srv_handle handle, double *out);

#ifdef __cplusplus
}
#endif
