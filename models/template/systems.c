#include "systems.h"

#include "common/json_write.h"
#include "origin.h"

/* What stands around the text of a system message in a message of another role. */
static const char begins[] = "[System message]\n", ends[] = "\n[End of system message]";
/* .. around a call of a tool, .. */
static const char call_begins[] = "[Call of a tool]\n", call_ends[] = "\n[End of call]";
/* .. and around the result of a tool, where the template has no such role. */
static const char result_begins[] = "[Result of a tool]\n", result_ends[] = "\n[End of result]";

static bool is_system(const llm_talk_message *m) {
    return llm_is_system(m->role);
}

static bool is_result(const llm_talk_message *m) {
    return ggl_str_is(m->role, "tool") || ggl_str_is(m->role, "function");
}

/* --- texts -------------------------------------------------------------------------------------- */

static void put(tv_heap *h, tv_text *to, ggl_str s) {
    llm_tv_put(h, to, s.s, s.n);
}

/* Adds a text behind others, after an empty line. */
static void add_text(tv_heap *h, tv_text *to, ggl_str s, bool is_marked) {
    if (s.n == 0)
        return;
    llm_tv_puts(h, to, to->n > 0 ? "\n\n" : "");
    llm_tv_puts(h, to, is_marked ? begins : "");
    put(h, to, s);
    llm_tv_puts(h, to, is_marked ? ends : "");
}

/* Adds a text to a message. */
static void add_to(tv_heap *h, llm_placed *to, ggl_str s, bool is_marked) {
    if (to->whole.n == 0)
        put(h, &to->whole, to->m.content);
    add_text(h, &to->whole, s, is_marked);
}

/* --- places ------------------------------------------------------------------------------------- */

/* Messages while they are placed. */
typedef struct placing {
    tv_heap *h;
    const llm_shown_systems *shown;
    const llm_talk *talk;
    const ggl_str *found; /* NULL: none */
    const size_t *at;     /* [n]: those that are asked for */
    size_t n;
    llm_places to;
    tv_text before; /* what comes before the content of the next message */
} placing;

static const llm_talk_message *message_at(const placing *p, size_t i) {
    return llm_talk_at(p->talk, p->at[i]);
}

/* True for messages in which another text can stand. */
static bool takes_text(const llm_talk_message *m) {
    return ggl_str_is(m->role, "user") || is_result(m);
}

/* Writes a call behind the content of its message. */
static void add_call(placing *p, llm_placed *to, const llm_talk_call *call) {
    llm_json_out out = {0};
    tv_text text = {0};
    llm_json_put_value(&out, call->arguments);
    llm_tv_puts(p->h, &text, call_begins);
    put(p->h, &text, call->name);
    llm_tv_puts(p->h, &text, " ");
    const ggl_str arguments = {ggl_arena_strndup(&p->h->arena, out.s ? out.s : "", out.n), out.n};
    const bool failed = out.failed || !arguments.s;
    ggl_free(out.s);
    if (failed)
        llm_tv_fail(p->h, GGL_NOMEM, "out of memory for a conversation");
    llm_tv_give(p->h, arguments);
    put(p->h, &text, arguments);
    llm_tv_puts(p->h, &text, call_ends);
    const ggl_str all = llm_tv_done(&text);
    if (to->whole.n == 0)
        put(p->h, &to->whole, to->m.content);
    llm_tv_puts(p->h, &to->whole, to->whole.n > 0 ? "\n\n" : "");
    put(p->h, &to->whole, all);
    p->to.changes.n_calls++;
}

static llm_placed *push(placing *p, size_t i) {
    llm_placed *to = &p->to.item[p->to.n++];
    *to = (llm_placed){.m = *message_at(p, i), .at = p->at[i]};
    for (size_t k = 0; p->shown->no_call && k < to->m.n_calls; k++)
        add_call(p, to, &to->m.call[k]);
    if (p->shown->no_result && is_result(&to->m)) {
        tv_text text = {0};
        llm_tv_puts(p->h, &text, result_begins);
        put(p->h, &text, to->m.content);
        llm_tv_puts(p->h, &text, result_ends);
        to->m.role = (ggl_str){"user", 4};
        to->m.content = llm_tv_done(&text);
        p->to.changes.n_results++;
    }
    if (p->before.n > 0) {
        to->whole = p->before;
        p->before = (tv_text){0};
        add_text(p->h, &to->whole, to->m.content, false);
    }
    if (p->found && p->found[to->at].n > 0) {
        if (to->whole.n == 0)
            put(p->h, &to->whole, to->m.content);
        llm_tv_puts(p->h, &to->whole, to->whole.n > 0 ? "\n" : "");
        put(p->h, &to->whole, p->found[to->at]);
    }
    return to;
}

