#include "systems.h"

#include "origin.h"
#include "talk_impl.h"

/* What stands around a text in a message of another role, or behind what its message says. */
typedef struct mark {
    const char *begins, *ends;
} mark;
static const mark system_mark = {"[System message]\n", "\n[End of system message]"},
                  call_mark = {"[Call of a tool]\n", "\n[End of call]"},
                  result_mark = {"[Result of a tool]\n", "\n[End of result]"}, no_mark = {"", ""};

/* --- texts -------------------------------------------------------------------------------------- */

static void put(tv_heap *h, tv_text *to, ggl_str s) {
    llm_tv_put(h, to, s.s, s.n);
}

static void put_marked(tv_heap *h, tv_text *to, ggl_str s, const mark *m) {
    llm_tv_puts(h, to, m->begins);
    put(h, to, s);
    llm_tv_puts(h, to, m->ends);
}

/* Adds a text, unless it is empty, behind others; `between` stands between them. */
static void add_text(tv_heap *h, tv_text *to, const char *between, ggl_str s, const mark *m) {
    if (s.n == 0)
        return;
    llm_tv_puts(h, to, to->n > 0 ? between : "");
    put_marked(h, to, s, m);
}

static const char empty_line[] = "\n\n";

/* Adds a text to a message. */
static void add_to(tv_heap *h, llm_placed *to, const char *between, ggl_str s, const mark *m) {
    if (to->whole.n == 0)
        put(h, &to->whole, to->m.content);
    add_text(h, &to->whole, between, s, m);
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
    return ggl_str_is(m->role, "user") || llm_is_result(m->role);
}

/* Writes a call behind the content of its message. */
static void add_call(placing *p, llm_placed *to, const llm_talk_call *call) {
    tv_text text = {0};
    put(p->h, &text, call->name);
    llm_tv_puts(p->h, &text, " ");
    put(p->h, &text, llm_tv_written(p->h, call->arguments));
    add_to(p->h, to, empty_line, llm_tv_done(&text), &call_mark);
    p->to.changes.n[LLM_CHAT_CALLS]++;
}

static llm_placed *push(placing *p, size_t i) {
    llm_placed *to = &p->to.item[p->to.n++];
    *to = (llm_placed){.m = *message_at(p, i), .at = p->at[i]};
    for (size_t k = 0; p->shown->no_call && k < to->m.n_calls; k++)
        add_call(p, to, &to->m.call[k]);
    if (p->shown->no_result && llm_is_result(to->m.role)) {
        tv_text text = {0};
        put_marked(p->h, &text, to->m.content, &result_mark);
        to->m.role = (ggl_str){"user", 4};
        to->m.content = llm_tv_done(&text);
        p->to.changes.n[LLM_CHAT_RESULTS]++;
    }
    if (p->before.n > 0) {
        to->whole = p->before;
        p->before = (tv_text){0};
        add_text(p->h, &to->whole, empty_line, to->m.content, &no_mark);
    }
    if (p->found && p->found[to->at].n > 0)
        add_to(p->h, to, "\n", p->found[to->at], &no_mark);
    return to;
}

/* Places system messages that the template does not show: those from i to end. They stand in the message before them, or else in the one
 * after them, or else they are a turn of the user. */
static void move(placing *p, size_t i, size_t end, const mark *m) {
    const bool has_next = end < p->n && takes_text(message_at(p, end));
    for (; i < end; i++) {
        llm_placed *last = p->to.n > 0 ? &p->to.item[p->to.n - 1] : NULL;
        const ggl_str text = message_at(p, i)->content;
        if (text.n == 0)
            continue;
        p->to.changes.n[LLM_CHAT_MOVED]++;
        if (last && takes_text(&last->m)) {
            add_to(p->h, last, empty_line, text, m);
        } else if (has_next) {
            add_text(p->h, &p->before, empty_line, text, m);
        } else {
            llm_placed *turn = push(p, i);
            turn->m.role = (ggl_str){"user", 4};
            turn->m.content = (ggl_str){"", 0};
            add_text(p->h, &turn->whole, empty_line, text, m);
        }
    }
}

/* Puts the first n system messages, which are the first messages, into one. */
static void join(placing *p, size_t n) {
    llm_placed *one = push(p, 0);
    for (size_t i = 1; i < n; i++)
        add_to(p->h, one, empty_line, message_at(p, i)->content, &no_mark);
    p->to.changes.n[LLM_CHAT_JOINED] = n;
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
        add_to(p->h, last, empty_line,
               next->whole.n > 0 ? llm_tv_done(&next->whole) : next->m.content, &no_mark);
        p->to.changes.n[LLM_CHAT_USERS]++;
    }
    p->to.n = p->to.n > 0 ? k + 1 : 0;
}

static bool is_system(const llm_talk_message *m) {
    return ggl_str_is(m->role, "system") || ggl_str_is(m->role, "developer");
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

llm_places llm_place_systems(tv_heap *h, const llm_shown_systems *shown, const llm_talk *t,
                             const llm_chat_params *params, const ggl_str *found) {
    size_t *at = llm_tv_alloc(h, llm_talk_n(t) + 1, sizeof *at);
    placing p = {
        .h = h, .shown = shown, .found = found, .talk = t, .at = at, .n = choose(t, params, at)};
    p.to.item = llm_tv_alloc(h, p.n + 1, sizeof *p.to.item);
    const size_t n_first = end_of_systems(&p, 0);
    size_t i = 0;
    if (n_first > 0 && shown->not_one) {
        move(&p, 0, n_first, &no_mark);
        i = n_first;
    } else if (n_first > 1 && shown->only_one) {
        join(&p, n_first);
        i = n_first;
    }
    while (i < p.n) {
        const size_t end = i >= n_first && shown->only_first ? end_of_systems(&p, i) : i;
        if (end > i)
            move(&p, i, end, &system_mark);
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
