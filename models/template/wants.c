#include "wants.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "common/digest.h"
#include "common/json_write.h"
#include "ggl/internal/text.h"
#include "origin.h"
#include "whole_tools.h"

/* --- messages ----------------------------------------------------------------------------------- */

/* The names of a message's reasoning, the usual one first. */
static const char *const thoughts[] = {"reasoning_content", "reasoning", "thinking"};
enum { N_THOUGHTS = sizeof thoughts / sizeof *thoughts };

/* Efforts of reasoning, by rising effort. */
static const char *const efforts[] = {"none", "minimal", "low", "medium", "high", "xhigh", "max"};
enum { N_EFFORTS = sizeof efforts / sizeof *efforts };

static int effort_at(const json_value *v) {
    int k = 0;
    while (k < N_EFFORTS && !llm_json_is(v, efforts[k]))
        k++;
    return k;
}

const char *llm_chat_effort(const json_value *v) {
    const int k = effort_at(v);
    return k < N_EFFORTS ? efforts[k] : NULL;
}

const char *llm_wants_effort(const llm_wants *w, const json_value *asked) {
    const int k = effort_at(asked);
    if (k == N_EFFORTS || !(w->efforts >> k & 1))
        return NULL;
    for (int far = 1; far < N_EFFORTS; far++) {
        if (k >= far && !(w->efforts >> (k - far) & 1))
            return efforts[k - far];
        if (k + far < N_EFFORTS && !(w->efforts >> (k + far) & 1))
            return efforts[k + far];
    }
    return NULL;
}

static tv str(const char *s) {
    return tv_str((ggl_str){s, strlen(s)});
}

static void set(tv_heap *h, tv dict, const char *name, tv value) {
    llm_tv_dict_set(h, dict.dict, str(name), value);
}

/* What templates know in place of a role that only some do. */
static ggl_str role_of(const llm_wants *w, ggl_str role) {
    if (ggl_str_is(role, "developer") && !w->developer)
        return (ggl_str){"system", 6};
    return ggl_str_is(role, "function") ? (ggl_str){"tool", 4} : role;
}

/* A list with one part, or none of an empty text beside calls. */
static tv list_of(tv_heap *h, const llm_talk_message *m) {
    tv list = llm_tv_new_list(h, TV_LIST), part = llm_tv_new_dict(h);
    set(h, part, "type", str("text"));
    set(h, part, "text", tv_str(m->content));
    if (m->content.n > 0 || m->n_calls == 0)
        llm_tv_push(h, list, part);
    return list;
}

static tv content_of(tv_heap *h, const llm_wants *w, const llm_talk_message *m) {
    if (w->null_content && m->content.n == 0 && m->n_calls > 0)
        return tv_none();
    return w->parts ? list_of(h, m)
                    : tv_str((ggl_str){m->content.s ? m->content.s : "", m->content.n});
}

/* Calls of which the arguments that are objects become texts. */
static tv calls_with_texts(tv_heap *h, const json_value *calls) {
    tv list = llm_tv_new_list(h, TV_LIST);
    for (size_t i = 0; i < calls->n; i++) {
        tv call = llm_tv_from_json(h, &calls->item[i]);
        const tv *f = llm_tv_dict_find(call.dict, (ggl_str){"function", 8});
        const json_value *arguments =
            llm_json_get(llm_json_get(&calls->item[i], "function"), "arguments");
        if (arguments->kind == JSON_OBJECT)
            set(h, *f, "arguments", tv_str(llm_tv_written(h, arguments)));
        llm_tv_push(h, list, call);
    }
    return list;
}

