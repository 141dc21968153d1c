#include "asking.h"

#include <string.h>

#include "common/json_write.h"
#include "ggl/internal/alloc.h"
#include "ggl/internal/pass.h"
#include "ggl/internal/text.h"
#include "llm/internal/template.h"
#include "speech/speech_tokens.h"

/* --- texts ------------------------------------------------------------------------------------ */

static void put_variable(llm_json_out *out, const char *name, const char *value) {
    if (value && *value)
        llm_json_format(out, ", '%s': %.*s", name, LLM_JSON_TEXT(value));
}

/* Renders a text of the section; NULL: it has none, and *text is empty. *text is to be freed. */
static ggl_status render(const asking *a, const char *from, char **text, size_t *n,
                         ggl_error *err) {
    llm_template *t = NULL;
    llm_json_out vars = {0};
    const char *language = a->wishes.language;
    *text = NULL;
    *n = 0;
    ggl_status st =
        llm_template_new(&t, from ? from : "", from ? strlen(from) : 0, "the speech section", err);
    llm_json_format(&vars, "{'task': '%s', 'sound': %.*s",
                    a->wishes.translate ? "translate" : "transcribe", LLM_JSON_TEXT(a->mark));
    put_variable(&vars, "language", language);
    put_variable(&vars, "language_name", language ? llm_speech_language_name(language) : NULL);
    put_variable(&vars, "prompt", a->wishes.prompt);
    llm_json_put_text(&vars, "}");
    const ggl_str all[] = {{vars.s, vars.n}};
    const llm_template_params p = {
        .size = sizeof p, .vars = all, .n_vars = 1, .refuses_bare = true};
    if (st == GGL_OK && vars.failed)
        st = ggl_fail(err, GGL_NOMEM, "out of memory for a prompt");
    if (st == GGL_OK)
        st = llm_template_render(t, &p, text, n, err);
    ggl_free(vars.s);
    llm_template_free(t);
    return st;
}

/* --- the section ------------------------------------------------------------------------------ */

/* True if each of the section's tokens is one of the model's. */
static bool has_tokens(const llm_tokenizer *t, const llm_arch_speech *s) {
    bool all = true;
    for (int k = 0; k < s->n_token && all; k++) {
        llm_tokens ids = {0};
        ggl_error unread;
        all = llm_tokenize(t, s->token[k], strlen(s->token[k]), LLM_TOKENIZE_SPECIAL, &ids,
                           &unread) == GGL_OK &&
              ids.n == 1;
        llm_tokens_fini(&ids);
    }
    return all;
}

/* True if a text of the section has the variable. */
static bool mentions(const llm_arch_speech *s, const char *variable) {
    const char *const text[] = {s->prompt, s->system, s->user, s->answer};
    bool any = false;
    for (size_t k = 0; k < sizeof text / sizeof *text && !any; k++) {
        llm_template *t = NULL;
        ggl_error unread;
        any = text[k] &&
              llm_template_new(&t, text[k], strlen(text[k]), "the speech section", &unread) ==
                  GGL_OK &&
              llm_template_mentions(t, variable);
        llm_template_free(t);
    }
    return any;
}

bool llm_asking_tells_language(const asking *a) {
    return mentions(a->how, "language") || mentions(a->how, "language_name");
}

/* Sets *fits if the section has a text for what is asked. */
static ggl_status try_section(asking *a, bool *fits, ggl_error *err) {
    char *text = NULL;
    size_t n = 0;
    *fits = false;
    if (!has_tokens(a->c->tokenizer, a->how))
        return GGL_OK;
    const ggl_status st = render(a, a->how->prompt ? a->how->prompt : a->how->user, &text, &n, err);
    *fits = n > 0;
    ggl_free(text);
    return st;
}

ggl_status llm_asking_open(asking *a, llm_context *c, const llm_eye *ear,
                           const asking_wishes *wishes, ggl_error *err) {
    const llm_arch *arch = llm_model_arch(ear->model);
    ggl_status st = GGL_OK;
    bool fits = false;
    *a = (asking){.c = c, .how = llm_arch_speech_first(arch), .wishes = *wishes, .mark = "sound"};
    while (st == GGL_OK && a->how) {
        st = try_section(a, &fits, err);
        if (st != GGL_OK || fits)
            break;
        a->how = llm_arch_speech_next(arch, a->how);
    }
    if (st == GGL_OK && !a->how)
        st = ggl_fail(err, GGL_UNSUPPORTED,
                      "%s does not say how the model is asked to write down what is said",
                      llm_arch_name(arch));
    if (st == GGL_OK && wishes->prompt && *wishes->prompt && !mentions(a->how, "prompt"))
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "the model takes no prompt when it writes down what is said (%s)",
                        llm_arch_name(arch));
    return st;
}

/* --- the prompt ------------------------------------------------------------------------------- */

static bool find_mark(void *ctx, const char *text, size_t n, size_t *at, size_t *size) {
    const asking *a = ctx;
    *size = strlen(a->mark);
    const char *found = ggl_find_bytes(text + *at, n - *at, a->mark, *size);
    *at = found ? (size_t)(found - text) : *at;
    return found != NULL;
}

static ggl_status append_sound(void *ctx, const llm_tokenizer *t, const char *mark, llm_tokens *ids,
                               ggl_error *err) {
    asking *a = ctx;
    const llm_marks *marks = llm_eye_marks(a->c->eye);
    a->n_marks++;
    return marks->append(marks->ctx, t, mark, ids, err);
}

