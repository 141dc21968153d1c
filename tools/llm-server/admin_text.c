/* Texts as tokens, tokens as texts, and conversations as prompts, in the form of llama.cpp's server. */
#include "admin.h"

#include <stddef.h>
#include <stdio.h>

#include "answer_impl.h"
#include "api_pieces.h"
#include "api_shape.h"
#include "ggl/internal/show.h"

/* A request's body, for these endpoints. */
typedef struct text_request {
    llm_json *doc;
    const json_value *content, *add_special, *parse_special, *with_pieces, *tokens;
} text_request;

#define AT(member) offsetof(text_request, member)

static ggl_status read_request(server *s, text_request *t, const http_request *q,
                               const shape_row *rows, http_reply *r, ggl_error *err) {
    ignored_fields ignored = {.strict = server_get_facts(s)->strict_fields};
    llm_json *doc = NULL;
    ggl_status st = llm_json_parse(&doc, q->body.s, q->body.n, "request", err);
    if (st == GGL_OK)
        st = read_shape(t, sizeof *t, &ignored, &doc->root, rows, err);
    t->doc = doc;
    server_say_ignored(s, &ignored, q, r);
    return st;
}

static void end(text_request *t, ggl_status st, const ggl_error *err, llm_json_out *out,
                const http_request *q, http_reply *r) {
    if (st == GGL_OK) {
        admin_send(out, q, r);
    } else {
        ggl_free(out->s);
        answer_failed(request_errors(q), st, err, NULL, r);
    }
    llm_json_free(t->doc);
}

/* --- /tokenize -------------------------------------------------------------------------------- */

/* Returns the id that a number is; -1 if it is no id. */
static int32_t id_of(const json_value *v, int64_t n_vocab) {
    const bool is_id =
        v->kind == JSON_NUMBER && v->whole && v->number >= 0 && v->number < (double)n_vocab;
    return is_id ? (int32_t)v->number : -1;
}

static ggl_status add_text(const server *s, const json_value *v, unsigned flags, llm_tokens *ids,
                           ggl_error *err) {
    return llm_tokenize(server_tokenizer(s), v->s, v->n, flags, ids, err);
}

static ggl_status not_an_id(const server *s, const char *list, const char *what, uint32_t i,
                            const json_value *v, ggl_error *err) {
    char name[40], wanted[80];
    snprintf(name, sizeof name, "%s[%u]", list, (unsigned)i);
    snprintf(wanted, sizeof wanted, "%s from 0 to %lld", what,
             (long long)server_get_facts(s)->n_vocab - 1);
    return field_wrong(err, name, v, wanted);
}

/* Tokenizes a text, or a list of texts and ids. Special tokens are put before the first text only. */
static ggl_status tokenize(const server *s, const text_request *t, llm_tokens *ids,
                           ggl_error *err) {
    const bool adds = json_is_true(t->add_special);
    const bool parses = !t->parse_special || t->parse_special->flag;
    unsigned flags = (adds ? LLM_TOKENIZE_BOS : 0u) | (parses ? LLM_TOKENIZE_SPECIAL : 0u);
    if (t->content->kind == JSON_STRING)
        return add_text(s, t->content, flags, ids, err);
    ggl_status st = GGL_OK;
    for (uint32_t i = 0; i < t->content->n && st == GGL_OK; i++) {
        const json_value *v = &t->content->item[i];
        const int32_t id = id_of(v, server_get_facts(s)->n_vocab);
        if (v->kind == JSON_STRING)
            st = add_text(s, v, flags, ids, err);
        else if (id < 0)
            st = not_an_id(s, "content", "a text or a token's id", i, v, err);
        else if (!ggl_grow(&ids->id, &ids->cap, ids->n + 1, sizeof *ids->id))
            st = ggl_fail(err, GGL_NOMEM, "out of memory");
        else
            ids->id[ids->n++] = id;
        flags &= ~(unsigned)LLM_TOKENIZE_BOS;
    }
    return st;
}