/* Places system messages that the template does not show: those from i to end. They stand in the message before them, or else in the one
 * after them, or else they are a turn of the user. */
static void move(placing *p, size_t i, size_t end, bool is_marked) {
    const bool has_next = end < p->n && takes_text(message_at(p, end));
    for (; i < end; i++) {
        llm_placed *last = p->to.n > 0 ? &p->to.item[p->to.n - 1] : NULL;
        const ggl_str text = message_at(p, i)->content;
        if (text.n == 0)
            continue;
        p->to.changes.n_moved++;
        if (last && takes_text(&last->m)) {
            add_to(p->h, last, text, is_marked);
        } else if (has_next) {
            add_text(p->h, &p->before, text, is_marked);
        } else {
            llm_placed *turn = push(p, i);
            turn->m.role = (ggl_str){"user", 4};
            turn->m.content = (ggl_str){"", 0};
            add_text(p->h, &turn->whole, text, is_marked);
        }
    }
}

/* Puts the first n system messages, which are the first messages, into one. */
static void join(placing *p, size_t n) {
    llm_placed *one = push(p, 0);
    for (size_t i = 1; i < n; i++)
        add_to(p->h, one, message_at(p, i)->content, false);
    p->to.changes.n_joined = n;
}

/* Puts messages of the user that follow each other into one. */
static void join_users(placing *p) {
    size_t k = 0;
    for (size_t i = 1; i < p->to.n; i++) {
        llm_placed *last = &p->to.item[k], *next = &p->to.item[i];
        if (!ggl_str_is(last->m.role, "user") || !ggl_str_is(next->m.role, "user")) {
            p->to.item[++k] = *next;
            continue;
        }
        add_to(p->h, last, next->whole.n > 0 ? llm_tv_done(&next->whole) : next->m.content, false);
        p->to.changes.n_users++;
    }
    p->to.n = p->to.n > 0 ? k + 1 : 0;
}

static size_t end_of_systems(const placing *p, size_t i) {
    while (i < p->n && is_system(message_at(p, i)))
        i++;
    return i;
}

static size_t choose(const llm_talk *t, const llm_chat_params *p, size_t *at) {
    const size_t n = p->n > 0 && p->n < llm_talk_n(t) ? p->n : llm_talk_n(t),
                 begin = llm_talk_begin(t);
    size_t k = 0;
    for (size_t i = 0; i < n; i++)
        if (i < begin || i >= p->first)
            at[k++] = i;
    return k;
}

bool llm_is_system(ggl_str role) {
    return ggl_str_is(role, "system") || ggl_str_is(role, "developer");
}

llm_places llm_place_systems(tv_heap *h, const llm_shown_systems *shown, const llm_talk *t,
                             const llm_chat_params *params, const ggl_str *found) {
    size_t *at = llm_tv_alloc(h, llm_talk_n(t) + 1, sizeof *at);
    placing p = {
        .h = h, .shown = shown, .found = found, .talk = t, .at = at, .n = choose(t, params, at)};
    p.to.item = llm_tv_alloc(h, p.n + 1, sizeof *p.to.item);
    const size_t n_first = end_of_systems(&p, 0);
    size_t i = 0;
    if (n_first > 0 && shown->not_one) {
        move(&p, 0, n_first, false);
        i = n_first;
    } else if (n_first > 1 && shown->only_one) {
        join(&p, n_first);
        i = n_first;
    }
    while (i < p.n) {
        const size_t end = i >= n_first && shown->only_first ? end_of_systems(&p, i) : i;
        if (end > i)
            move(&p, i, end, true);
        else
            (void)push(&p, i);
        i = end > i ? end : i + 1;
    }
    if (shown->one_user)
        join_users(&p);
    for (i = 0; i < p.to.n; i++)
        if (p.to.item[i].whole.n > 0)
            p.to.item[i].m.content = llm_tv_done(&p.to.item[i].whole);
    return p.to;
}
