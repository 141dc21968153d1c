#include "slot_file.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "api_pieces.h"
#include "cache_settings.h"
#include "common/clock.h"
#include "ggl/internal/os_clock.h"
#include "ggl/internal/os_fs.h"

static const struct {
    const char *name;
    const char *n_tokens, *n_bytes, *ms; /* members of the answer */
} actions[N_SLOT_ACTIONS] = {[SLOT_SAVE] = {"save", "n_saved", "n_written", "save_ms"},
                             [SLOT_RESTORE] = {"restore", "n_restored", "n_read", "restore_ms"},
                             [SLOT_ERASE] = {"erase", "n_erased", NULL, NULL}};

/* --- reading ---------------------------------------------------------------------------------- */

ggl_status slot_read_target(slot_request *x, const char *path, const char *action, ggl_error *err) {
    const char *digits = path + strlen("/slots/");
    const int n_slots = (int)llm_opened_session_params(x->s->ctx)->n_slots;
    const size_t n = strspn(digits, "0123456789");
    if (n == 0 || digits[n] || n > 9 || atoi(digits) >= n_slots)
        return ggl_fail(err, GGL_USAGE, "there is no slot \"%.20s\"; the server has slots 0 to %d",
                        digits, n_slots - 1);
    x->slot = atoi(digits);
    while (x->action < N_SLOT_ACTIONS && !(action && !strcmp(action, actions[x->action].name)))
        x->action++;
    if (x->action == N_SLOT_ACTIONS)
        return ggl_fail(err, GGL_USAGE, "?action= must be save, restore or erase, not \"%.20s\"",
                        action ? action : "");
    return GGL_OK;
}

ggl_status slot_read_name(slot_request *x, const json_value *v, ggl_error *err) {
    if (!v)
        return ggl_fail(err, GGL_USAGE, "\"filename\" is missing: the name of the file");
    bool is_bad = v->n == 0 || v->s[0] == '.';
    for (uint32_t i = 0; i < v->n; i++)
        is_bad |= (unsigned char)v->s[i] < ' ' || v->s[i] == 127 || strchr("/\\:", v->s[i]);
    if (v->n > SLOT_NAME)
        return ggl_fail(err, GGL_LIMIT, "\"filename\" has %u bytes; at most %d are allowed", v->n,
                        (int)SLOT_NAME);
    if (is_bad)
        return ggl_fail(
            err, GGL_USAGE,
            "\"filename\" must be the name of a file without a folder: it is not empty, "
            "does not begin with a dot, and has no /, \\, : or control characters");
    memcpy(x->name, v->s, v->n);
    const char *rule = ggl_os_name_rule(x->name);
    if (rule)
        return ggl_fail(err, GGL_USAGE, "\"filename\" cannot be \"%s\": %s", x->name, rule);
    const size_t size = strlen(x->s->o->slot_path) + sizeof x->name + 1;
    x->path = ggl_calloc(size, 1);
    if (!x->path)
        return ggl_fail(err, GGL_NOMEM, "out of memory");
    snprintf(x->path, size, "%s/%s", x->s->o->slot_path, x->name);
    os_stat st;
    if (ggl_os_stat(x->path, &st) && st.kind != OS_FILE)
        return ggl_fail(err, GGL_USAGE,
                        "\"filename\": \"%s\" is %s in the folder of --slot-save-path, not a file",
                        x->name, st.kind == OS_FOLDER ? "a folder" : "a device or a pipe");
    return GGL_OK;
}

/* --- on the engine's thread ------------------------------------------------------------------- */

/* Holds the memory of a slot that is saved: it is copied before it is written. */
static ggl_status hold_copy(const slot_request *x, int64_t n_past, memory_hold *h, ggl_error *err) {
    const size_t n = llm_session_save_size(llm_opened_session(x->s->ctx), x->slot),
                 most = memory_most(h->of, h->use);
    if (memory_set(h, n))
        return GGL_OK;
    return ggl_fail(err, n > most ? GGL_LIMIT : GGL_NOMEM,
                    "to save %" PRId64
                    " tokens takes %zu MiB, and requests hold %zu of the %zu MiB "
                    "that they may have together (half of --request-memory)",
                    n_past, n >> 20, memory_held(h->of, h->use) >> 20, most >> 20);
}

static ggl_status use_file(slot_request *x, llm_engine *e, ggl_error *err) {
    char also[LLM_CACHE_SETTINGS];
    llm_prompt_cache *c;
    const server *s = x->s;
    memory_hold h = {.of = x->memory, .use = MEMORY_REQUESTS};
    const llm_slot_info info = llm_engine_slot(e, x->slot);
    (void)llm_cache_settings(also, llm_opened_adapter(s->ctx), llm_opened_n_adapters(s->ctx),
                             llm_opened_placement(s->ctx));
    const llm_prompt_cache_params p = {.size = sizeof p,
                                       .model = llm_opened_model(s->ctx),
                                       .session = llm_opened_session(s->ctx),
                                       .slot = x->slot,
                                       .also = also};
    ggl_status st = llm_prompt_cache_new(&c, &p, err);
    if (st != GGL_OK)
        return st;
    if (x->action == SLOT_SAVE)
        st = hold_copy(x, info.n_past, &h, err);
    if (st == GGL_OK)
        st = x->action == SLOT_SAVE ? llm_engine_save_slot(e, x->slot, c, x->path, &x->n, err)
                                    : llm_engine_restore_slot(e, x->slot, c, x->path, &x->n, err);
    memory_force(&h, 0);
    llm_prompt_cache_free(c);
    return st;
}

void slot_act(void *ctx, llm_engine *e) {
    slot_request *x = ctx;
    const llm_slot_use use = llm_engine_slot(e, x->slot).use;
    const int64_t begin = ggl_os_clock();
    os_stat file;
    x->is_busy = use == LLM_SLOT_PROMPT || use == LLM_SLOT_GENERATES;
    if (x->is_busy)
        return;
    x->status =
        x->path ? use_file(x, e, &x->err) : llm_engine_erase_slot(e, x->slot, &x->n, &x->err);
    x->ms = (double)(ggl_os_clock() - begin) * 1e-6;
    if (x->status == GGL_OK && x->path && ggl_os_stat(x->path, &file))
        x->n_bytes = (int64_t)file.size;
}

/* --- the answer ------------------------------------------------------------------------------- */

void slot_put_result(const slot_request *x, llm_json_out *out) {
    llm_json_format(out, "{\"id_slot\": %d, \"%s\": %" PRId64, x->slot, actions[x->action].n_tokens,
                    x->n);
    if (x->path) {
        llm_json_format(out, ", 'filename': %.*s", LLM_JSON_TEXT(x->name));
        llm_json_format(out, ", \"%s\": %" PRId64 ", \"timings\": {\"%s\": %.3f}",
                        actions[x->action].n_bytes, x->n_bytes, actions[x->action].ms, x->ms);
    }
    llm_json_put_text(out, "}");
}
