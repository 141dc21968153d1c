#include "llm/internal/calls.h"

#include <string.h>

#include "calls_impl.h"
#include "ggl/internal/params.h"
#include "ggl/internal/steps.h"
#include "ggl/internal/text.h"

enum { MAX_SIZE = 16 << 20, MAX_LOOK = 256 };

/* --- parts ------------------------------------------------------------------------------------ */

/* Reports the text up to the last character that is no white space. White space after it is held back: if a mark follows, it is left
 * out, as it is after a mark. */
static ggl_status show(llm_calls *c) {
    if (!c->begun && c->after_mark)
        while (c->shown < c->solid && llm_calls_is_white(c->text[c->shown]))
            c->shown++;
    if (c->shown >= c->solid)
        return GGL_OK;
    event *e = llm_calls_push(c, c->mode == IN_REASONING ? LLM_CALLS_REASONING : LLM_CALLS_CONTENT,
                              (span){c->shown, c->solid});
    if (!e)
        return GGL_NOMEM;
    e->begins = !c->begun || c->first_begins;
    c->begun = true;
    c->first_begins = false;
    c->shown = c->solid;
    return GGL_OK;
}

/* The same at the end of the text that is known. At the end of the answer, white space belongs to the text. */
static ggl_status show_end(llm_calls *c) {
    if (c->final && c->pos == c->n && (c->begun || c->solid > c->shown || !c->after_mark))
        c->solid = c->n;
    return show(c);
}

/* A part of text begins after a mark. */
static void begin_part(llm_calls *c, size_t next) {
    c->pos = c->shown = c->solid = next;
    c->begun = false;
    c->after_mark = true;
}

/* Ends a part of text at a mark; what follows begins at `next`. */
static ggl_status end_part(llm_calls *c, size_t next) {
    ggl_status st = show(c);
    begin_part(c, next);
    return st;
}

static void to_content(llm_calls *c, size_t next, bool fresh) {
    c->mode = IN_CONTENT;
    begin_part(c, next);
    c->fresh = fresh;
}

/* --- text ------------------------------------------------------------------------------------- */

/* Begins a call at `at`; m NULL: without a mark. If it is none, the text before it goes on. */
static ggl_status begin_call(llm_calls *c, const mark *m, size_t at) {
    const ggl_status st = show(c);
    const bool was_after_mark = c->after_mark;
    if (m)
        llm_calls_begin(c, m, at);
    c->a.was_begun = c->begun;
    c->a.was_shown = c->begun || !was_after_mark ? c->shown : at;
    begin_part(c, at);
    c->after_mark = was_after_mark;
    c->mode = IN_CALL;
    return st;
}

/* A mark at c->pos. */
static ggl_status at_mark(llm_calls *c, const mark *m) {
    c->after_start = false;
    if (m->role == MARK_CALL)
        return begin_call(c, m, c->pos);
    const ggl_status st = end_part(c, c->pos + m->text.n);
    if (m->role == MARK_THINK) {
        c->mode = IN_REASONING;
        c->think = m;
    }
    return st;
}

/* Between calls without marks there may be a semicolon. STEP_DONE: *i is moved to the call after
 * it. */
static progress pass_semicolon(const llm_calls *c, size_t *i) {
    if (!c->after_start || c->text[*i] != ';')
        return STEP_FAIL;
    size_t at = *i + 1;
    while (at < c->n && at - *i < MAX_LOOK && llm_calls_is_white(c->text[at]))
        at++;
    if (at == c->n)
        return c->final ? STEP_FAIL : STEP_WAIT;
    if (c->text[at] != '{' && c->text[at] != '[')
        return STEP_FAIL;
    *i = at;
    return STEP_DONE;
}

