/* Sounds that a text model with an ear writes down: their texts run in the server's engine, beside those of other requests. */
#ifndef LLM_SERVER_SPEECH_RUN_H
#define LLM_SERVER_SPEECH_RUN_H

#include "server_impl.h"

/* What the library names the sound of a request in its messages. */
#define SOUND_NAME "file"

/* llm_transcribe_by for a turn of the queue of sounds, on its thread. */
GGL_NODISCARD ggl_status speech_run(server *s, turn *t, const llm_transcribe_params *p,
                                    ggl_error *err);

#endif
