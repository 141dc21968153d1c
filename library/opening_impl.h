/* What an opening says to each part of the library: how the file is read, where the model runs, what its session has, what guesses. */
#ifndef LIBRARY_OPENING_IMPL_H
#define LIBRARY_OPENING_IMPL_H

#include "opening.h"

/* All pointers are borrowed from `how`, or from this struct, which stays where it is. */
typedef struct llm_open_parts {
    const llm_opening *how;
    ggl_gguf_params file;
    llm_loading loading;
    ggl_backend_params backend;
    llm_placement_choice placement;
    llm_session_params session; /* without backends, adapters and `cancelled` */
    llm_guessing_choice guessing;
} llm_open_parts;

/* GGL_USAGE: an option is wrong. */
ggl_status llm_open_parts_of(llm_open_parts *parts, const llm_opening *how, ggl_error *err);

#endif
