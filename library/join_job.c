#include "ggl/internal/backends.h"
#include "llm/llm.h"

ggl_status llm_join_job(int *exit_code, ggl_error *err) {
    return ggl_ranks_begin(exit_code, NULL, err);
}