/* Whether a name of a tool and a bracket begin at i. */
static progress at_tool(const llm_calls *c, size_t i) {
    progress most = STEP_FAIL;
    for (uint32_t k = 0; c->tools && k < c->tools->n && most != STEP_DONE; k++) {
        ggl_str name;
        (void)llm_calls_function(&c->tools->item[k], &name);
        if (name.n == 0)
            continue;
        progress p = llm_calls_compare(c, i, name);
        if (p == STEP_DONE)
            p = llm_calls_compare(c, i + name.n, (ggl_str){"(", 1});
        most = p == STEP_FAIL ? most : p;
    }
    return most;
}

/* Whether a call without a mark begins at *i. */
static progress at_start(llm_calls *c, size_t *i) {
    if (c->f.anywhere) { /* once a call is broken, such calls are text: no text is read again and again */
        const progress p = c->strict || c->text[*i] != '[' ? STEP_FAIL : at_tool(c, *i + 1);
        if (p != STEP_DONE)
            return p;
    } else if (!c->fresh || !c->f.may_start || llm_calls_is_white(c->text[*i]))
        return STEP_FAIL;
    if (pass_semicolon(c, i) == STEP_WAIT)
        return STEP_WAIT;
    llm_calls_begin(c, NULL, *i);
    return llm_calls_choose(c, &c->a);
}

static progress in_content(llm_calls *c, ggl_status *st) {
    for (size_t i = c->pos; i < c->n; i++) {
        bool wait = false;
        size_t n_close = 0;
        const bool is_text = c->either && !c->fresh; /* which has begun */
        const progress start = is_text ? STEP_FAIL : at_start(c, &i);
        const mark *m = start == STEP_FAIL && !is_text ? llm_calls_mark_at(c, i, &wait) : NULL;
        c->pos = i;
        if (start == STEP_DONE) {
            *st = begin_call(c, NULL, i);
            return STEP_DONE;
        }
        const progress closes = c->was_forced && !m ? llm_calls_closes(c, i, &n_close) : STEP_FAIL;
        if (closes == STEP_DONE) { /* the model ends reasoning that was ended for it */
            *st = end_part(c, i + n_close);
            return STEP_DONE;
        }
        if (start == STEP_WAIT || wait || closes == STEP_WAIT)
            break;
        if (m) {
            *st = at_mark(c, m);
            return STEP_DONE;
        }
        c->pos = i + 1;
        if (!llm_calls_is_white(c->text[i])) {
            c->solid = i + 1;
            c->fresh = c->after_start = false;
        }
    }
    *st = show_end(c);
    return STEP_WAIT;
}

/* Ends reasoning; what follows begins at `next`. */
static ggl_status end_reasoning(llm_calls *c, size_t next) {
    const bool was_begun = c->begun || c->solid > c->shown;
    const ggl_status st = end_part(c, next);
    c->mode = c->is_forced ? IN_DOUBT : IN_CONTENT;
    c->thought_begun = was_begun;
    c->was_forced = c->was_forced || c->is_forced;
    c->is_forced = false;
    c->fresh = true;
    return st;
}

/* After reasoning whose end was forced. A model that takes no notice goes on in its line, and ends its reasoning itself: then all up to
 * there is reasoning. Until this is known, the text is held back; a line break, another mark or the end of the answer tells. */
static progress in_doubt(llm_calls *c, ggl_status *st) {
    for (; c->pos < c->n && c->text[c->shown] != '\n'; c->pos++) {
        bool wait;
        size_t n_close;
        GGL_STEPS(1);
        const progress p = llm_calls_closes(c, c->pos, &n_close);
        const mark *m = llm_calls_mark_at(c, c->pos, &wait);
        if (p == STEP_DONE) {
            c->mode = IN_REASONING;
            c->begun = c->thought_begun;
            c->after_mark = !c->begun;
            c->solid = c->pos;
            *st = end_reasoning(c, c->pos + n_close);
            return STEP_DONE;
        }
        if (p == STEP_WAIT || wait)
            return STEP_WAIT;
        if (m)
            break;
    }
    if (c->pos == c->n && !c->final)
        return STEP_WAIT;
    to_content(c, c->shown, true);
    return STEP_DONE;
}

