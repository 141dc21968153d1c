#include "llm/internal/chat.h"

#include <stdio.h>
#include <string.h>

#include "ggl/internal/nearest.h"
#include "ggl/internal/text.h"
#include "deferred.h"
#include "run.h"
#include "talk_impl.h"
#include "wants.h"
#include "whole_tools.h"

/* The tokens that are variables, with the keys of their ids. */
static const struct token_key {
    const char *variable, *key;
} token_keys[] = {
    {"bos_token", "tokenizer.ggml.bos_token_id"},
    {"eos_token", "tokenizer.ggml.eos_token_id"},
    {"unk_token", "tokenizer.ggml.unknown_token_id"},
    {"pad_token", "tokenizer.ggml.padding_token_id"},
    {"sep_token", "tokenizer.ggml.seperator_token_id"},
    {"cls_token", "tokenizer.ggml.cls_token_id"},
    {"mask_token", "tokenizer.ggml.mask_token_id"},
};

enum { N_TOKENS = sizeof token_keys / sizeof *token_keys };

struct llm_chat {
    llm_template *template_;
    ggl_arena arena; /* texts of tokens, of the template, and of variables */
    ggl_str text;
    ggl_str bos;    /* that the file puts before texts; empty: none */
    bool omits_bos; /* the template does not write it */
    bool leaves_bos_out;
    bool parses_special; /* also what messages have of control tokens */
    llm_json **doc;      /* [n_docs]: set by llm_chat_set */
    size_t n_docs, cap_docs;
    struct {
        const char *name;
        ggl_str text;
    } token[N_TOKENS];
    size_t n_tokens;
    ggl_str format; /* of answers: llm_calls_format */
    llm_wants wants;
};

static ggl_status no_memory(ggl_error *err) {
    return ggl_fail(err, GGL_NOMEM, "out of memory for a chat template");
}

/* --- rendering ---------------------------------------------------------------------------------- */

/* A conversation that is rendered. */
typedef struct rendering {
    const llm_chat *c;
    llm_wanted x;
    const llm_wants *wants;
    bool
        is_probe; /* a small conversation of llm_wants_shows: tokens that the file lacks are empty */
    llm_spans *given; /* NULL: nobody asks */
    size_t failed;    /* the message that the loop in progress was at; SIZE_MAX: none */
} rendering;

static void set_bool(run *r, const char *name, bool value) {
    llm_run_set_global(r, (ggl_str){name, strlen(name)}, tv_bool(value));
}

/* Sets the template's variables: those of all conversations first. */
static void set_variables(run *r, void *ctx) {
    static const ggl_str tools = {"tools", 5};
    rendering *w = ctx;
    const json_value *value;
    ggl_str name;
    for (size_t i = 0; i < N_TOKENS && w->is_probe; i++)
        llm_run_set_global(r, (ggl_str){token_keys[i].variable, strlen(token_keys[i].variable)},
                           tv_str((ggl_str){"", 0}));
    for (size_t i = 0; i < w->c->n_tokens; i++)
        llm_run_set_global(r, (ggl_str){w->c->token[i].name, strlen(w->c->token[i].name)},
                           tv_str(w->c->token[i].text));
    llm_run_set_global(r, tools, tv_none());
    llm_run_set_global(r, (ggl_str){"documents", 9}, tv_none());
    set_bool(r, "add_generation_prompt", false);
    set_bool(r, "enable_thinking", true);
    for (size_t k = 0; k < w->c->n_docs; k++)
        llm_run_set_json(r, &w->c->doc[k]->root);
    for (size_t k = 0; (name = llm_talk_variable(w->x.talk, k, &value)).s; k++) {
        if (ggl_str_is(name, "tools")) {
            if (!w->x.tools)
                continue;
            value = w->x.tools;
        }
        if (ggl_str_is(name, "tools") || ggl_str_is(name, "documents") ||
            ggl_str_is(name, "functions"))
            llm_tv_give_json(&r->h, value);
        llm_run_set_value(r, name, value);
    }
    const json_value *asked = llm_talk_get(w->x.talk, "reasoning_effort");
    const char *effort = asked ? llm_wants_effort(w->wants, asked) : NULL;
    if (effort)
        llm_run_set_global(r, (ggl_str){"reasoning_effort", 16},
                           tv_str((ggl_str){effort, strlen(effort)}));
    if (w->x.p->end != LLM_CHAT_AS_SAID)
        set_bool(r, "add_generation_prompt", w->x.p->end == LLM_CHAT_ASKS);
    if (llm_json_is(llm_talk_get(w->x.talk, "tool_choice"), "none"))
        llm_run_set_global(r, tools, tv_none());
    const tv messages = llm_wants_messages(&r->h, w->wants, &w->x);
    w->x.changes.effort = effort;
    w->x.changes.effort_asked = effort ? llm_chat_effort(asked) : NULL;
    llm_run_set_global(r, (ggl_str){"messages", 8}, messages);
}

