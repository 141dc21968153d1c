/* A folder of files that is there only when it is complete.
 *
 *     llm_new_folder f;
 *     if (llm_new_folder_open(&f, "OUT", err) == GGL_OK) {
 *         .. files in f.path ..
 *         st = llm_new_folder_commit(&f, err);    // or llm_new_folder_discard(&f)
 *     }
 *
 * Threads: one at a time. */
#ifndef COMMON_NEW_FOLDER_H
#define COMMON_NEW_FOLDER_H

#include <stdbool.h>

#include "ggl/status.h"

typedef struct llm_new_folder {
    char *
        path; /* of the folder to write into: OUT.tmp-PID, or OUT itself if it is there and empty */
    char *out;
} llm_new_folder;

/* Makes the folder, and those above it. `out` must not be there, or be an empty folder. GGL_USAGE: it has files, of which the message names one; GGL_IO,
 * GGL_NOMEM. On failure *f is all zeros. */
GGL_NODISCARD ggl_status llm_new_folder_open(llm_new_folder *f, const char *out, ggl_error *err);
/* Gives the folder its name. Frees *f, after a failure, too. GGL_IO. */
GGL_NODISCARD ggl_status llm_new_folder_commit(llm_new_folder *f, ggl_error *err);
/* Removes the folder with all that is in it, but for OUT itself if it was there. Frees *f, which may be all zeros. */
void llm_new_folder_discard(llm_new_folder *f);

#endif
