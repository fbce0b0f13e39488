/* Streaming speech recognition with a C interface, for bindings from other languages. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
  ASR_OK = 0,
  ASR_ERR_ARGUMENT = 1,
  ASR_ERR_NOT_FOUND = 2,
  ASR_ERR_STATE = 3,
  ASR_ERR_RUNTIME = 4
} asr_status_t;

typedef struct asr_model_config {
  int32_t device; /* below 0: the CPU */
  int32_t mel_bins;
  int32_t hidden;
  int32_t vocabulary;
  int32_t frame_length;
  float blank_penalty;
} asr_model_config_t;

const char *asr_last_error(void);
void asr_default_config(asr_model_config_t *config);
asr_status_t asr_create_model(const char *name, const asr_model_config_t *config);
asr_status_t asr_destroy_model(const char *name);
asr_status_t asr_move_model(const char *name, int32_t device);
asr_status_t asr_load_lm(const char *name, const char *path);
asr_status_t asr_load_punctuation(const char *name, const char *path);
asr_status_t asr_open_session(const char *model, int64_t *session);
asr_status_t asr_close_session(int64_t session);
asr_status_t asr_push_audio(int64_t session, const float *samples, size_t count);
asr_status_t asr_reset_session(int64_t session);
asr_status_t asr_rewind_session(int64_t session);
asr_status_t asr_set_hotwords(int64_t session, const float *weights, size_t count);
asr_status_t asr_set_mask(int64_t session, const int64_t *tokens, size_t count);
asr_status_t asr_decode(int64_t session, int64_t *tokens, size_t capacity, size_t *count);
asr_status_t asr_rescore(int64_t session, float *score);
asr_status_t asr_punctuate(int64_t session, float *score);
asr_status_t asr_copy_logits(int64_t session, float *out, size_t capacity);
asr_status_t asr_copy_features(int64_t session, float *out, size_t capacity);
asr_status_t asr_borrow_posteriors(int64_t session, const float **out, size_t *count);
asr_status_t asr_borrow_logits(int64_t session, const float **out, size_t *count);
asr_status_t asr_spectrum(const char *name, const float *samples, size_t count, float *out);
asr_status_t asr_step_many(const int64_t *sessions, size_t count);

#ifdef __cplusplus
}
#endif
