/* Sound as a descriptor wants it: the rate at which it is read, and what makes rows of it. */
#ifndef LIBRARY_SOUND_ROWS_H
#define LIBRARY_SOUND_ROWS_H

#include "llm/internal/arch.h"
#include "llm/llm.h"
#include "sound/log_mel.h"
#include "sound/sound.h"

/* What makes rows of n_mel numbers, as a descriptor says, if these are no samples; where its bands have means, these are not yet in the rows. GGL_UNSUPPORTED, GGL_NOMEM; *out is then NULL. */
GGL_NODISCARD ggl_status llm_sound_rows_mel(llm_mel **out, const llm_arch_sound *s, int64_t n_mel,
                                            ggl_error *err);
/* Opens a sound, to be read at this rate; messages name it as `name`. names_raw, cancelled: as of llm_sound_params. Statuses of llm_sound_open. */
GGL_NODISCARD ggl_status llm_sound_rows_open(llm_sound **out, const llm_audio *audio,
                                             const char *name, int rate, bool names_raw,
                                             bool (*cancelled)(void *ctx), void *ctx,
                                             ggl_error *err);

#endif