/* A mark in reasoning at c->pos, or more of what follows it. STEP_FAIL: it is text. */
static progress mark_in_reasoning(llm_calls *c, ggl_status *st, ggl_error *err) {
    bool wait = false;
    if (!c->doubtful) {
        const mark *m = c->pos < c->sure ? NULL : llm_calls_mark_at(c, c->pos, &wait);
        if (wait)
            return STEP_WAIT;
        if (!m || m->role == MARK_THINK)
            return STEP_FAIL;
        *st = show(c); /* before the events of calls */
        if (*st != GGL_OK)
            return STEP_DONE;
    }
    const progress p = llm_calls_thought(c, st, err);
    if (p != STEP_DONE || *st != GGL_OK)
        return p;
    to_content(c, c->pos, true);
    return STEP_DONE;
}

static progress in_reasoning(llm_calls *c, ggl_status *st, ggl_error *err) {
    while (c->pos < c->n || c->doubtful) {
        size_t n_close;
        GGL_STEPS(1);
        progress p = c->doubtful ? STEP_FAIL : llm_calls_closes(c, c->pos, &n_close);
        if (p == STEP_DONE) {
            *st = end_reasoning(c, c->pos + n_close);
            return p;
        }
        if (p == STEP_FAIL)
            p = mark_in_reasoning(c, st, err);
        if (p == STEP_DONE)
            return p;
        if (p == STEP_WAIT)
            break;
        if (!llm_calls_is_white(c->text[c->pos]))
            c->solid = c->pos + 1;
        c->pos++;
    }
    if (!c->doubtful)
        *st = show_end(c);
    return STEP_WAIT;
}

/* --- calls ------------------------------------------------------------------------------------ */

/* Reports a text from `begin` on as what it is: no call. The text before it goes on. */
static ggl_status report_broken(llm_calls *c, size_t begin, size_t end, bool goes_on) {
    event *e = llm_calls_push(c, LLM_CALLS_BROKEN, (span){begin, end});
    if (!e)
        return GGL_NOMEM;
    e->begins = !goes_on || c->first_begins;
    e->error = ggl_arena_printf(&c->arena, "%s", c->a.error);
    if (!e->error)
        return GGL_NOMEM;
    c->first_begins = false;
    to_content(c, end, false);
    c->begun = true;
    return GGL_OK;
}

static ggl_status all_broken(llm_calls *c, size_t end) {
    return report_broken(c, c->a.was_shown, end, c->a.was_begun);
}

/* The text that ends the call; n == 0: none. */
static ggl_str closing(const llm_calls *c) {
    const pattern *p = c->a.p;
    for (int i = 0; i < c->f.n_calls && !p; i++)
        if (c->f.call[i].piece[0].kind == PIECE_TEXT &&
            c->f.call[i].piece[0].text.s == c->a.mark->text.s)
            p = &c->f.call[i];
    const piece *last = p ? &p->piece[p->n - 1] : NULL;
    return last && last->kind == PIECE_TEXT ? last->text : (ggl_str){0};
}

/* It is no call. Without a mark it is content; else its end is looked for. */
static ggl_status no_call(llm_calls *c) {
    c->strict = true;
    if (!c->a.mark) {
        to_content(c, c->a.begin, false);
        c->begun = c->a.was_begun;
        c->shown = c->solid = c->a.was_shown;
        return GGL_OK;
    }
    if (closing(c).n == 0)
        return all_broken(c, c->a.p ? c->a.scan : c->a.body);
    c->a.scan = c->a.body;
    c->mode = IN_BROKEN;
    return GGL_OK;
}

/* The calls that were read from a field stay calls. The rest of the field becomes text, unless a limit has cut it off. */
static ggl_status after_calls(llm_calls *c) {
    const size_t rest = c->a.rest, end = c->a.scan;
    const bool has_mark = c->a.mark;
    if (rest > 0 && !c->cut)
        return report_broken(c, rest, end, false);
    to_content(c, end, true);
    c->after_start = !has_mark;
    return GGL_OK;
}