/* Finds the message that an error is about: the one at which a loop, the innermost first, was. */
static void find_failed(const run *r, void *ctx) {
    rendering *w = ctx;
    for (const tv_loop *l = r->looping; l && w->failed == SIZE_MAX; l = l->outer)
        for (size_t k = 0; l->i < l->list->n && k < w->x.n_shown; k++)
            if (l->list->at[l->i].kind == TV_DICT && l->list->at[l->i].dict == w->x.shown[k].value)
                w->failed = w->x.shown[k].at;
}

/* True for an answer in which nothing was said, as clients send of one that was stopped at once. */
static bool is_empty(const llm_talk_message *m) {
    return ggl_str_is(m->role, "assistant") && m->content.n == 0 && m->reasoning.n == 0 &&
           m->n_calls == 0;
}

/* The first message that is empty; SIZE_MAX: none. */
static size_t find_empty(const rendering *w) {
    const size_t all = llm_talk_n(w->x.talk),
                 n = w->x.p->n > 0 && w->x.p->n < all ? w->x.p->n : all;
    for (size_t i = 0; i < n; i++)
        if (is_empty(llm_talk_at(w->x.talk, i)))
            return i;
    return SIZE_MAX;
}

/* Names the message that an error is about. */
static ggl_status within_message(const rendering *w, size_t i, ggl_status st, ggl_error *err) {
    return is_empty(llm_talk_at(w->x.talk, i))
               ? ggl_within(
                     err, st,
                     "messages[%zu] (assistant): it is empty, without content, reasoning and "
                     "calls",
                     i)
               : ggl_within(err, st, "messages[%zu]", i);
}

static ggl_status render(const llm_chat *c, rendering *w, size_t max_steps, size_t max_memory,
                         char **text, size_t *size, ggl_error *err) {
    const llm_tn_rendering how = {.set = set_variables,
                                  .failed = find_failed,
                                  .ctx = w,
                                  .given = w->given,
                                  .max_steps = max_steps,
                                  .max_memory = max_memory};
    *text = NULL;
    *size = 0;
    w->failed = SIZE_MAX;
    const json_value *tools = w->x.tools;
    ggl_arena arena = {0};
    ggl_status st = llm_tools_whole(&w->x.tools, tools, w->wants->tool_members, &arena, err);
    if (st == GGL_OK)
        st = llm_tn_render(c->template_, &how, text, size, err);
    w->x.tools = tools;
    ggl_arena_fini(&arena);
    if ((st == GGL_USAGE || st == GGL_FORMAT) && w->failed != SIZE_MAX)
        (void)within_message(w, w->failed, st, err);
    return st;
}

/* True if the words, with a space between two, are there in this order. */
static bool has_words(const char *text, size_t n, const char *words) {
    const char *end = text + n;
    for (size_t size; *words; words += size + (words[size] == ' ')) {
        size = strcspn(words, " ");
        const char *at = ggl_find_bytes(text, (size_t)(end - text), words, size);
        if (!at)
            return false;
        text = at + size;
    }
    return true;
}

