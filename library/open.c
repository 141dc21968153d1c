/* Opens contexts by the parameters of llm_open, and returns facts about them. */
#include <stdio.h>
#include <string.h>

#include "ggl/internal/params.h"
#include "ggl/internal/text.h"
#include "context.h"
#include "copies.h"
#include "builtin/builtin.h"
#include "opening.h"

enum { ROWS = 16 }; /* rows of logits that are computed together */

/* Says what became of repack_cache, and whether all weights have room: lines, each "note: ..". */
static void tell_of_loading(const llm_context *c, const llm_open_params *p) {
    static const char before[] = "note: ";
    char text[512];
    for (const char *s = llm_session_load_notes(c->session); p->note && *s;) {
        s += strncmp(s, before, sizeof before - 1) == 0 ? sizeof before - 1 : 0;
        const size_t n = strcspn(s, "\n");
        snprintf(text, sizeof text, "%.*s", (int)n, s);
        p->note(p->user, text);
        s += n + (s[n] == '\n');
    }
}

/* Opens what a folder or a built-in model sees or hears with, too, or notes why it does not. */
static void find_eye(llm_opening *o, ggl_error *why) {
    char text[sizeof why->msg + 100];
    o->params.mmproj = llm_eye_of(o->path, why);
    o->mmproj_came = o->params.mmproj != NULL;
    if (o->params.mmproj || !why->msg[0])
        return;
    why->msg[strcspn(why->msg, "\n")] = '\0';
    o->why_no_eye = why->msg;
    snprintf(text, sizeof text, "an eye or ear of this folder is not opened: %s", why->msg);
    if (o->params.note)
        o->params.note(o->params.user, text);
}

/* o: what is opened, and the params. */
static ggl_status open_with(llm_context *c, llm_opening *o, llm_opened until, ggl_error *err) {
    const bool runs = until == LLM_OPENED_ALL; /* else a question about the model: see llm_plan */
    const llm_open_params *p = &o->params;
    o->is_question = !runs;
    o->copies = true;
    o->session = llm_session_default();
    o->session.n_slots = p->n_parallel > 1 ? p->n_parallel : 1;
    o->chooses_slots = p->n_parallel <= 0;
    o->session.n_rows = o->session.n_slots > ROWS ? o->session.n_slots : ROWS;
    ggl_error why = {0};
    if (p->mmproj && !*p->mmproj)
        o->params.mmproj = NULL;
    else if (!p->mmproj && until >= LLM_OPENED_SESSION)
        find_eye(o, &why);
    ggl_status st = llm_context_open(c, o, until, err);
    if (st == GGL_OK && runs) {
        tell_of_loading(c, p);
        if (llm_session_has_logits(c->session))
            llm_note_sampling(c, o, &c->file_sampling, p->note, p->user);
        llm_note_context(c->model, p->n_ctx, p->note, p->user);
    }
    if (st == GGL_OK && runs && p->prompt_folder) {
        c->prompt_folder = ggl_copy_text(p->prompt_folder);
        c->prompt_folder_size = p->prompt_folder_size;
        st = c->prompt_folder ? GGL_OK : ggl_fail(err, GGL_NOMEM, "out of memory");
    }
    return st;
}

static ggl_status open_any(llm_context **out, llm_opening o, const llm_open_params *params,
                           llm_opened until, ggl_error *err) {
    o.params = llm_open_default();
    llm_context *c = NULL;
    ggl_error own;
    err = err ? err : &own;
    *out = NULL;
    ggl_status st = GGL_READ_PARAMS(llm_open_params, &o.params, params, err);
    if (st == GGL_OK)
        st = llm_context_new(&c, err);
    if (st == GGL_OK)
        st = open_with(c, &o, until, err);
    if (st == GGL_OK)
        *out = c;
    else
        llm_close(c);
    return st;
}

ggl_status llm_context_open_path(llm_context **out, const char *path, const llm_open_params *params,
                                 llm_opened until, ggl_error *err) {
    return open_any(out, (llm_opening){.path = path}, params, until, err);
}

ggl_status llm_open(llm_context **out, const char *path, const llm_open_params *params,
                    ggl_error *err) {
    return llm_context_open_path(out, path, params, LLM_OPENED_ALL, err);
}

ggl_status llm_open_beside(llm_context **out, const llm_context *c, const llm_open_params *params,
                           ggl_error *err) {
    *out = NULL;
    if (!c)
        return ggl_fail(err, GGL_USAGE, "llm_open_beside needs a context that is open");
    return open_any(out, (llm_opening){.beside = c->model}, params, LLM_OPENED_ALL, err);
}

/* --- questions -------------------------------------------------------------------------------- */

ggl_status llm_last_run(const llm_context *c, llm_run_info *info, ggl_error *err) {
    return GGL_WRITE_PARAMS(llm_run_info, info, &c->run, err);
}
