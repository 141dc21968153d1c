#include "api_prompt.h"

#include <math.h>

#include "api_images.h"
#include "api_openai.h"
#include "api_shape.h"
#include "ggl/internal/text.h"
#include "llm/internal/tokenizer.h"
#include "template/parts.h"

enum { MOST_PROMPTS = 2048 };

/* --- lists of ids and texts --------------------------------------------------------------------- */

ggl_status prompt_of_ids(ask *a, ask_prompt *p, const int32_t *id, size_t n, ggl_error *err) {
    int32_t *copy = ggl_arena_alloc(&a->arena, n + 1, sizeof *copy);
    if (!copy)
        return ggl_fail(err, GGL_NOMEM, "out of memory for a prompt");
    if (n > 0)
        memcpy(copy, id, n * sizeof *id);
    *p = (ask_prompt){.id = copy, .n = n};
    return GGL_OK;
}

static ggl_status read_id(const json_value *v, const server_facts *facts, int32_t *id,
                          ggl_error *err) {
    if (!(v->number >= 0 && v->number < (double)facts->n_vocab) || v->number != floor(v->number))
        return ggl_fail(err, GGL_USAGE, "%.10g is not a token; the vocabulary has 0 to %lld",
                        v->number, (long long)(facts->n_vocab - 1));
    *id = (int32_t)v->number;
    return GGL_OK;
}

static ggl_status add_text(ask *a, llm_tokens *ids, const json_value *v, unsigned flags,
                           const server_facts *facts, ggl_error *err) {
    if (!facts->tokenizer)
        return ggl_fail(err, GGL_UNSUPPORTED, "the model has no tokenizer; give ids");
    const ggl_status st = ask_hold_text(a, v->n, err);
    return st == GGL_OK ? llm_tokenize(facts->tokenizer, v->s, v->n, flags, ids, err) : st;
}

/* Appends an element of a mixed list: an id, or the ids of a text. */
static ggl_status add_element(ask *a, llm_tokens *ids, const json_value *v, bool first,
                              const server_facts *facts, ggl_error *err) {
    const unsigned flags = LLM_TOKENIZE_SPECIAL | (first ? LLM_TOKENIZE_BOS : 0);
    int32_t id = 0;
    if (v->kind == JSON_STRING)
        return add_text(a, ids, v, flags, facts, err);
    if (v->kind != JSON_NUMBER)
        return ggl_fail(err, GGL_USAGE, "a list of ids and strings cannot have %s",
                        llm_json_kind_text((json_kind)v->kind));
    const ggl_status st = read_id(v, facts, &id, err);
    if (st != GGL_OK)
        return st;
    if (!ggl_grow(&ids->id, &ids->cap, ids->n + 1, sizeof *ids->id))
        return ggl_fail(err, GGL_NOMEM, "out of memory for a prompt");
    ids->id[ids->n++] = id;
    return GGL_OK;
}

static ggl_status read_list(ask *a, const json_value *v, const server_facts *facts, ask_prompt *p,
                            ggl_error *err) {
    llm_tokens ids = {0};
    ggl_status st = GGL_OK;
    for (size_t i = 0; i < v->n && st == GGL_OK; i++)
        st = add_element(a, &ids, &v->item[i], i == 0, facts, err);
    if (st == GGL_OK)
        st = prompt_of_ids(a, p, ids.id, ids.n, err);
    llm_tokens_fini(&ids);
    return st;
}

static bool is_one_list(const json_value *v) {
    for (size_t i = 0; v->kind == JSON_ARRAY && i < v->n; i++)
        if (v->item[i].kind == JSON_NUMBER)
            return true;
    return false;
}

/* --- objects ------------------------------------------------------------------------------------ */

typedef struct prompt_object {
    const json_value *text, *data, *content;
} prompt_object;