/* llm_wants_shows, of small conversations, which must not take the time of large ones, whatever a file's template does with them. */
static ggl_status shows(void *ctx, const llm_wants *wants, const char *json, const char *words,
                        bool *shown, ggl_error *err) {
    enum { MOST_STEPS = 2000000, MOST_MEMORY = 32 << 20 };
    static const llm_chat_params usual;
    rendering w = {.c = ctx, .x.p = &usual, .wants = wants, .is_probe = true};
    llm_talk *talk = NULL;
    char *text = NULL;
    size_t n = 0;
    ggl_status st = llm_talk_read(&talk, (ggl_str){json, strlen(json)}, NULL, NULL, err);
    w.x.talk = talk;
    w.x.tools = talk ? llm_talk_get(talk, "tools") : NULL;
    if (st == GGL_OK)
        st = render(w.c, &w, MOST_STEPS, MOST_MEMORY, &text, &n, NULL);
    *shown = st == GGL_OK && has_words(text, n, words);
    ggl_free(text);
    llm_talk_free(talk);
    return st == GGL_NOMEM ? no_memory(err) : GGL_OK;
}

/* --- opening ------------------------------------------------------------------------------------ */

/* Notes the texts of the file's special tokens. */
static ggl_status read_tokens(llm_chat *c, const ggl_gguf *file, const llm_tokenizer *t,
                              ggl_error *err) {
    for (int i = 0; i < N_TOKENS && file && t; i++) {
        int64_t id;
        ggl_error none = {0};
        if (ggl_gguf_get_integer(file, token_keys[i].key, &id, &none) <= 0 || id < 0 ||
            id >= llm_tokenizer_n_vocab(t))
            continue;
        const ggl_str s = llm_token_text(t, (int32_t)id, true);
        char *copy = ggl_arena_strndup(&c->arena, s.s, s.n);
        if (!copy)
            return no_memory(err);
        c->token[c->n_tokens].name = token_keys[i].variable;
        c->token[c->n_tokens++].text = (ggl_str){copy, s.n};
    }
    return GGL_OK;
}

/* Notes the text of the token that the tokenizer puts before texts. */
static ggl_status read_bos(llm_chat *c, const llm_tokenizer *t, ggl_error *err) {
    llm_tokens ids = {0};
    if (!t)
        return GGL_OK;
    ggl_status st = llm_tokenize(t, "", 0, LLM_TOKENIZE_BOS, &ids, err);
    if (st == GGL_OK && ids.n > 0 && ids.id[0] == llm_tokenizer_bos(t)) {
        const ggl_str s = llm_token_text(t, ids.id[0], true);
        c->bos = (ggl_str){ggl_arena_strndup(&c->arena, s.s, s.n), s.n};
        if (!c->bos.s)
            st = no_memory(err);
    }
    llm_tokens_fini(&ids);
    return st;
}

/* Finds out by a small conversation whether the template writes the token. */
static ggl_status check_bos(llm_chat *c, ggl_error *err) {
    llm_talk *talk = NULL;
    char *text = NULL;
    size_t n = 0;
    if (c->bos.n == 0)
        return GGL_OK;
    c->leaves_bos_out = true;
    ggl_status st = llm_talk_new(&talk, err);
    if (st == GGL_OK)
        st = llm_talk_add(talk, "user", (ggl_str){"a", 1}, err);
    if (st == GGL_OK)
        st = llm_chat_prompt(c, talk, NULL, &text, &n, NULL);
    c->leaves_bos_out = false;
    c->omits_bos = st == GGL_OK && (n < c->bos.n || memcmp(text, c->bos.s, c->bos.n) != 0);
    ggl_free(text);
    llm_talk_free(talk);
    return st == GGL_NOMEM ? no_memory(err) : GGL_OK;
}

ggl_str llm_chat_added_bos(const llm_chat *c) {
    return c->omits_bos && !c->leaves_bos_out ? c->bos : (ggl_str){"", 0};
}

