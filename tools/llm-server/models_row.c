/* A row of --models: the flags of one model; see presets.h. */
#include <stdlib.h>
#include <string.h>

#include "ggl/alloc.h"
#include "llm/internal/load.h"
#include "presets.h"

/* Makes a command line of the server's and the model's flags, in one piece of memory. */
static char **join(int argc, char **argv, const char *const *flag, size_t n_flags) {
    const size_t n = (size_t)argc + n_flags;
    size_t n_bytes = (n + 1) * sizeof(char *);
    for (size_t i = 0; i < n_flags; i++)
        n_bytes += strlen(flag[i]) + 1;
    char **all = ggl_calloc(n_bytes, 1);
    if (!all)
        return NULL;
    char *to = (char *)(all + n + 1);
    for (int i = 0; i < argc; i++)
        all[i] = argv[i];
    for (size_t i = 0; i < n_flags; i++) {
        const size_t size = strlen(flag[i]) + 1;
        all[(size_t)argc + i] = memcpy(to, flag[i], size);
        to += size;
    }
    return all;
}

/* Reads the flags of a row. Notes were printed when each was read by itself. */
static int read_options(const char *tool, server_options *o, int argc, char **argv) {
    const bool was_quiet = tool_is_quiet();
    tool_set_quiet(true);
    int code = server_options_read_model(tool, o, argc, argv);
    tool_set_quiet(was_quiet);
    o->models = NULL;
    if (code < 0 && !o->open.how.path && !o->open.hub.repo && !o->open.hub.url)
        code = tool_error(tool, 2, "its file is missing: model = FILE, or hf-repo = USER/REPO");
    return code < 0 ? server_options_check_paths(tool, o) : code;
}

/* What the model will notice by the eye or ear that it is opened with, as far as that is known before a download. */
static llm_senses senses_of(const server_options *o) {
    const char *given = o->open.how.params.mmproj;
    const char *eye = given || o->open.hub.no_eye ? given : tool_eye_of(o->open.how.path, NULL);
    return llm_senses_of(eye);
}

int models_list_add(models *t, const char *tool, const char *name, int argc, char **argv,
                    const char *const *flag, size_t n_flags, unsigned what) {
    ggl_error err = {0}, unread;
    server_options *o = ggl_calloc(1, sizeof *o);
    char **all = join(argc, argv, flag, n_flags);
    model_card card = {.weight_type = ""};
    int code = o && all ? read_options(tool, o, argc + (int)n_flags, all)
                        : tool_error(tool, 1, "out of memory");
    if (code < 0) {
        o->open.how.mmproj_came = what & ROW_EYE_CAME;
        o->open.how.image_tokens_for_all = !(what & ROW_OWN_SIZES);
    }
    if (code < 0 && o->open.how.path && !llm_load_converts(o->open.how.path) &&
        model_card_read(&card, o->open.how.path, &unread) != GGL_OK)
        card.is_known = false; /* loading it gives the error again */
    if (code < 0)
        card.has = senses_of(o);
    if (code < 0 && models_add(t, name, o->alias, o, all, &card, &err) != GGL_OK)
        code = tool_error(tool, 2, "%s", err.msg);
    if (code < 0) {
        const model_list *l = models_get_list(t);
        if (what & ROW_LOADS)
            model_want(l->at[l->n - 1]);
        return code;
    }
    if (!err.msg[0]) { /* else the table has them */
        if (o)
            server_options_fini(o);
        ggl_free(o);
        ggl_free(all);
    }
    return code;
}
