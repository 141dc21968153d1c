/* What calls that write down speech share. */
#ifndef LIBRARY_TRANSCRIBING_H
#define LIBRARY_TRANSCRIBING_H

#include "llm/llm.h"

/* Reads the parameters, and checks their numbers. GGL_USAGE. */
GGL_NODISCARD ggl_status llm_transcribe_read(llm_transcribe_params *p,
                                             const llm_transcribe_params *params, ggl_error *err);

#endif