void llm_chat_leave_bos_out(llm_chat *c, bool leave) {
    c->leaves_bos_out = leave;
}

ggl_status llm_chat_set(llm_chat *c, ggl_str vars, const char *name, ggl_error *err) {
    llm_json *doc = NULL;
    const char *copy = ggl_arena_strndup(&c->arena, vars.s, vars.n);
    ggl_status st = copy ? llm_json_parse(&doc, copy, vars.n, name, err) : no_memory(err);
    if (st == GGL_OK && doc->root.kind != JSON_OBJECT)
        st = ggl_fail(err, GGL_FORMAT, "%s: a JSON object is expected: {\"NAME\": VALUE}", name);
    if (st == GGL_OK && !ggl_grow(&c->doc, &c->cap_docs, c->n_docs + 1, sizeof(llm_json *)))
        st = no_memory(err);
    if (st == GGL_OK)
        c->doc[c->n_docs++] = doc;
    else
        llm_json_free(doc);
    return st;
}

/* Finds a built-in template. */
static bool find_named(const char *name, ggl_str *text) {
    ggl_str own;
    for (int k = 0; llm_chat_named(k, &own, text); k++)
        if (ggl_str_is(own, name))
            return true;
    return false;
}

/* A file's template of that name is not there, and no built-in one. */
static ggl_status no_such_name(const char *name, ggl_error *err) {
    char names[1024] = "";
    ggl_str own, text;
    ggl_nearest near = ggl_nearest_to(name);
    size_t n_best = 0;
    for (int k = 0; llm_chat_named(k, &own, &text); k++) {
        const size_t at = strlen(names);
        ggl_nearest_try(&near, own.s, own.n);
        n_best = near.best == own.s ? own.n : n_best;
        snprintf(names + at, sizeof names - at, "%s%.*s", k ? ", " : "", (int)own.n, own.s);
    }
    if (strpbrk(name, " \n"))
        return ggl_fail(
            err, GGL_NOT_FOUND,
            "'%s' is no chat template: the text of one has {{ .. }} or {%% .. %%}; it may "
            "also be a file, or the name of a built-in one: %s",
            name, names);
    return ggl_fail(err, GGL_NOT_FOUND,
                    "there is no chat template '%s'%s%.*s%s: no file, none in the model "
                    "(tokenizer.chat_template.%s), and the built-in ones are %s",
                    name, near.best ? "; did you mean '" : "", (int)n_best,
                    near.best ? near.best : "", near.best ? "'?" : "", name, names);
}

/* Finds the template's text, and its name for messages. */
static ggl_status find_text(const ggl_gguf *file, const llm_chat_template *with, ggl_str *text,
                            char name[128], ggl_error *err) {
    static const char key[] = "tokenizer.chat_template";
    const bool named = with && !with->text.s;
    if (with && !named) {
        *text = with->text;
        snprintf(name, 128, "%s", with->name);
        return GGL_OK;
    }
    snprintf(name, 128, named ? "%s.%.90s" : "%s", key, named ? with->name : "");
    ggl_error own = {0};
    err = err ? err : &own;
    int found = file ? ggl_gguf_get_string(file, name, text, err) : 0;
    if (found < 0)
        return err->status;
    if (!found && named && find_named(with->name, text)) {
        snprintf(name, 128, "%.100s", with->name);
        return GGL_OK;
    }
    return found   ? GGL_OK
           : named ? no_such_name(with->name, err)
                   : ggl_fail(err, GGL_NOT_FOUND, "the file has no chat template (%s)", name);
}

/* Variables that some templates read without asking whether they are defined: Firefunction's publisher gives it the tools
 * as JSON, and the date. They are set in front of the template's text, in its first line, so that messages about lines stay
 * true. */
static const struct {
    const char *variable, *asks, *sets;
} computed[] = {
    {"functions", "functions is",
     "{%- if functions is not defined -%}{%- set functions = tools|tojson(indent=4) if tools else "
     "'' "
     "-%}{%- endif -%}"},
    {"datetime", "datetime is",
     "{%- if datetime is not defined -%}{%- set datetime = strftime_now('%b %d %Y') -%}{%- endif "
     "-%}"},
};