/* Puts the marks of pictures or sounds where the text says that they stand. */
static ggl_status put_images(ask *a, const json_value *data, ggl_str text, ask_prompt *p,
                             ggl_error *err) {
    static const char place[] = IMAGE_PLACE;
    const char *end = text.s + text.n, *s = text.s, *at;
    llm_json_out out = {0};
    size_t n = 0;
    ggl_status st = a->listens ? GGL_OK : image_check_seen(a, err);
    while (st == GGL_OK && (at = ggl_find_bytes(s, (size_t)(end - s), place, sizeof place - 1))) {
        const json_value *v = n < data->n ? &data->item[n] : NULL;
        ggl_str mark = {0};
        if (v && v->kind != JSON_STRING)
            st = ggl_fail(err, GGL_USAGE, "multimodal_data[%zu] must be a string of base64", n);
        else if (v && (st = image_of_base64(a, json_str(v), image_is_sound(a, json_str(v)), &mark,
                                            err)) != GGL_OK)
            (void)ggl_within(err, st, "multimodal_data[%zu]", n);
        llm_json_put(&out, s, (size_t)(at - s));
        llm_json_put(&out, mark.s ? mark.s : "", mark.n);
        s = at + sizeof place - 1;
        n++;
    }
    if (st == GGL_OK && n != data->n)
        st =
            ggl_fail(err, GGL_USAGE,
                     "the text has %zu times " IMAGE_PLACE ", where a picture or sound stands, but "
                     "\"multimodal_data\" has %u",
                     n, (unsigned)data->n);
    llm_json_put(&out, s, (size_t)(end - s));
    if (st == GGL_OK)
        return ask_keep(a, &out, &p->text, err);
    ggl_free(out.s);
    return st;
}

/* Parts follow each other without white space: they are one text, not a message. */
static ggl_status join_parts(ask *a, const json_value *list, ask_prompt *p, ggl_error *err) {
    const llm_part_reader reader = openai_part_reader(a);
    llm_json_out out = {0};
    ggl_status st = GGL_OK;
    for (size_t i = 0; i < list->n && st == GGL_OK; i++) {
        ggl_str text = {0};
        bool stands;
        st = reader.part(reader.ctx, &list->item[i], false, &text, &stands, err);
        if (st != GGL_OK)
            (void)ggl_within(err, st, "content[%zu]", i);
        llm_json_put(&out, text.s ? text.s : "", text.n);
    }
    if (st == GGL_OK)
        return ask_keep(a, &out, &p->text, err);
    ggl_free(out.s);
    return st;
}

static ggl_status read_object(ask *a, const json_value *v, ask_prompt *p, ggl_error *err) {
    static const shape_row rows[] = {
        {"prompt_string", SHAPE_STRING, offsetof(prompt_object, text), NULL},
        {"multimodal_data", SHAPE_LIST, offsetof(prompt_object, data), NULL},
        {"content", SHAPE_LIST, offsetof(prompt_object, content), NULL},
        {0}};
    prompt_object o;
    const ggl_status st = read_shape(&o, sizeof o, &a->ignored, v, rows, err);
    if (st != GGL_OK)
        return st;
    if (!o.text == !o.content || (o.content && o.data))
        return ggl_fail(
            err, GGL_USAGE,
            "an object must have \"prompt_string\", with \"multimodal_data\" if its text "
            "has pictures or sounds, or \"content\", a list of parts");
    if (o.content)
        return join_parts(a, o.content, p, err);
    p->text = json_str(o.text);
    return o.data && o.data->n > 0 ? put_images(a, o.data, p->text, p, err) : GGL_OK;
}

/* --- all of a field ----------------------------------------------------------------------------- */

static ggl_status read_one(ask *a, const json_value *v, const server_facts *facts, ask_prompt *p,
                           ggl_error *err) {
    if (v->kind == JSON_ARRAY)
        return read_list(a, v, facts, p, err);
    if (v->kind == JSON_OBJECT)
        return read_object(a, v, p, err);
    if (v->kind != JSON_STRING)
        return ggl_fail(err, GGL_USAGE,
                        "a prompt must be a string, a list of tokens, or an object with "
                        "\"prompt_string\" or \"content\", not %s",
                        llm_json_kind_text((json_kind)v->kind));
    p->text = json_str(v);
    return GGL_OK;
}

ggl_status prompt_read_all(ask *a, const json_value *v, const char *name, const server_facts *facts,
                           ggl_error *err) {
    const bool several = v->kind == JSON_ARRAY && !is_one_list(v);
    const size_t n = several ? v->n : 1;
    if (n == 0)
        return ggl_fail(err, GGL_USAGE, "\"%s\" is an empty list", name);
    if (n > MOST_PROMPTS)
        return ggl_fail(err, GGL_USAGE, "\"%s\" has %zu elements; at most %d are supported", name,
                        n, MOST_PROMPTS);
    ask_prompt *p = ggl_arena_alloc(&a->arena, n, sizeof *p);
    if (!p)
        return ggl_fail(err, GGL_NOMEM, "out of memory for \"%s\"", name);
    for (size_t i = 0; i < n; i++) {
        const ggl_status st = read_one(a, several ? &v->item[i] : v, facts, &p[i], err);
        if (st != GGL_OK)
            return several ? ggl_within(err, st, "%s[%zu]", name, i)
                           : ggl_within(err, st, "%s", name);
    }
    a->prompt = p;
    a->n_prompts = n;
    return GGL_OK;
}