/* Writes a token's text, or a list of its bytes if it is no UTF-8 by itself. */
static void put_piece(llm_json_out *out, ggl_str text) {
    if (ggl_utf8_is_valid(text.s, text.n))
        llm_json_put_string(out, text);
    else
        put_bytes(out, text);
}

static void put_ids(llm_json_out *out, const server *s, const llm_tokens *ids, bool with_pieces) {
    llm_json_put_text(out, "{\"tokens\": [");
    for (size_t i = 0; i < ids->n; i++) {
        llm_json_format(out, with_pieces ? "%s{\"id\": %d, \"piece\": " : "%s%d", i ? ", " : "",
                        ids->id[i]);
        if (!with_pieces)
            continue;
        put_piece(out, llm_token_text(server_tokenizer(s), ids->id[i], true));
        llm_json_put_text(out, "}");
    }
    llm_json_put_text(out, "]}");
}

void admin_tokenize(server *s, const http_request *q, http_reply *r) {
    static const shape_row rows[] = {
        {"content", SHAPE_STRING | SHAPE_LIST | SHAPE_REQUIRED, AT(content), NULL},
        {"add_special", SHAPE_BOOL, AT(add_special), NULL},
        {"parse_special", SHAPE_BOOL, AT(parse_special), NULL},
        {"with_pieces", SHAPE_BOOL, AT(with_pieces), NULL},
        {"model", SHAPE_STRING | SHAPE_IGNORED, 0, NULL},
        {0}};
    text_request t = {0};
    llm_tokens ids = {0};
    llm_json_out out = {0};
    ggl_error err = {0};
    ggl_status st = read_request(s, &t, q, rows, r, &err);
    if (st == GGL_OK)
        st = tokenize(s, &t, &ids, &err);
    if (st == GGL_OK)
        put_ids(&out, s, &ids, json_is_true(t.with_pieces));
    llm_tokens_fini(&ids);
    end(&t, st, &err, &out, q, r);
}

/* --- /detokenize ------------------------------------------------------------------------------ */

static ggl_status detokenize(const server *s, const json_value *list, llm_json_out *out,
                             ggl_error *err) {
    int32_t *id = ggl_calloc(list->n, sizeof *id);
    ggl_status st = id ? GGL_OK : ggl_fail(err, GGL_NOMEM, "out of memory");
    for (uint32_t i = 0; i < list->n && st == GGL_OK; i++) {
        id[i] = id_of(&list->item[i], server_get_facts(s)->n_vocab);
        if (id[i] < 0)
            st = not_an_id(s, "tokens", "a token's id", i, &list->item[i], err);
    }
    char *text = NULL;
    size_t n = 0;
    if (st == GGL_OK)
        st = llm_detokenize(server_tokenizer(s), id, list->n, true, &text, &n, err);
    if (st == GGL_OK) {
        llm_json_put_text(out, "{\"content\": ");
        llm_json_put_string(out, (ggl_str){text, n});
        llm_json_put_text(out, "}");
    }
    ggl_free(text);
    ggl_free(id);
    return st;
}

void admin_detokenize(server *s, const http_request *q, http_reply *r) {
    static const shape_row rows[] = {{"tokens", SHAPE_LIST | SHAPE_REQUIRED, AT(tokens), NULL},
                                     {"model", SHAPE_STRING | SHAPE_IGNORED, 0, NULL},
                                     {0}};
    text_request t = {0};
    llm_json_out out = {0};
    ggl_error err = {0};
    ggl_status st = read_request(s, &t, q, rows, r, &err);
    if (st == GGL_OK)
        st = detokenize(s, t.tokens, &out, &err);
    end(&t, st, &err, &out, q, r);
}

/* --- /apply-template -------------------------------------------------------------------------- */

/* The token that the tokenizer puts before texts. /completion adds it to the prompt, so
 * /apply-template leaves it out of its result. */