enum { N_COMPUTED = sizeof computed / sizeof *computed };

static ggl_status parse(llm_chat *c, ggl_str text, const char *name, ggl_error *err) {
    char before[512] = "";
    ggl_status st = llm_template_new(&c->template_, text.s, text.n, name, err);
    for (int i = 0; st == GGL_OK && i < N_COMPUTED; i++)
        if (llm_template_mentions(c->template_, computed[i].variable) &&
            !ggl_find_bytes(text.s, text.n, computed[i].asks, strlen(computed[i].asks)))
            strcat(before, computed[i].sets);
    if (st != GGL_OK || !before[0])
        return st;
    const size_t n = strlen(before);
    char *whole = ggl_arena_alloc(&c->arena, n + text.n + 1, 1);
    if (!whole)
        return no_memory(err);
    memcpy(whole, before, n);
    memcpy(whole + n, text.s, text.n); /* which may have bytes that are 0 */
    whole[n + text.n] = '\0';
    llm_template_free(c->template_);
    return llm_template_new(&c->template_, whole, n + text.n, name, err);
}

ggl_status llm_chat_new(llm_chat **out, const ggl_gguf *file, const llm_tokenizer *t,
                        const llm_chat_template *with, ggl_error *err) {
    ggl_str text;
    char name[128];
    *out = NULL;
    ggl_status st = find_text(file, with, &text, name, err);
    if (st != GGL_OK)
        return st;
    llm_chat *c = ggl_calloc(1, sizeof *c);
    if (!c)
        return no_memory(err);
    st = parse(c, text, name, err);
    c->text = (ggl_str){ggl_arena_strndup(&c->arena, text.s, text.n), text.n};
    if (st == GGL_OK && !c->text.s)
        st = no_memory(err);
    if (st == GGL_OK)
        st = read_tokens(c, file, t, err);
    if (st == GGL_OK)
        st = read_bos(c, t, err);
    if (st == GGL_OK) {
        c->format = llm_calls_format(c->text);
        st = llm_wants_find(&c->wants, c->template_, c->text, shows, c, err);
    }
    if (st == GGL_OK)
        st = check_bos(c, err);
    if (st != GGL_OK) {
        llm_chat_free(c);
        return st;
    }
    *out = c;
    return GGL_OK;
}

void llm_chat_free(llm_chat *c) {
    if (!c)
        return;
    llm_template_free(c->template_);
    for (size_t i = 0; i < c->n_docs; i++)
        llm_json_free(c->doc[i]);
    ggl_free(c->doc);
    ggl_arena_fini(&c->arena);
    ggl_free(c);
}

const llm_template *llm_chat_get_template(const llm_chat *c) {
    return c->template_;
}

ggl_str llm_chat_text(const llm_chat *c) {
    return c->text;
}

void llm_chat_parse_special(llm_chat *c, bool parse) {
    c->parses_special = parse;
}

bool llm_chat_has_short_ids(const llm_chat *c) {
    return c->wants.short_ids;
}

bool llm_chat_shows_tools(const llm_chat *c) {
    return c->wants.tools != WANTS_NO_TOOLS;
}

bool llm_chat_knows_role(const llm_chat *c, ggl_str role) {
    static const char *const known[] = {"system",    "developer", "user",
                                        "assistant", "tool",      "function"};
    for (size_t k = 0; k < sizeof known / sizeof *known; k++)
        if (ggl_str_is(role, known[k]))
            return true;
    const char *at = c->text.s, *end = c->text.s + c->text.n;
    while (role.n > 0 && (at = ggl_find_bytes(at, (size_t)(end - at), role.s, role.n)) != NULL) {
        const char *after = at + role.n;
        if (at > c->text.s && after < end && *after == at[-1] && (*after == '\'' || *after == '"'))
            return true;
        at++;
    }
    return false;
}

