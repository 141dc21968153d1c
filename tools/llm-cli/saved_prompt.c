#include "saved_prompt.h"

#include <stdlib.h>

#include "common/progress.h"

struct saved_prompt {
    const char *tool;
    const saved_prompt_options *o;
    llm_prompt_file *file;
    int64_t n_held; /* tokens that came from the file */
};

int saved_prompt_check(const char *tool, const saved_prompt_options *o) {
    if (!o->path && (o->all || o->read_only))
        return tool_error(tool, 2,
                          "--prompt-cache-all and --prompt-cache-ro need --prompt-cache FILE");
    if (o->all && o->read_only)
        return tool_error(tool, 2,
                          "--prompt-cache-all and --prompt-cache-ro cannot be used together");
    return -1;
}

int saved_prompt_open(saved_prompt **out, const char *tool, const saved_prompt_options *o,
                      llm_context *c) {
    ggl_error err = {0};
    *out = NULL;
    if (!o->path)
        return -1;
    saved_prompt *s = *out = calloc(1, sizeof *s);
    if (!s)
        return tool_error(tool, 1, "out of memory");
    s->tool = tool;
    s->o = o;
    const ggl_status st = llm_prompt_file_open(&s->file, c, o->path, o->read_only, &err);
    return st == GGL_OK ? -1
                        : tool_error(tool, st == GGL_USAGE ? 2 : 1, "--prompt-cache: %s", err.msg);
}

void saved_prompt_close(saved_prompt *s) {
    if (s)
        llm_prompt_file_close(s->file);
    free(s);
}

ggl_status saved_prompt_load(saved_prompt *s, const llm_file_prompt *prompt, ggl_error *err) {
    ggl_error why = {0};
    if (!s)
        return GGL_OK;
    progress_begin(NULL, 0, "reading %s", s->o->path);
    const ggl_status st = llm_prompt_file_load(s->file, prompt, &s->n_held, &why, err);
    progress_end();
    if (why.status != GGL_OK && (why.status != GGL_NOT_FOUND || s->o->read_only))
        tool_note(s->tool, "--prompt-cache: %s; the prompt runs without it", why.msg);
    return st;
}

int64_t saved_prompt_n_held(const saved_prompt *s) {
    return s ? s->n_held : 0;
}

bool saved_prompt_write(saved_prompt *s, const llm_file_prompt *prompt) {
    const size_t n = prompt->n;
    ggl_error err = {0};
    if (!s || s->o->read_only || (!s->o->all && (size_t)s->n_held + 1 >= n && s->n_held > 0))
        return true;
    progress_begin(NULL, 0, "writing %s", s->o->path);
    const ggl_status st = llm_prompt_file_save(s->file, prompt, s->o->all, &err);
    progress_end();
    if (st == GGL_NOT_FOUND || st == GGL_UNSUPPORTED) { /* the text is complete without it */
        tool_note(s->tool, "the prompt is not saved: %s", err.msg);
        return true;
    }
    if (st != GGL_OK)
        (void)tool_error(s->tool, 1, "the prompt is not saved: %s", err.msg);
    return st == GGL_OK;
}
