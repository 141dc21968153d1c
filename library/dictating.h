/* Speech that a text model with an ear writes down: llm_transcribe of such models. */
#ifndef LIBRARY_DICTATING_H
#define LIBRARY_DICTATING_H

#include "context.h"
#include "opening.h"

/* p: with all members, checked. way NULL: the context runs the texts itself, and its sequence is empty afterwards. Statuses of llm_transcribe. */
GGL_NODISCARD ggl_status llm_dictate(llm_context *c, const char *path,
                                     const llm_transcribe_params *p, const llm_transcribe_way *way,
                                     ggl_error *err);

#endif
