/* The steps of llm_see, llm_listen and llm_transcribe: what pictures and sounds become on their way into a model. For programs
 * that show these numbers, or compare them with those of other programs; llm/llm.h does not include this header.
 *
 *     float *row;
 *     size_t n, n_row;
 *     st = llm_image_rows(c, &(llm_image){.path = "cat.jpg"}, &row, &n, &n_row, &err);
 *
 * Threads: as llm/llm.h says.
 *
 * Tier: versioned (docs/library.md says what that promises). */
#ifndef LLM_STEPS_H
#define LLM_STEPS_H

#include "llm/senses.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The steps of llm_see: the pixels that the eye sees, [*height][*width][3] of red, green and blue, normalised, of the whole if it
 * also sees parts; and the rows that it makes of all, [*n][*n_row], in the order of a text. To be freed by ggl_free. Statuses of llm_see. */
GGL_API GGL_NODISCARD ggl_status llm_image_pixels(llm_context *c, const llm_image *image,
                                                  float **pixel, size_t *height, size_t *width,
                                                  ggl_error *err);
GGL_API GGL_NODISCARD ggl_status llm_image_rows(llm_context *c, const llm_image *image, float **row,
                                                size_t *n, size_t *n_row, ggl_error *err);
/* The steps of llm_listen: the rows of the spectrogram that the ear reads, window by window, and those that it makes of them, [*n][*n_row]. To be freed
 * by ggl_free. Statuses of llm_listen. */
GGL_API GGL_NODISCARD ggl_status llm_audio_mel(llm_context *c, const llm_audio *audio, float **row,
                                               size_t *n, size_t *n_row, ggl_error *err);
GGL_API GGL_NODISCARD ggl_status llm_audio_rows(llm_context *c, const llm_audio *audio, float **row,
                                                size_t *n, size_t *n_row, ggl_error *err);

/* The steps of llm_transcribe. Of params, only what says what sound it is counts. GGL_USAGE: the sound ends before the offset; else as llm_transcribe.
 *
 * llm_hear empties the sequence, whose tokens then hear the sound's window from params.offset on (llm_eval).
 * llm_sound_rows calls each(user, row, n, n_row) with the rows [n][n_row] that the model would read, from params.offset on, and of a window of silence
 * after the sound; false: GGL_CANCELLED.
 * llm_heard_rows gets what the model's stages make of the window, [*n][*n_row], to be freed by ggl_free. */
GGL_API GGL_NODISCARD ggl_status llm_hear(llm_context *c, const char *path,
                                          const llm_transcribe_params *params, ggl_error *err);
GGL_API GGL_NODISCARD ggl_status llm_sound_rows(
    llm_context *c, const char *path, const llm_transcribe_params *params,
    bool (*each)(void *user, const float *row, size_t n, size_t n_row), void *user, ggl_error *err);
GGL_API GGL_NODISCARD ggl_status llm_heard_rows(llm_context *c, const char *path,
                                                const llm_transcribe_params *params, float **row,
                                                size_t *n, size_t *n_row, ggl_error *err);

#ifdef __cplusplus
}
#endif
#endif
