/* Conversations with pictures and sounds: these are shown to the model, and their marks stand in their places. */
#include <stdlib.h>
#include <string.h>

#include "context.h"
#include "ggl/internal/alloc.h"
#include "noticing.h"
#include "template/parts.h"

/* Holds a mark, also one that is held already: only when a conversation has been shown as a whole are they sorted. */
static ggl_status hold(llm_context *c, const char mark[LLM_IMAGE_MARK], ggl_error *err) {
    if (!ggl_grow(&c->shown, &c->cap_shown, c->n_shown + 1, sizeof *c->shown))
        return ggl_fail(err, GGL_NOMEM, "out of memory for a conversation");
    llm_shown *s = &c->shown[c->n_shown++];
    *s = (llm_shown){.is_named = false};
    memcpy(s->mark, mark, LLM_IMAGE_MARK);
    return GGL_OK;
}

/* Shows a file, and holds what was noticed of it. */
static ggl_status show(void *ctx, bool is_sound, const unsigned char *bytes, size_t n,
                       ggl_str *mark, ggl_error *err) {
    llm_context *c = ctx;
    char own[LLM_IMAGE_MARK];
    const llm_image image = {.data = bytes, .n = n};
    const llm_audio audio = {.data = bytes, .n = n};
    /* what was noticed before is read without a step of a model, which would ask for this */
    if (llm_context_is_cancelled(c))
        return ggl_fail(err, GGL_CANCELLED, "stopped by the caller");
    ggl_status st =
        is_sound ? llm_eye_listen(c, &audio, own, err) : llm_eye_see(c, &image, own, err);
    if (st != GGL_OK)
        return st;
    st = hold(c, own, err);
    if (st != GGL_OK)
        llm_unsee(c, own);
    else
        *mark = (ggl_str){c->shown[c->n_shown - 1].mark, LLM_IMAGE_MARK - 1};
    return st;
}

/* Lets go of all but the first n. */
static void forget(llm_context *c, size_t n) {
    while (c->n_shown > n)
        llm_unsee(c, c->shown[--c->n_shown].mark);
}

static int by_mark(const void *a, const void *b) {
    return memcmp(((const llm_shown *)a)->mark, ((const llm_shown *)b)->mark, LLM_IMAGE_MARK);
}

/* Notes which marks stand in a text; those that are held are sorted. */
static void find_in_text(llm_context *c, ggl_str text) {
    const llm_marks *m = llm_eye_marks(c->eye);
    llm_shown key = {.is_named = false};
    for (size_t at = 0, size; m->find(m->ctx, text.s, text.n, &at, &size); at += size) {
        memcpy(key.mark, text.s + at, LLM_IMAGE_MARK - 1);
        llm_shown *found = bsearch(&key, c->shown, c->n_shown, sizeof key, by_mark);
        if (found)
            found->is_named = true;
    }
}

/* The same of all texts of a value. */
static void find_named(llm_context *c, const json_value *v) {
    if (v->kind == JSON_STRING)
        find_in_text(c, json_str(v));
    for (uint32_t i = 0; v->kind >= JSON_ARRAY && i < v->n; i++)
        find_named(c, &v->item[i]);
}

static void find_all_named(llm_context *c, const llm_talk *talk) {
    const json_value *value;
    for (size_t i = 0; i < llm_talk_n(talk); i++)
        find_named(c, llm_talk_at(talk, i)->object);
    for (size_t k = 0; llm_talk_variable(talk, k, &value).s; k++)
        find_named(c, value);
}

/* Lets go of what the conversation does not name, and holds the rest once. */
static void let_go(llm_context *c, const llm_talk *talk) {
    size_t kept = 0;
    if (c->n_shown == 0)
        return;
    qsort(c->shown, c->n_shown, sizeof *c->shown, by_mark);
    for (size_t i = 0; i < c->n_shown; i++)
        if (kept > 0 && by_mark(&c->shown[kept - 1], &c->shown[i]) == 0)
            llm_unsee(c, c->shown[i].mark);
        else
            c->shown[kept++] = c->shown[i];
    c->n_shown = kept;
    find_all_named(c, talk);
    kept = 0;
    for (size_t i = 0; i < c->n_shown; i++)
        if (c->shown[i].is_named) {
            c->shown[kept] = c->shown[i];
            c->shown[kept++].is_named = false;
        } else {
            llm_unsee(c, c->shown[i].mark);
        }
    c->n_shown = kept;
}

static ggl_status read_talk(const char *json, const llm_part_marks *marks, llm_talk **talk,
                            ggl_error *err) {
    const llm_part_reader reader = llm_part_marks_reader(marks);
    ggl_status st = llm_talk_read(talk, (ggl_str){json, strlen(json)}, NULL, &reader, err);
    const json_value *tools = st == GGL_OK ? llm_talk_get(*talk, "tools") : NULL;
    if (tools)
        st = llm_calls_check_tools(tools, err);
    if (st == GGL_OK)
        return st;
    llm_talk_free(*talk);
    *talk = NULL;
    return st;
}

ggl_status llm_context_read_talk(const llm_context *c, const char *json, llm_talk **talk,
                                 ggl_error *err) {
    const llm_part_marks marks = {.in_text = c->eye ? llm_eye_marks(c->eye) : NULL};
    return read_talk(json, &marks, talk, err);
}

ggl_status llm_context_see_talk(llm_context *c, const char *json, llm_talk **talk, ggl_error *err) {
    const size_t before = c->n_shown;
    const llm_part_marks marks = {.in_text = c->eye ? llm_eye_marks(c->eye) : NULL,
                                  .pictures = llm_context_facts(c)->sees,
                                  .sounds = llm_context_facts(c)->hears,
                                  .show = show,
                                  .ctx = c};
    const ggl_status st = read_talk(json, &marks, talk, err);
    if (st == GGL_OK)
        let_go(c, *talk); /* afterwards, so that the eye looks at no picture twice */
    else
        forget(c, before);
    return st;
}

static ggl_status see(llm_context *c, const char *json, char **seen, size_t *n, ggl_error *err) {
    llm_talk *talk = NULL;
    ggl_status st = llm_context_see_talk(c, json, &talk, err);
    if (st == GGL_OK)
        st = llm_talk_json(talk, seen, n, err);
    llm_talk_free(talk);
    return st;
}

ggl_status llm_chat_see(llm_context *c, const char *json, char **seen, size_t *n, ggl_error *err) {
    *seen = NULL;
    *n = 0;
    if (!json)
        return ggl_fail(err, GGL_USAGE, "llm_chat_see needs a conversation as JSON");
    llm_context_start_beside(c);
    return llm_context_end_beside(c, see(c, json, seen, n, err));
}
