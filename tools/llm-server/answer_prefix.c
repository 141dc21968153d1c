/* The header X-Prefix: a name for the beginning of a conversation, by which a balancer finds the replica that has computed it. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "answer_impl.h"
#include "ggl/internal/text.h"
#include "ggl/internal/xxh64.h"

enum { TEXT_BYTES = 256, TEXT_IDS = 64 }; /* of a text that is continued */

/* A string with its length. What marks a request's pictures, other letters in each request, is left out. */
static void add_string(ggl_xxh64 *h, ggl_str s, const char *key) {
    const size_t n_key = strlen(key);
    const char *end = s.s + s.n, *at;
    while (n_key > 0 && (at = ggl_find_bytes(s.s, (size_t)(end - s.s), key, n_key))) {
        ggl_xxh64_add(h, s.s, (size_t)(at - s.s));
        s.s = at + n_key;
    }
    ggl_xxh64_add(h, s.s, (size_t)(end - s.s));
    ggl_xxh64_add(h, &s.n, sizeof s.n);
}

static void add_value(ggl_xxh64 *h, const json_value *v, const char *key) {
    ggl_xxh64_add(h, &v->kind, 1);
    switch (v->kind) {
    case JSON_BOOL:
        ggl_xxh64_add(h, &v->flag, 1);
        break;
    case JSON_NUMBER:
        add_string(h, json_number_text(v), "");
        break;
    case JSON_STRING:
        add_string(h, json_str(v), key);
        break;
    default: /* null, or a list or an object, in which the names follow */
        for (uint32_t i = 0; i < v->n * (v->kind == JSON_OBJECT ? 2 : 1); i++)
            add_value(h, &v->item[i], key);
        ggl_xxh64_add(h, &v->n, sizeof v->n);
    }
}

/* The messages as far as the first one of the user. */
static bool add_talk(ggl_xxh64 *h, const ask *a) {
    bool asked = false;
    for (size_t i = 0; i < llm_talk_n(a->talk) && !asked; i++) {
        const llm_talk_message *m = llm_talk_at(a->talk, i);
        add_value(h, m->object, a->image_key);
        asked = ggl_str_is(m->role, "user");
    }
    return true;
}

static bool add_prompt(ggl_xxh64 *h, const ask *a) {
    const ask_prompt *p = a->prompt;
    if (a->n_prompts == 0)
        return false;
    if (p->text.s)
        add_string(h, (ggl_str){p->text.s, p->text.n < TEXT_BYTES ? p->text.n : TEXT_BYTES},
                   a->image_key);
    else
        ggl_xxh64_add(h, p->id, (p->n < TEXT_IDS ? p->n : TEXT_IDS) * sizeof *p->id);
    return true;
}

bool answer_prefix(const ask *a, char *text) {
    ggl_xxh64 h;
    ggl_xxh64_begin(&h);
    if (ask_has_rows(a) || a->is_empty || !(a->kind == ASK_CHAT ? add_talk : add_prompt)(&h, a))
        return false;
    snprintf(text, ANSWER_PREFIX, "%016" PRIx64, ggl_xxh64_end(&h));
    return true;
}
