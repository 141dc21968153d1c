/* POST /slots/N?action=save, restore or erase, in the form of llama.cpp's server: what a request says, and what the
 * engine's thread does between two steps. Answers of others wait meanwhile. */
#ifndef LLM_SERVER_SLOT_FILE_H
#define LLM_SERVER_SLOT_FILE_H

#include "common/json_write.h"
#include "server_impl.h"

typedef enum slot_action { SLOT_SAVE, SLOT_RESTORE, SLOT_ERASE, N_SLOT_ACTIONS } slot_action;

enum {
    SLOT_NAME = 200
}; /* most bytes of a file's name; while it is written, it has a longer one */

typedef struct slot_request {
    const server *s;
    memory *memory; /* what requests hold */
    slot_action action;
    int slot;
    char name[SLOT_NAME + 1];
    char *path; /* of the file, owned; NULL: erase */
    /* the result */
    ggl_status status;
    ggl_error err;
    bool is_busy; /* a sequence runs in the slot: nothing was done */
    int64_t n, n_bytes;
    double ms;
} slot_request;

/* Reads the path "/slots/3" and ?action=, which may be NULL. GGL_USAGE. */
GGL_NODISCARD ggl_status slot_read_target(slot_request *x, const char *path, const char *action,
                                          ggl_error *err);
/* Reads the file's name (NULL: it is missing): one in the folder itself, without separators, control characters or a dot
 * at its beginning. GGL_USAGE, GGL_LIMIT, GGL_NOMEM. */
GGL_NODISCARD ggl_status slot_read_name(slot_request *x, const json_value *v, ggl_error *err);
/* For server_on_engine; ctx: the request. */
void slot_act(void *ctx, llm_engine *e);
void slot_put_result(const slot_request *x, llm_json_out *out);

#endif
