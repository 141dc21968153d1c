/* Sound that is written down while it comes. */
#ifndef LIBRARY_DICTATING_LIVE_H
#define LIBRARY_DICTATING_LIVE_H

#include "dictation.h"

/* Writes down samples that were added to d->sample, behind d->n; with d->has_ended all of them. */
GGL_NODISCARD ggl_status llm_dictation_go_on(dictation *d, ggl_error *err);
/* Ends the text of a part that has begun, if there is one: the context's sequence is empty then. st: how it went; what has gone wrong meanwhile is returned. Before
 * llm_dictation_fini. */
ggl_status llm_dictation_stop(dictation *d, ggl_status st, ggl_error *err);

#endif
