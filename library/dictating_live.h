/* Sound that is written down while it comes. */
#ifndef LIBRARY_DICTATING_LIVE_H
#define LIBRARY_DICTATING_LIVE_H

#include "dictation.h"

/* Writes down samples that were added to d->sample, behind d->n; with d->has_ended all of them. */
GGL_NODISCARD ggl_status llm_dictation_go_on(dictation *d, ggl_error *err);

#endif