static ggl_str first_token(const server *s) {
    const llm_tokenizer *t = server_tokenizer(s);
    llm_tokens ids = {0};
    const bool adds = llm_tokenize(t, "", 0, LLM_TOKENIZE_BOS, &ids, NULL) == GGL_OK && ids.n > 0 &&
                      ids.id[0] == llm_tokenizer_bos(t);
    llm_tokens_fini(&ids);
    return adds ? llm_token_text(t, llm_tokenizer_bos(t), true) : (ggl_str){"", 0};
}

static ggl_status apply(server *s, ask *a, const http_request *q, http_reply *r, const char **param,
                        llm_json_out *out, ggl_error *err) {
    job_prompt prompt = {0};
    ggl_status st = llm_json_parse(&a->doc, q->body.s, q->body.n, "request", err);
    if (st == GGL_OK)
        st = api_openai_chat.read(a, server_get_facts(s), param, err);
    if (st == GGL_OK)
        st = answer_chat_prompt(s, a, &prompt, param, err);
    if (st == GGL_OK) {
        const ggl_str bos = first_token(s);
        ggl_str text = prompt.text;
        if (bos.n > 0 && text.n >= bos.n && memcmp(text.s, bos.s, bos.n) == 0)
            text = (ggl_str){text.s + bos.n, text.n - bos.n};
        llm_json_format(out, "{'prompt': %.*s}", LLM_JSON_STR(text));
        answer_say_notes(s, a, &prompt.changes, r);
    }
    llm_tokens_fini(&prompt.ids);
    ggl_free(prompt.owned);
    return st;
}

/* The body is that of a chat; the answer is the prompt that it would become. */
void admin_apply_template(server *s, const http_request *q, http_reply *r) {
    llm_json_out out = {0};
    ggl_error err = {0};
    const char *param = NULL;
    ask *a = answer_new_ask(s, q);
    const ggl_status st =
        a ? apply(s, a, q, r, &param, &out, &err) : ggl_fail(&err, GGL_NOMEM, "out of memory");
    if (a)
        server_say_ignored(s, &a->ignored, q, r);
    if (st == GGL_OK) {
        admin_send(&out, q, r);
    } else {
        ggl_free(out.s);
        answer_failed(request_errors(q), st, &err, param, r);
    }
    ask_free(a);
}

/* --- X-Prefix --------------------------------------------------------------------------------- */

/* POST /prefix: what the header of the answer to this body would be, at the path of ?path=. */
void admin_prefix(server *s, const dialect *d, const http_request *q, http_reply *r) {
    const char *path = q->parameter(q, "path"), *param = NULL;
    ask *a = answer_new_ask(s, q);
    ggl_error err = {0};
    char prefix[ANSWER_PREFIX] = "", text[60];
    ggl_status st = a ? GGL_OK : ggl_fail(&err, GGL_NOMEM, "out of memory for a request");
    if (st == GGL_OK && !d) {
        param = "path";
        st = ggl_fail(&err, GGL_USAGE, "?path= must be that of an API for answers, not %.100s",
                      path);
    }
    if (st == GGL_OK)
        st = llm_json_parse(&a->doc, q->body.s, q->body.n, "request", &err);
    if (st == GGL_OK)
        st = d->read(a, server_get_facts(s), &param, &err);
    if (st == GGL_OK && !answer_prefix(a, prefix))
        st =
            ggl_fail(&err, GGL_USAGE, "the request has no beginning that could be computed before");
    if (st == GGL_OK) {
        const int n = snprintf(text, sizeof text, "{\"prefix\": \"%s\"}", prefix);
        http_reply_header(r, "X-Prefix", prefix);
        http_reply_begin(r, 200, "application/json", false);
        http_reply_write(r, text, (size_t)n);
        http_reply_end(r);
    } else {
        server_count(s, COUNT_ERRORS);
        answer_unread(d ? d : request_errors(q), a, st, &err, param, r);
    }
    ask_free(a);
}