llm_calls_params llm_chat_answers(const llm_chat *c) {
    return (llm_calls_params){
        .size = sizeof(llm_calls_params), .format = c->format, .template_text = c->text};
}

/* --- prompts ------------------------------------------------------------------------------------ */

/* True for variables that conversations have whether or not their template reads them. */
static bool is_usual(ggl_str name) {
    static const char *const usual[] = {"messages", "tools", "documents", "add_generation_prompt",
                                        "now"};
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        if (ggl_str_is(name, usual[i]))
            return true;
    for (size_t i = 0; i < N_TOKENS; i++)
        if (ggl_str_is(name, token_keys[i].variable))
            return true;
    return false;
}

void llm_chat_unread(const llm_chat *c, const llm_talk *talk, void (*each)(void *arg, ggl_str name),
                     void *arg) {
    const json_value *value;
    ggl_str name;
    for (size_t k = 0; (name = llm_talk_variable(talk, k, &value)).s; k++)
        if (!is_usual(name) && llm_tn_find(c->template_, name) == SIZE_MAX)
            each(arg, name);
}

bool llm_chat_notes(const llm_chat_changes *c, const char *between, char text[LLM_CHAT_NOTES]) {
    static const struct {
        const char *one, *many; /* behind the number */
    } rows[LLM_CHAT_N_CHANGES] = {
        [LLM_CHAT_JOINED] = {"", "system messages at the beginning are one, because the chat "
                                 "template shows only one"},
        [LLM_CHAT_MOVED] = {"a system message stands in a message of another role, because the "
                            "chat template shows none there",
                            "system messages stand in messages of other roles, because the chat "
                            "template shows none there"},
        [LLM_CHAT_USERS] = {"two messages of the user are one, because the chat template takes no "
                            "two in a row",
                            "messages of the user are part of the ones before them, because the "
                            "chat template takes no two in a row"},
        [LLM_CHAT_CALLS] = {"a call of a tool is text, because the chat template shows none",
                            "calls of tools are text, because the chat template shows none"},
        [LLM_CHAT_RESULTS] = {"the result of a tool stands in a message of the user, because the "
                              "chat template shows none",
                              "results of tools stand in messages of the user, because the chat "
                              "template shows none"},
        [LLM_CHAT_NO_TOOLS] = {"the chat template shows no tools, so the model does not know them",
                               ""},
    };
    int n = 0;
    text[0] = '\0';
    for (size_t i = 0; i < LLM_CHAT_N_CHANGES; i++) {
        if (c->n[i] == 0)
            continue;
        n += snprintf(text + n, LLM_CHAT_NOTES - (size_t)n, "%s", n > 0 ? between : "");
        if (c->n[i] > 1)
            n += snprintf(text + n, LLM_CHAT_NOTES - (size_t)n, "%zu ", c->n[i]);
        n += snprintf(text + n, LLM_CHAT_NOTES - (size_t)n, "%s",
                      c->n[i] > 1 ? rows[i].many : rows[i].one);
    }
    if (c->effort)
        n += snprintf(text + n, LLM_CHAT_NOTES - (size_t)n,
                      "%sthe effort of reasoning is %s, because the chat template does not know %s",
                      n > 0 ? between : "", c->effort, c->effort_asked);
    return n > 0;
}

bool llm_chat_has_more(const llm_chat_changes *now, const llm_chat_changes *before) {
    bool any = now->effort && !before->effort;
    for (size_t i = 0; i < LLM_CHAT_N_CHANGES; i++)
        any |= now->n[i] > before->n[i];
    return any;
}

/* Puts the file's first token before a prompt without it. What stems from a message is none. given: NULL: that is not known. */
static ggl_status add_bos(const llm_chat *c, const llm_spans *given, char **text, size_t *n,
                          ggl_error *err) {
    const size_t n_bos = c->leaves_bos_out ? 0 : c->bos.n;
    const bool is_text = given && given->n > 0 && given->at[0].from < n_bos;
    if (n_bos == 0 || (!is_text && *n >= n_bos && memcmp(*text, c->bos.s, n_bos) == 0))
        return GGL_OK;
    char *whole = ggl_calloc(n_bos + *n + 1, 1);
    if (whole) {
        memcpy(whole, c->bos.s, n_bos);
        memcpy(whole + n_bos, *text, *n);
    }
    ggl_free(*text);
    *text = whole;
    *n = whole ? *n + n_bos : 0;
    return whole ? GGL_OK : llm_talk_no_memory(err);
}