/* True if the text that ends the call stands in a value that was read: a quote may be missing before it. */
static bool holds_end(const llm_calls *c) {
    const ggl_str close = closing(c), value = llm_calls_slice(c, c->a.value);
    return close.n > 0 && close.n <= value.n &&
           ggl_find_bytes(value.s, value.n, close.s, close.n) != NULL;
}

static progress in_call(llm_calls *c, ggl_status *st, ggl_error *err) {
    progress p = llm_calls_step(c, &c->a);
    if (p == STEP_WAIT && !c->final)
        *st = llm_calls_report_partial(c);
    if (p == STEP_WAIT)
        return p;
    if (p == STEP_FAIL) {
        *st = c->a.no_memory ? GGL_NOMEM : no_call(c);
        return STEP_DONE;
    }
    *st = llm_calls_read(c, &c->a, err);
    if (*st == GGL_OK)
        *st = after_calls(c);
    else if (*st == GGL_FORMAT)
        *st = c->a.mark && !holds_end(c) ? all_broken(c, c->a.scan) : no_call(c);
    return STEP_DONE;
}

/* Looks for the end of a broken call: its closing mark, or another mark. */
static progress in_broken(llm_calls *c, ggl_status *st) {
    const ggl_str close = closing(c);
    for (; c->a.scan < c->n; c->a.scan++) {
        bool wait;
        progress p = llm_calls_compare(c, c->a.scan, close);
        const mark *m = llm_calls_mark_at(c, c->a.scan, &wait);
        if (p == STEP_WAIT || wait)
            return STEP_WAIT;
        if (p == STEP_DONE || m) {
            *st = all_broken(c, c->a.scan + (p == STEP_DONE ? close.n : 0));
            return STEP_DONE;
        }
    }
    if (!c->final)
        return STEP_WAIT;
    *st = all_broken(c, c->n);
    return STEP_DONE;
}

static ggl_status go_on(llm_calls *c, ggl_error *err) {
    progress p = STEP_DONE;
    ggl_status st = GGL_OK;
    while (p == STEP_DONE && st == GGL_OK)
        switch (c->mode) {
        case IN_CONTENT:
            p = in_content(c, &st);
            break;
        case IN_REASONING:
            p = in_reasoning(c, &st, err);
            break;
        case IN_DOUBT:
            p = in_doubt(c, &st);
            break;
        case IN_CALL:
            p = in_call(c, &st, err);
            break;
        case IN_BROKEN:
            p = in_broken(c, &st);
        }
    return st == GGL_OK ? st : ggl_fail(err, st, "out of memory for an answer");
}

/* --- the public functions --------------------------------------------------------------------- */

static ggl_status append(llm_calls *c, const char *text, size_t n) {
    if (n == 0)
        return GGL_OK;
    if (n > c->cap - c->n && !ggl_grow(&c->text, &c->cap, 2 * (c->n + n), 1))
        return GGL_NOMEM;
    memcpy(c->text + c->n, text, n);
    c->n += n;
    return GGL_OK;
}

/* Puts the mark with which the prompt ends in front of the answer. */
static ggl_status begin_as_prompt(llm_calls *c, ggl_str prompt) {
    while (prompt.n > 0 && llm_calls_is_white(prompt.s[prompt.n - 1]))
        prompt.n--;
    const mark *best = NULL;
    for (int k = 0; k < c->f.n_marks; k++) {
        const ggl_str t = c->f.mark[k].text;
        if (t.n <= prompt.n && memcmp(prompt.s + prompt.n - t.n, t.s, t.n) == 0 &&
            (!best || t.n > best->text.n))
            best = &c->f.mark[k];
    }
    for (int k = 0; k < c->f.n_marks; k++) {
        const ggl_str t = c->f.mark[k].close;
        c->after_mark = c->after_mark || (t.n > 0 && t.n <= prompt.n &&
                                          memcmp(prompt.s + prompt.n - t.n, t.s, t.n) == 0);
    }
    c->seed = best ? best->text.n : 0;
    return best ? append(c, best->text.s, best->text.n) : GGL_OK;
}

