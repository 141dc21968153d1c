#include "llm/internal/session.h"

ggl_status llm_session_warm_up(llm_session *s, ggl_error *err) {
    const int32_t token = 0;
    const ggl_status st = llm_session_eval(s, &(llm_batch){.n = 1, .token = &token}, err);
    const ggl_status cleared = llm_session_clear(s, 0, st == GGL_OK ? err : NULL);
    return st == GGL_OK ? cleared : st;
}