/* True if the template refuses the first message of this conversation with these words. */
static bool refuses_first(const llm_chat *c, const llm_talk *talk, const ggl_error *why) {
    const llm_chat_params p = {.n = 1};
    rendering w = {.c = c,
                   .x = {.talk = talk, .p = &p, .tools = llm_talk_get(talk, "tools")},
                   .wants = &c->wants};
    ggl_error err = {0};
    char *text;
    size_t n;
    const ggl_status st = llm_talk_n(talk) > 0 ? render(c, &w, 0, 0, &text, &n, &err) : GGL_OK;
    if (st == GGL_OK)
        ggl_free(text);
    return st == why->status && strcmp(err.msg, why->msg) == 0;
}

/* True if the first message is why the template refuses a conversation: another one in its place is not refused with these words. */
static bool is_first(const llm_chat *c, const llm_talk *talk, const ggl_error *why) {
    llm_talk *other;
    if (!refuses_first(c, talk, why) || llm_talk_copy(&other, talk, 0, NULL) != GGL_OK)
        return false;
    const ggl_status st = llm_talk_add(other, "user", (ggl_str){"a", 1}, NULL);
    const bool is = st == GGL_OK && !refuses_first(c, other, why);
    llm_talk_free(other);
    return is;
}

/* --- tools that were found ---------------------------------------------------------------------- */

/* Renders a small conversation with tools, of which the first is one of its own, and n others. *text is NULL if the template refuses it. */
static ggl_status render_tools(const llm_chat *c, const json_value *tools, size_t n, char **text,
                               size_t *size, ggl_error *err) {
    static const char own[] =
        "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}], \"tools\": [{\"type\": "
        "\"function\", \"function\": {\"name\": \"zqf\", \"description\": \"zqd\", "
        "\"parameters\": {\"type\": \"object\", \"properties\": {}}}}]}";
    static const llm_chat_params usual;
    llm_talk *talk = NULL;
    json_value *item = ggl_calloc(n + 1, sizeof *item), list;
    ggl_status st = item ? llm_talk_read(&talk, (ggl_str){own, sizeof own - 1}, NULL, NULL, err)
                         : llm_talk_no_memory(err);
    if (st == GGL_OK) {
        item[0] = llm_talk_get(talk, "tools")->item[0];
        if (n > 0)
            memcpy(item + 1, tools->item, n * sizeof *item);
        list = (json_value){.kind = JSON_ARRAY, .n = (uint32_t)n + 1, .item = item};
        rendering w = {.c = c,
                       .x = {.talk = talk, .p = &usual, .tools = &list},
                       .wants = &c->wants,
                       .is_probe = true};
        st = render(c, &w, 0, 0, text, size, NULL);
        st = st == GGL_NOMEM ? llm_talk_no_memory(err) : GGL_OK;
    }
    llm_talk_free(talk);
    ggl_free(item);
    return st;
}

static bool is_between(char c) {
    return c == ' ' || c == '\n' || c == '\t' || c == ',';
}

/* Finds what one text has more than another, in one place. Where it could begin at several, it begins a line or a word, or the farthest behind. */
static bool find_more(ggl_str with, ggl_str without, ggl_str *more) {
    size_t same = 0, end = 0;
    while (same < without.n && with.s[same] == without.s[same])
        same++;
    while (end < without.n - same && with.s[with.n - 1 - end] == without.s[without.n - 1 - end])
        end++;
    if (with.n <= without.n || same + end != without.n)
        return false;
    *more = (ggl_str){with.s + same, with.n - without.n};
    for (size_t at = same; at > 0; at--) {
        if (is_between(with.s[at]) || is_between(with.s[at - 1])) {
            more->s = with.s + at;
            break;
        }
        if (with.s[at - 1] != with.s[at - 1 + more->n])
            break;
    }
    return true;
}