/* Reads what the prompt has begun of the answer, and reports none of it. */
static ggl_status begin_with(llm_calls *c, ggl_str begun, ggl_error *err) {
    ggl_status st = append(c, begun.s, begun.n);
    if (st != GGL_OK)
        return ggl_fail(err, st, "out of memory for an answer");
    c->seed = c->n;
    st = go_on(c, err);
    c->first_begins = true;
    if (!c->doubtful)
        c->n_events = 0;
    if (c->mode == IN_CONTENT ||
        c->mode == IN_REASONING) /* white space at its end is the prompt's */
        c->shown = c->solid = c->pos;
    return st;
}

ggl_status llm_calls_new(llm_calls **out, const llm_calls_params *params, ggl_error *err) {
    llm_calls_params own = {.size = sizeof own};
    const llm_calls_params *p = &own;
    *out = NULL;
    const ggl_status is_read = GGL_READ_PARAMS(llm_calls_params, &own, params, err);
    if (is_read != GGL_OK)
        return is_read;
    llm_calls *c = ggl_calloc(1, sizeof *c);
    if (!c)
        return ggl_fail(err, GGL_NOMEM, "out of memory for the calls of an answer");
    c->partial = p->partial;
    c->one = p->one_call;
    c->either = p->answer.n > 0;
    c->demanded = p->demanded;
    c->max = p->max_size ? p->max_size : MAX_SIZE;
    c->fresh = true;
    const ggl_str name = p->format.n > 0 ? p->format : llm_calls_format(p->template_text);
    ggl_status st = llm_call_format_load(&c->f, name, err);
    if (st == GGL_OK && p->tools)
        st = llm_calls_check_tools(p->tools, err);
    if (p->no_calls)
        llm_call_format_drop_calls(&c->f);
    c->tools = p->tools;
    const size_t n_begun = p->n_begun < p->prompt.n ? p->n_begun : p->prompt.n;
    const size_t n_before = p->prompt.n - n_begun;
    if (st == GGL_OK && begin_as_prompt(c, (ggl_str){p->prompt.s, n_before}) != GGL_OK)
        st = ggl_fail(err, GGL_NOMEM, "out of memory for an answer");
    const char *begun = n_begun > 0 ? p->prompt.s + n_before : ""; /* the prompt may be NULL */
    if (st == GGL_OK)
        st = begin_with(c, (ggl_str){begun, n_begun}, err);
    if (st != GGL_OK) {
        llm_calls_free(c);
        return st;
    }
    *out = c;
    return GGL_OK;
}

void llm_calls_free(llm_calls *c) {
    if (!c)
        return;
    llm_call_format_fini(&c->f);
    ggl_free(c->text);
    ggl_free(c->a.arg);
    llm_mend_fini(&c->a.mend);
    ggl_free(c->event);
    ggl_arena_fini(&c->arena);
    ggl_free(c);
}

ggl_status llm_calls_add(llm_calls *c, const char *text, size_t n, ggl_error *err) {
    if (n > c->max || c->n - c->seed > c->max - n)
        return ggl_fail(err, GGL_LIMIT, "the answer has more than %zu bytes", c->max);
    if (c->next == c->n_events) {
        c->next = c->n_events = c->n_sure_events = 0;
        ggl_arena_fini(&c->arena);
    }
    if (append(c, text, n) != GGL_OK)
        return ggl_fail(err, GGL_NOMEM, "out of memory for an answer");
    return go_on(c, err);
}

ggl_status llm_calls_finish(llm_calls *c, ggl_error *err) {
    c->final = true;
    return go_on(c, err);
}