/* An id of nine letters and digits, the same for the same id. */
static tv short_id(tv_heap *h, ggl_str id) {
    enum { N = 9 };
    static const char digit[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    char text[N + 1] = "";
    size_t n = 0;
    while (n < id.n && id.s[n] && strchr(digit, id.s[n]))
        n++;
    if (id.n == N && n == N)
        return tv_str(id);
    uint64_t sum = llm_digest(LLM_DIGEST_START, id.s, id.n);
    for (int i = 0; i < N; i++, sum /= 62)
        text[i] = digit[sum % 62];
    const ggl_str copy = {ggl_arena_strndup(&h->arena, text, N), N};
    if (!copy.s)
        llm_tv_fail(h, GGL_NOMEM, "out of memory for a conversation");
    return tv_str(copy);
}

/* Gives calls, or a result, ids that the template takes. */
static tv with_short_ids(tv_heap *h, tv v) {
    if (v.kind == TV_STRING)
        return short_id(h, v.text);
    for (size_t i = 0; v.kind == TV_LIST && i < v.list->n; i++) {
        const tv *id = v.list->at[i].kind == TV_DICT
                           ? llm_tv_dict_find(v.list->at[i].dict, (ggl_str){"id", 2})
                           : NULL;
        if (id && id->kind == TV_STRING)
            set(h, v.list->at[i], "id", short_id(h, id->text));
    }
    return v;
}

/* The name under which the template reads a member: that of the reasoning. */
static ggl_str name_of(const llm_wants *w, const json_value *object, ggl_str name) {
    int own = 0, read = 0;
    while (own < N_THOUGHTS && !ggl_str_is(name, thoughts[own]))
        own++;
    while (read < N_THOUGHTS && !(w->reasoning >> read & 1))
        read++;
    if (own == N_THOUGHTS || read == N_THOUGHTS || w->reasoning >> own & 1 ||
        llm_json_get(object, thoughts[read]))
        return name;
    return (ggl_str){thoughts[read], strlen(thoughts[read])};
}

static tv message_of(tv_heap *h, const llm_wants *w, const llm_talk_message *m) {
    tv to = llm_tv_new_dict(h);
    const json_value *object = m->object;
    for (size_t i = 0; i < object->n; i++) {
        const ggl_str name = json_name(object, i);
        const json_value *v = &object->item[i];
        tv value;
        if (m->n_references > 0 && ggl_str_is(name, "tool_references"))
            continue; /* they are in the content */
        if (ggl_str_is(name, "role"))
            value = tv_str(role_of(w, m->role));
        else if (ggl_str_is(name, "content"))
            value = content_of(h, w, m);
        else if (w->text_arguments && ggl_str_is(name, "tool_calls"))
            value = calls_with_texts(h, v);
        else
            value = llm_tv_from_json(h, v);
        if (w->short_ids && (ggl_str_is(name, "tool_calls") || ggl_str_is(name, "tool_call_id")))
            value = with_short_ids(h, value);
        llm_tv_dict_set(h, to.dict, tv_str(name_of(w, object, name)), value);
    }
    if (!llm_json_get(object, "content"))
        set(h, to, "content", content_of(h, w, m));
    return to;
}

/* Notes what stems from a message: all its texts but the role, of which templates make control tokens. */
static void give(tv_heap *h, const llm_talk_message *m) {
    llm_tv_give(h, m->content);
    for (size_t i = 0; i < m->object->n; i++) {
        const ggl_str name = json_name(m->object, i);
        llm_tv_give(h, name);
        if (!ggl_str_is(name, "role"))
            llm_tv_give_json(h, &m->object->item[i]);
    }
}

/* Gives the tools to the first system message, which is made if there is none. False: there is. */
static bool add_tools(tv_heap *h, const llm_wants *w, const llm_wanted *x, const llm_places *places,
                      tv *first) {
    const json_value *tools = x->tools;
    const bool has = places->n > 0 && ggl_str_is(role_of(w, places->item[0].m.role), "system");
    if (w->tools < WANTS_TOOLS_TEXT || !tools ||
        llm_json_is(llm_talk_get(x->talk, "tool_choice"), "none"))
        return false;
    if (!has) {
        const llm_talk_message none = {.role = {"system", 6}};
        *first = llm_tv_new_dict(h);
        set(h, *first, "role", tv_str(none.role));
        set(h, *first, "content", content_of(h, w, &none));
    }
    set(h, *first, "tools",
        w->tools == WANTS_TOOLS_TEXT ? tv_str(llm_tv_written(h, tools))
                                     : llm_tv_from_json(h, tools));
    return !has;
}

tv llm_wants_messages(tv_heap *h, const llm_wants *w, llm_wanted *x) {
    const llm_talk *t = x->talk;
    for (size_t i = 0; h->origin && i < llm_talk_n(t); i++)
        give(h, llm_talk_at(t, i));
    for (size_t i = 0; h->origin && x->found && i < llm_talk_n(t); i++)
        llm_tv_give(h, x->found[i]);
    const llm_places places = llm_place_systems(h, &w->systems, t, x->p, x->found);
    llm_shown_message *shown = llm_tv_alloc(h, places.n + 1, sizeof *shown);
    size_t k = 0;
    tv list = llm_tv_new_list(h, TV_LIST),
       first = places.n > 0 ? message_of(h, w, &places.item[0].m) : tv_none();
    if (add_tools(h, w, x, &places, &first)) {
        llm_tv_push(h, list, first);
        shown[k++] = (llm_shown_message){first.dict, SIZE_MAX};
    }
    for (size_t i = 0; i < places.n; i++) {
        const tv m = i == 0 && k == 0 ? first : message_of(h, w, &places.item[i].m);
        llm_tv_push(h, list, m);
        shown[k++] = (llm_shown_message){m.dict, places.item[i].at};
    }
    x->shown = shown;
    x->n_shown = k;
    x->changes = places.changes;
    return list;
}

/* --- what a template wants ---------------------------------------------------------------------- */

/* A search in progress. */
typedef struct search {
    llm_wants *w;
    ggl_str text;
    llm_wants_shows *shows;
    void *ctx;
    ggl_error *err;
} search;

/* Tries n forms, each of which want() makes the wanted one: the first one in which the words are shown counts, or, if there is none, the
 * first of all. */
static ggl_status try_forms(const search *s, void (*want)(llm_wants *w, int k), int n,
                            const char *json, const char *words, bool *found) {
    ggl_status st = GGL_OK;
    *found = false;
    for (int k = 0; k < n && !*found && st == GGL_OK; k++) {
        want(s->w, k);
        st = s->shows(s->ctx, s->w, json, words, found, s->err);
    }
    if (!*found)
        want(s->w, 0);
    return st;
}

static void want_content(llm_wants *w, int k) {
    w->parts = k == 1;
}

static void want_calls(llm_wants *w, int k) {
    w->null_content = k & 1;
    w->text_arguments = k >> 1;
}

static void want_tools(llm_wants *w, int k) {
    w->tools = k == 0 ? WANTS_NO_TOOLS : k == 1 ? WANTS_TOOLS_TEXT : WANTS_TOOLS_LIST;
}

static void want_members(llm_wants *w, int k) {
    w->tool_members = (w->tool_members & LLM_TOOL_PROPERTIES) | (k & 1 ? LLM_TOOL_DESCRIPTION : 0) |
                      (k & 2 ? LLM_TOOL_PARAMETERS : 0);
}

static void want_properties(llm_wants *w, int k) {
    w->tool_members =
        (w->tool_members & ~(unsigned)LLM_TOOL_PROPERTIES) | (k == 1 ? LLM_TOOL_PROPERTIES : 0);
}

/* True if the template's text has a member's name: .name, 'name' or "name". */
static bool names(const search *x, const char *name) {
    const size_t n = strlen(name);
    const char *s = x->text.s, *end = x->text.s + x->text.n;
    for (; (s = ggl_find_bytes(s, (size_t)(end - s), name, n)); s += n) {
        const char before = s > x->text.s ? s[-1] : ' ', after = s + n < end ? s[n] : ' ';
        const bool is_part = after == '_' || (after >= '0' && after <= '9') ||
                             (after >= 'a' && after <= 'z') || (after >= 'A' && after <= 'Z');
        if ((before == '.' && !is_part) || ((before == '\'' || before == '"') && after == before))
            return true;
    }
    return false;
}

#define TOOLS                                                                                      \
    "\"tools\": [{\"type\": \"function\", \"function\": {\"name\": \"zqf\", \"description\": "     \
    "\"\", \"parameters\": {\"type\": \"object\", \"properties\": {}}}}]}"

#define CALLS(id)                                                                                  \
    "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}, {\"role\": \"assistant\", "         \
    "\"content\": \"\", \"tool_calls\": [{\"id\": \"" id                                           \
    "\", \"type\": \"function\", \"function\": {\"name\": \"zqf\", \"arguments\": {\"zq\": "       \
    "\"qvz\"}}}]}, {\"role\": \"tool\", \"tool_call_id\": \"" id                                   \
    "\", \"content\": \"b\"}], " TOOLS

/* A user says zqc, or asks with the tool zqf, which a call names. The arguments of the call, {"zq": "qvz"}, appear in quotes that are not
 * escaped if they are shown as JSON; in other forms, only the value may appear. */
static const char talk[] = "{\"messages\": [{\"role\": \"user\", \"content\": \"zqc\"}]}",
                  tools[] = "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}], " TOOLS,
                  bare_tools[] =
                      "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}], \"tools\": "
                      "[{\"type\": \"function\", \"function\": {\"name\": \"zqf\"}}]}",
                  no_properties[] =
                      "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}], \"tools\": "
                      "[{\"type\": \"function\", \"function\": {\"name\": \"zqf\", "
                      "\"parameters\": {\"type\": \"object\"}}}]}",
                  calls[] = CALLS("abcdefghi"),
                  other_ids[] = CALLS("call_0123456789abcdefghijklmn");

/* --- system messages ---------------------------------------------------------------------------- */

#define MESSAGE(role, text) "{\"role\": \"" role "\", \"content\": \"" text "\"}"
#define S(text)             MESSAGE("system", text)
#define D(text)             MESSAGE("developer", text)
#define U(text)             MESSAGE("user", text)
#define A(text)             MESSAGE("assistant", text)
#define CALL_AND_RESULT(text)                                                                      \
    "{\"role\": \"assistant\", \"content\": \"\", \"tool_calls\": [{\"id\": \"abcdefghi\", "       \
    "\"type\": \"function\", \"function\": {\"name\": \"zqf\", \"arguments\": {}}}]}, {\"role\": " \
    "\"tool\", \"tool_call_id\": \"abcdefghi\", \"name\": \"zqf\", \"content\": \"" text "\"}"

/* Finds out whether the template shows the words of messages, in the order in which they are given. */
static ggl_status sees(const search *s, bool with_tools, const char *messages, const char *words,
                       bool *shown) {
    char json[2048];
    snprintf(json, sizeof json, "{\"messages\": [%s]%s", messages, with_tools ? ", " TOOLS : "}");
    return s->shows(s->ctx, s->w, json, words, shown, s->err);
}

/* Conversations with system messages: if the template does not show the words, a member is true. Where calls are, or tools stand in front, it
 * must show the words of the conversation without system messages. */
static const struct system_probe {
    bool developer; /* only if the template has this role */
    const char *with, *words, *without, *own_words;
    size_t member;
} system_probes[] = {
#define ONE   offsetof(llm_shown_systems, only_one)
#define FIRST offsetof(llm_shown_systems, only_first)
    {false, S("zqa") ", " S("zqb") ", " U("zqc"), "zqa zqb zqc", NULL, NULL, ONE},
    {true, S("zqa") ", " D("zqb") ", " U("zqc"), "zqa zqb zqc", NULL, NULL, ONE},
    {true, D("zqa") ", " D("zqb") ", " U("zqc"), "zqa zqb zqc", NULL, NULL, ONE},
    {true, D("zqa") ", " S("zqb") ", " U("zqc"), "zqa zqb zqc", NULL, NULL, ONE},
    {false, U("zqb") ", " S("zqc"), "zqb zqc", NULL, NULL, FIRST},
#define TURNS(x)                                                                                   \
    S("zqa")                                                                                       \
    ", " U("zqb") ", " x("zqc") ", " A("zqd") ", " x("zqe") ", " U("zqf") ", " x("zqg"),           \
        "zqb zqc zqd zqe zqf zqg", NULL, NULL, FIRST
    {false, TURNS(S)},
    {true, TURNS(D)},
#define BESIDE_CALLS(x)                                                                            \
    S("zqa")                                                                                       \
    ", " U("zqb") ", " CALL_AND_RESULT("zqc") ", " x("zqd") ", " A("zqe") ", " x("zqf"),           \
        "zqb zqc zqd zqe zqf", S("zqa") ", " U("zqb") ", " CALL_AND_RESULT("zqc") ", " A("zqe"),   \
        "zqb zqc zqe", FIRST
    {false, BESIDE_CALLS(S)},
    {true, BESIDE_CALLS(D)},
#define BESIDE_TOOLS(x)                                                                            \
    U("zqb")                                                                                       \
    ", " A("zqd") ", " x("zqe"), "zqf zqb zqd zqe", U("zqb") ", " A("zqd"), "zqf zqb zqd", FIRST
    {false, BESIDE_TOOLS(S)},
    {true, BESIDE_TOOLS(D)},
};

static ggl_status probe_systems(const search *s, const struct system_probe *p, bool with_tools) {
    bool *member = (bool *)((char *)&s->w->systems + p->member), shown = true, own = true;
    if (*member || (p->developer && !s->w->developer))
        return GGL_OK;
    ggl_status st = sees(s, with_tools || p->without, p->with, p->words, &shown);
    if (st == GGL_OK && !shown && p->without)
        st = sees(s, true, p->without, p->own_words, &own);
    *member = !shown && own;
    return st;
}

/* Finds out whether not even one message of a role at the beginning is shown, but its text is if it is the user's. */
static ggl_status probe_role(const search *s, const char *messages, bool with_tools, bool *hidden) {
    bool shown = false, as_user = false;
    ggl_status st = sees(s, with_tools, messages, "zqa", &shown);
    if (st == GGL_OK && !shown)
        st = sees(s, with_tools, U("zqa zqb"), "zqa zqb", &as_user);
    *hidden = !shown && as_user;
    return st;
}

static ggl_status find_systems(const search *s) {
    llm_wants *w = s->w;
    bool shown, hidden = false;
    ggl_status st = sees(s, false, U("zqb"), "zqb", &shown);
    const bool with_tools = !shown; /* some refuse conversations without any */
    if (st == GGL_OK)
        st = probe_role(s, S("zqa") ", " U("zqb"), with_tools, &w->systems.not_one);
    if (st == GGL_OK && w->developer)
        st = probe_role(s, D("zqa") ", " U("zqb"), with_tools, &hidden);
    w->developer = w->developer && !hidden;
    if (st == GGL_OK)
        st = sees(s, true, U("zqb") ", " CALL_AND_RESULT("zqc"), "zqb zqc", &shown);
    w->systems.no_result = !shown;
    if (st == GGL_OK)
        st = sees(s, with_tools, U("zqb") ", " U("zqc"), "zqb zqc", &shown);
    if (st == GGL_OK && !shown)
        st = sees(s, with_tools, U("zqb zqc"), "zqb zqc", &w->systems.one_user);
    for (size_t i = 0; st == GGL_OK && i < sizeof system_probes / sizeof *system_probes; i++)
        st = probe_systems(s, &system_probes[i], with_tools);
    return st;
}

/* Finds what the template wants of calls. */
static ggl_status find_calls(const search *s, bool *found) {
    bool shown = true;
    ggl_status st = try_forms(s, want_calls, 4, calls, "\"zq\"", found);
    if (st == GGL_OK && !*found) /* it does not show them as JSON */
        st = try_forms(s, want_calls, 4, calls, "qvz", found);
    if (st == GGL_OK && *found)
        st = s->shows(s->ctx, s->w, other_ids, "qvz", &shown, s->err);
    s->w->short_ids = st == GGL_OK && !shown;
    return st;
}

/* Finds the efforts of reasoning that the template refuses, unless it refuses all: then it is not they that it refuses. */
static ggl_status find_efforts(const search *s) {
    ggl_status st = GGL_OK;
    for (int k = 0; k < N_EFFORTS && st == GGL_OK; k++) {
        char json[600];
        bool shown = true;
        snprintf(json, sizeof json,
                 "{\"messages\": [{\"role\": \"user\", \"content\": \"zqc\"}], "
                 "\"reasoning_effort\": \"%s\"%s",
                 efforts[k], "}");
        st = s->shows(s->ctx, s->w, json, "zqc", &shown, s->err);
        s->w->efforts |= (unsigned)!shown << k;
    }
    if (s->w->efforts == (1u << N_EFFORTS) - 1)
        s->w->efforts = 0;
    return st;
}

ggl_status llm_wants_find(llm_wants *w, const llm_template *t, ggl_str text, llm_wants_shows *shows,
                          void *ctx, ggl_error *err) {
    const search s = {.w = w, .text = text, .shows = shows, .ctx = ctx, .err = err};
    const bool has_variable =
        llm_template_mentions(t, "tools") || llm_template_mentions(t, "functions");
    *w = (llm_wants){.developer = names(&s, "developer")};
    for (int i = 0; i < N_THOUGHTS; i++)
        w->reasoning |= (unsigned)names(&s, thoughts[i]) << i;
    bool found;
    ggl_status st = try_forms(&s, want_content, 2, talk, "zqc", &found);
    if (st == GGL_OK && !has_variable && names(&s, "tools"))
        st = try_forms(&s, want_tools, 3, tools, "zqf", &found);
    if (has_variable)
        w->tools = WANTS_VARIABLE;
    if (st == GGL_OK && w->tools != WANTS_NO_TOOLS)
        st = try_forms(&s, want_members, 4, bare_tools, "zqf", &found);
    if (st == GGL_OK && w->tools != WANTS_NO_TOOLS)
        st = try_forms(&s, want_properties, 2, no_properties, "zqf", &found);
    const bool reads_calls = names(&s, "tool_calls");
    if (st == GGL_OK)
        st = reads_calls ? find_calls(&s, &found) : shows(ctx, w, calls, "qvz", &found, err);
    const bool shows_calls = found || reads_calls; /* it may show arguments that it knows alone */
    if (st == GGL_OK && llm_template_mentions(t, "reasoning_effort"))
        st = find_efforts(&s);
    if (st == GGL_OK)
        st = find_systems(&s);
    w->systems.no_call = !shows_calls;
    return st;
}