/* llm_tools_text: what a list with these tools has more than one without. */
static ggl_status write_tools(void *ctx, const json_value *tools, char **text, size_t *n,
                              ggl_error *err) {
    const llm_chat *c = ctx;
    char *with = NULL, *without = NULL;
    size_t n_with = 0, n_without = 0;
    ggl_str more = {0};
    *text = NULL;
    *n = 0;
    ggl_status st = render_tools(c, tools, 0, &without, &n_without, err);
    if (st == GGL_OK)
        st = render_tools(c, tools, tools->n, &with, &n_with, err);
    if (st == GGL_OK && with && without && n_with > n_without &&
        find_more((ggl_str){with, n_with}, (ggl_str){without, n_without}, &more)) {
        while (more.n > 0 && is_between(more.s[0]))
            more = (ggl_str){more.s + 1, more.n - 1};
        while (more.n > 0 && is_between(more.s[more.n - 1]))
            more.n--;
        *text = ggl_calloc(more.n + 1, 1);
        *n = more.n;
        st = *text ? GGL_OK : llm_talk_no_memory(err);
        if (*text && more.n > 0)
            memcpy(*text, more.s, more.n);
    }
    ggl_free(with);
    ggl_free(without);
    return st;
}

/* Notes what is known of a prompt beside its text. */
static void note_made(const rendering *w, size_t n_added, llm_chat_made *made) {
    made->changes = w->x.changes;
    made->changes.n[LLM_CHAT_NO_TOOLS] =
        w->x.tools && w->x.tools->n > 0 && !llm_chat_shows_tools(w->c) &&
        !llm_json_is(llm_talk_get(w->x.talk, "tool_choice"), "none");
    for (size_t i = 0; i < made->given.n; i++) {
        made->given.at[i].from += n_added;
        made->given.at[i].to += n_added;
    }
}

ggl_status llm_chat_prompt(const llm_chat *c, const llm_talk *talk, const llm_chat_params *params,
                           char **text, size_t *size, ggl_error *err) {
    static const llm_chat_params usual;
    rendering w = {.c = c, .x = {.talk = talk, .p = params ? params : &usual}, .wants = &c->wants};
    llm_chat_made *made = w.x.p->made;
    llm_spans own = {0};
    ggl_arena arena = {0};
    if (made)
        made->given.n = 0;
    if (!c->parses_special && (made || c->bos.n > 0))
        w.given = made ? &made->given : &own;
    ggl_status st = llm_tools_shown(&w.x.tools, llm_talk_get(talk, "tools"), &arena, err);
    if (st == GGL_OK)
        st = llm_deferred_texts(&w.x.found, talk, w.x.p, &arena, write_tools, (void *)c, err);
    *text = NULL;
    *size = 0;
    w.failed = SIZE_MAX;
    if (st == GGL_OK)
        st = render(c, &w, 0, 0, text, size, err);
    const bool is_refused = (st == GGL_USAGE || st == GGL_FORMAT) && w.failed == SIZE_MAX;
    const size_t empty = is_refused ? find_empty(&w) : SIZE_MAX;
    if (empty != SIZE_MAX)
        (void)within_message(&w, empty, st, err);
    else if (is_refused && st == GGL_USAGE && err && is_first(c, talk, err))
        (void)ggl_within(err, st, "messages[0]");
    if (st != GGL_OK && w.x.p->name)
        (void)ggl_within(err, st, "%s", w.x.p->name);
    const size_t n = *size;
    if (st == GGL_OK)
        st = add_bos(c, w.given, text, size, err);
    if (st == GGL_OK && made)
        note_made(&w, *size - n, made);
    llm_spans_fini(&own);
    ggl_arena_fini(&arena);
    return st;
}