/* True if nothing but texts of the pattern is missing from the call that is being read, or calls of a list have ended. */
static bool is_whole(const attempt *a) {
    const mender *m = &a->mend;
    if (!a->p)
        return false;
    if (a->entered && m->n_ends > 0)
        return true;
    const bool is_mended = a->entered && m->n_values > 0, /* {json}, {map}, {args} */
        is_value = a->entered && a->kind != PIECE_PARAMS &&
                   (is_mended ? m->depth == 0 : a->complete && a->depth == 0 && !a->quote);
    for (int i = a->piece + is_value; i < a->p->n; i++)
        if (a->p->piece[i].kind != PIECE_TEXT || a->p->piece[i].optional)
            return false;
    return true;
}

/* True if the end of the text, which is undecided, may be the beginning of a mark, or of a demanded
 * call without one. */
static bool ends_in_mark(llm_calls *c) {
    bool wait = false;
    size_t at = c->pos, n;
    if (c->pos >= c->n)
        return false;
    if (c->mode == IN_REASONING || c->mode == IN_DOUBT)
        return !c->doubtful && llm_calls_closes(c, c->pos, &n) == STEP_WAIT;
    if (c->mode != IN_CONTENT)
        return false;
    (void)llm_calls_mark_at(c, c->pos, &wait);
    return wait || (c->demanded && at_start(c, &at) == STEP_WAIT);
}

ggl_status llm_calls_cut(llm_calls *c, ggl_error *err) {
    ggl_status st = GGL_OK;
    if (ends_in_mark(c)) /* white space before it is left out, too */
        c->n = c->pos = c->mode == IN_DOUBT ? c->pos : c->solid;
    c->final = c->cut = true;
    /* without a mark it may be content, unless a call was demanded */
    if (c->mode == IN_CALL && (c->a.mark || c->demanded)) {
        if (is_whole(&c->a))
            (void)in_call(c, &st, err);
        if (st == GGL_OK)
            to_content(c, c->n, false); /* what follows is the beginning of the closing mark */
    }
    return st == GGL_OK ? go_on(c, err) : ggl_fail(err, st, "out of memory for an answer");
}

/* True if a part comes after the only call that is wanted. */
static bool is_too_late(llm_calls *c, const event *e) {
    const bool was_over = c->over;
    if (!c->one)
        return false;
    if (e->kind == LLM_CALLS_BEGINS && c->n_given++ > 0)
        c->skips = true;
    c->over = c->over || e->kind == LLM_CALLS_CALL;
    return was_over || c->skips;
}

bool llm_calls_next(llm_calls *c, llm_calls_part *part) {
    const size_t n = c->doubtful ? c->n_sure_events : c->n_events;
    const event *e = NULL;
    while (c->next < n && !e) {
        e = &c->event[c->next++];
        if (e->kind == LLM_CALLS_CALL && c->skips && !c->over) {
            c->over = true; /* the first of a list */
            break;
        }
        e = is_too_late(c, e) ? NULL : e;
    }
    if (!e)
        return false;
    *part = (llm_calls_part){.kind = e->kind,
                             .begins = e->begins,
                             .text = {c->text + e->text.begin, e->text.end - e->text.begin},
                             .name = e->name,
                             .arguments = e->arguments,
                             .has_begun = e->has_begun,
                             .is_unfinished = e->unfinished,
                             .id = e->id,
                             .error = e->error};
    return true;
}

bool llm_calls_is_over(const llm_calls *c) {
    return c->over;
}

void llm_calls_force_end(llm_calls *c) {
    c->is_forced = c->mode == IN_REASONING;
}

llm_calls_kind llm_calls_now(const llm_calls *c) {
    return c->mode == IN_CONTENT || c->mode == IN_DOUBT ? LLM_CALLS_CONTENT
           : c->mode == IN_REASONING                    ? LLM_CALLS_REASONING
                                                        : LLM_CALLS_CALL;
}

ggl_str llm_calls_reasoning_end(const llm_calls *c) {
    return c->mode == IN_REASONING ? c->think->close : (ggl_str){"", 0};
}