/* Appends the tokens of a text in which the mark stands for the sound, and for nothing else that a text may name. */
static ggl_status tokenize(asking *a, const llm_spans *given, const char *text, size_t n,
                           unsigned flags, llm_tokens *ids, ggl_error *err) {
    const llm_marks marks = {.find = find_mark, .append = append_sound, .ctx = a};
    return llm_tokenize_marked(a->c->tokenizer, &marks, given, text, n, flags, ids, err);
}

static ggl_status add_message(const asking *a, llm_talk *talk, const char *role, const char *from,
                              ggl_error *err) {
    char *text = NULL;
    size_t n = 0;
    ggl_status st = render(a, from, &text, &n, err);
    if (st == GGL_OK && n > 0)
        st = llm_talk_add(talk, role, (ggl_str){text, n}, err);
    ggl_free(text);
    return st;
}

static ggl_status chat_prompt(asking *a, llm_tokens *ids, ggl_error *err) {
    static const char plain[] = "{\"enable_thinking\": false}";
    llm_talk *talk = NULL;
    llm_chat_made made = {0};
    char *text = NULL;
    size_t n = 0;
    if (!a->c->chat)
        return ggl_within(err, ggl_pass(err, &a->c->why_no_chat),
                          "the model is asked in a conversation to write down what is said");
    const llm_chat_params p = {.end = LLM_CHAT_ASKS, .made = &made};
    ggl_status st = llm_talk_new(&talk, err);
    if (st == GGL_OK)
        st = llm_talk_set(talk, (ggl_str){plain, sizeof plain - 1}, "the speech section", err);
    if (st == GGL_OK)
        st = add_message(a, talk, "system", a->how->system, err);
    if (st == GGL_OK)
        st = add_message(a, talk, "user", a->how->user, err);
    if (st == GGL_OK)
        st = llm_chat_prompt(a->c->chat, talk, &p, &text, &n, err);
    if (st == GGL_OK)
        st = tokenize(a, &made.given, text, n, LLM_TOKENIZE_SPECIAL, ids, err);
    ggl_free(text);
    llm_chat_made_fini(&made);
    llm_talk_free(talk);
    return st;
}

static ggl_status whole_prompt(asking *a, llm_tokens *ids, ggl_error *err) {
    char *text = NULL;
    size_t n = 0;
    ggl_status st = render(a, a->how->prompt, &text, &n, err);
    if (st == GGL_OK)
        st = tokenize(a, NULL, text, n, LLM_TOKENIZE_BOS | LLM_TOKENIZE_SPECIAL, ids, err);
    ggl_free(text);
    return st;
}

ggl_status llm_asking_prompt(asking *a, const char *mark, llm_tokens *ids, ggl_error *err) {
    char *text = NULL;
    size_t n = 0;
    a->mark = mark;
    a->n_marks = 0;
    ids->n = 0;
    ggl_status st = a->how->prompt ? whole_prompt(a, ids, err) : chat_prompt(a, ids, err);
    if (st == GGL_OK && a->n_marks != 1)
        st = ggl_fail(err, GGL_UNSUPPORTED, "%s shows the sound %d times, and not once",
                      a->how->prompt ? "the speech section" : "the chat template", a->n_marks);
    if (st == GGL_OK)
        st = render(a, a->how->answer, &text, &n, err);
    if (st == GGL_OK)
        st = llm_tokenize(a->c->tokenizer, text, n, LLM_TOKENIZE_SPECIAL, ids, err);
    ggl_free(text);
    return st;
}

/* --- the answer ------------------------------------------------------------------------------- */

static bool is_space(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static void trim(const char **s, size_t *n) {
    while (*n > 0 && is_space((*s)[*n - 1]))
        --*n;
    for (; *n > 0 && is_space(**s); ++*s)
        --*n;
}

/* Reads what comes before the text: the line with the language's name. */
static const char *language_in(const llm_arch_speech *how, const char *s, size_t n) {
    const char *at = how->names ? ggl_find_bytes(s, n, how->names, strlen(how->names)) : NULL;
    if (!at)
        return NULL;
    at += strlen(how->names);
    size_t n_name = 0;
    while (at + n_name < s + n && at[n_name] != '\n')
        n_name++;
    trim(&at, &n_name);
    return llm_speech_code_of(at, n_name);
}

/* Leaves out a sentence around what is said: `"..".` */
static void strip_sentence(const llm_arch_speech *how, const char **s, size_t *n) {
    for (int k = 0; k < how->n_before; k++) {
        const size_t n_before = strlen(how->before[k]);
        if (*n < n_before || memcmp(*s, how->before[k], n_before) != 0)
            continue;
        *s += n_before;
        *n -= n_before;
        trim(s, n);
        if (*n > 0 && (*s)[*n - 1] == '.')
            --*n;
        trim(s, n);
        if (*n >= 2 && (**s == '"' || **s == '\'') && (*s)[*n - 1] == **s) {
            ++*s;
            *n -= 2;
        }
        return;
    }
}

bool llm_asking_is_plain(const asking *a) {
    return !a->how->after && a->how->n_before == 0;
}

void llm_asking_read(const asking *a, const char *answer, size_t n, const char **text,
                     size_t *n_text, const char **code) {
    const llm_arch_speech *how = a->how;
    const char *after =
        how->after ? ggl_find_bytes(answer, n, how->after, strlen(how->after)) : NULL;
    *code = NULL;
    *text = answer;
    *n_text = n;
    if (after) {
        *code = language_in(how, answer, (size_t)(after - answer));
        *text = after + strlen(how->after);
        *n_text = n - (size_t)(*text - answer);
    }
    trim(text, n_text);
    strip_sentence(how, text, n_text);
    trim(text, n_text);
}
