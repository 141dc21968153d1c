/* Conversations with pictures and sounds: these are shown to the model, and their marks stand in their places. */
#include <string.h>

#include "context.h"
#include "ggl/internal/alloc.h"
#include "noticing.h"
#include "template/parts.h"

static ggl_status hold(llm_context *c, const char mark[LLM_IMAGE_MARK], ggl_error *err) {
    if (!ggl_grow(&c->shown, &c->cap_shown, c->n_shown + 1, sizeof *c->shown))
        return ggl_fail(err, GGL_NOMEM, "out of memory for a conversation");
    memcpy(c->shown[c->n_shown++], mark, LLM_IMAGE_MARK);
    return GGL_OK;
}

/* Shows a file, and holds what was noticed of it. */
static ggl_status show(void *ctx, bool is_sound, const unsigned char *bytes, size_t n,
                       ggl_str *mark, ggl_error *err) {
    llm_context *c = ctx;
    char own[LLM_IMAGE_MARK];
    const llm_image image = {.data = bytes, .n = n};
    const llm_audio audio = {.data = bytes, .n = n};
    ggl_status st =
        is_sound ? llm_eye_listen(c, &audio, own, err) : llm_eye_see(c, &image, own, err);
    if (st != GGL_OK)
        return st;
    st = hold(c, own, err);
    if (st != GGL_OK)
        llm_unsee(c, own);
    else
        *mark = (ggl_str){c->shown[c->n_shown - 1], LLM_IMAGE_MARK - 1};
    return st;
}

/* Lets go of the first n that were shown, but for those that the conversation names. */
static void let_go(llm_context *c, size_t n, const char *json) {
    size_t kept = 0;
    for (size_t i = 0; i < c->n_shown; i++)
        if (i >= n || strstr(json, c->shown[i]))
            memmove(c->shown[kept++], c->shown[i], LLM_IMAGE_MARK);
        else
            llm_unsee(c, c->shown[i]);
    c->n_shown = kept;
}

ggl_status llm_context_see_talk(llm_context *c, const char *json, char **seen, size_t *n,
                                ggl_error *err) {
    const size_t before = c->n_shown;
    const llm_part_marks marks = {.in_text = c->eye ? llm_eye_marks(c->eye) : NULL,
                                  .pictures = llm_context_sees(c),
                                  .sounds = llm_context_hears(c),
                                  .show = show,
                                  .ctx = c};
    ggl_status st = llm_context_check_talk(json, err);
    if (st == GGL_OK)
        st =
            llm_talk_texts((ggl_str){json, strlen(json)}, "the conversation", &marks, seen, n, err);
    let_go(c, before, json); /* afterwards, so that the eye looks at no picture twice */
    return st;
}

ggl_status llm_chat_see(llm_context *c, const char *json, char **seen, size_t *n, ggl_error *err) {
    *seen = NULL;
    *n = 0;
    if (!json)
        return ggl_fail(err, GGL_USAGE, "llm_chat_see needs a conversation as JSON");
    llm_context_start_beside(c);
    return llm_context_see_talk(c, json, seen, n, err);
}
