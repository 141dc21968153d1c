/* Finds out while a call is written that it is one, and reports what is known of it. From then on it is a call: what is wrong in it is
 * mended (mend.c, scan.c). The parts given out are a beginning of the whole call's arguments (body.c): the object without white space
 * between its tokens. */
#include <string.h>

#include "calls_impl.h"
#include "ggl/internal/show.h"
#include "ggl/internal/steps.h"

static bool has_escapes(ggl_str s) {
    return s.n > 0 && memchr(s.s, '\\', s.n);
}

/* In reasoning, and where a call without a mark may turn out to be a text, nothing is reported early. */
bool llm_calls_reports(const llm_calls *c) {
    return c->partial && !c->doubtful && (c->a.mark || !c->either);
}

/* A call begins. Without a mark it may be text, unless it names a tool. */
static ggl_status begin(llm_calls *c, ggl_str name, ggl_str id) {
    partial *p = &c->a.part;
    name = llm_calls_tool_name(c, llm_calls_cut_name(&c->f, name));
    if (has_escapes(name) || has_escapes(id) || !llm_calls_can_name(c, name) ||
        (!c->a.mark && !llm_calls_function_named(c, name))) {
        p->never = true;
        return GGL_OK;
    }
    p->n_begun++;
    p->begun_here = true;
    if (!llm_calls_reports(c))
        return GGL_OK;
    event *e = llm_calls_push(c, LLM_CALLS_BEGINS, (span){c->a.begin, c->a.begin});
    if (!e)
        return GGL_NOMEM;
    e->name = (ggl_str){ggl_arena_strndup(&c->arena, name.s, name.n), name.n};
    e->id = (ggl_str){ggl_arena_strndup(&c->arena, id.n ? id.s : "", id.n), id.n};
    return e->name.s && e->id.s ? GGL_OK : GGL_NOMEM;
}

/* Reports a piece, and frees it. */
static ggl_status give(llm_calls *c, call_text *t) {
    ggl_status st = t->no_memory ? GGL_NOMEM : GGL_OK;
    if (st == GGL_OK && t->n > 0 && llm_calls_reports(c)) {
        const char *copy = ggl_arena_strndup(&c->arena, t->s, t->n);
        event *e = copy ? llm_calls_push(c, LLM_CALLS_PIECE, (span){c->a.begin, c->a.begin}) : NULL;
        if (e)
            e->arguments = (ggl_str){copy, t->n};
        else
            st = GGL_NOMEM;
    }
    ggl_free(t->s);
    *t = (call_text){0};
    return st;
}

/* --- JSON --------------------------------------------------------------------------------------- */

/* A part of the mended text. */
static ggl_str mended(const llm_calls *c, span s) {
    return (ggl_str){c->a.mend.out.s + s.begin, s.end - s.begin};
}

/* True for the first of the alternatives between '|'. If it is absent, another one may count, which is not reported early. */
static bool is_key(ggl_str key, ggl_str names) {
    const ggl_str first = llm_calls_first_key(names);
    return key.n == first.n && memcmp(key.s, first.s, first.n) == 0;
}

/* The end of a string outside of the arguments. A key that comes twice has its first value, as llm_json_get returns it. */
static void end_string(llm_calls *c, size_t at) {
    partial *p = &c->a.part;
    p->last.end = at;
    if (p->depth != p->level || !p->has_value)
        return;
    const ggl_str key = mended(c, p->key);
    span *to = is_key(key, c->f.name_key) ? &p->name : is_key(key, c->f.id_key) ? &p->id : NULL;
    if (to && to->end == 0)
        *to = p->last;
    p->has_value = false;
}

/* A bracket that opens, outside of arguments: they may begin with it. */
static ggl_status open_bracket(llm_calls *c, char ch) {
    partial *p = &c->a.part;
    const bool is_args = ch == '{' && p->level > 0 && p->depth == p->level && p->has_value &&
                         is_key(mended(c, p->key), c->f.args_key) && !c->f.late_ids &&
                         !p->begun_here && p->n_args_keys == 1;
    p->depth++;
    if (p->level == 0 && ch == '{' && p->depth <= 2) {
        p->level = p->depth;
        p->begun_here = false;
        p->n_args_keys = 0;
        p->name = p->id = p->key = (span){0};
    }
    if (!is_args)
        return GGL_OK;
    p->has_value = false;
    const ggl_status st = begin(c, mended(c, p->name), mended(c, p->id));
    p->in_object = !p->never;
    return st;
}

static void close_bracket(partial *p) {
    const bool was_in = p->in_object;
    p->depth--;
    p->in_object = was_in && p->depth > p->level;
    if (was_in || p->level == 0 || p->depth >= p->level)
        return;
    p->level = 0;
    /* calls are begun in their order: after one that was not, none is */
    p->never = p->never || !p->begun_here;
}

/* One character; in arguments it is given out. */
static ggl_status pass(llm_calls *c, size_t at, call_text *t) {
    partial *p = &c->a.part;
    const char ch = c->a.mend.out.s[at];
    const bool was_in = p->in_object;
    ggl_status st = GGL_OK;
    GGL_STEPS(1);
    if (p->quoted) {
        p->quoted = p->escaped || ch != '"';
        p->escaped = !p->escaped && ch == '\\';
        if (!p->quoted && !was_in)
            end_string(c, at);
    } else if (llm_calls_is_white(ch)) {
        return st;
    } else if (ch == '"') {
        p->quoted = true;
        p->last.begin = at + 1;
    } else if ((ch == '{' || ch == '[') && was_in) {
        p->depth++;
    } else if (ch == '{' || ch == '[') {
        st = open_bracket(c, ch);
    } else if (ch == '}' || ch == ']') {
        close_bracket(p);
    } else if (!was_in && p->depth == p->level && (ch == ':' || ch == ',')) {
        p->has_value = ch == ':';
        p->key = ch == ':' ? p->last : p->key;
        p->n_args_keys += p->has_value && is_key(mended(c, p->key), c->f.args_key);
        /* a key that has escapes may be any of the names, and the first of equal ones */
        p->never |= p->has_value && !p->begun_here && has_escapes(mended(c, p->key));
    }
    if (was_in || p->in_object)
        llm_calls_put(t, &ch, 1);
    return st;
}

ggl_status llm_calls_track(llm_calls *c) {
    attempt *a = &c->a;
    partial *p = &a->part;
    call_text t = {0};
    ggl_status st = GGL_OK;
    if (a->kind == PIECE_MAP || p->never || a->mend.out.n == 0)
        return GGL_OK;
    if (a->kind == PIECE_ARGS && p->n_begun == 0) { /* the whole object is arguments */
        ggl_str name, id;
        llm_calls_identify(c, a, &name, &id);
        p->never = a->mend.out.s[0] != '{';
        st = p->never ? GGL_OK : begin(c, name, id);
        p->in_object = !p->never;
    }
    for (; p->at < a->mend.out.n && st == GGL_OK && !p->never; p->at++) {
        const bool was_in = p->in_object;
        if (a->kind == PIECE_ARGS && !was_in)
            break;
        st = pass(c, p->at, &t);
        if (st == GGL_OK && was_in && !p->in_object)
            st = give(c, &t); /* before another call begins */
    }
    const ggl_status given = give(c, &t);
    return st == GGL_OK ? given : st;
}

/* --- arguments between marks -------------------------------------------------------------------- */

static ggl_str key_of(const llm_calls *c, const argument *arg) {
    return llm_calls_trimmed(llm_calls_slice(c, arg->key));
}

static unsigned kinds_of(const llm_calls *c, const argument *arg) {
    return llm_calls_kinds(llm_calls_schema(c, llm_calls_function_of(c, &c->a), key_of(c, arg)));
}

static void put_key(const llm_calls *c, const argument *arg, call_text *t) {
    llm_calls_put(t, ",\"", c->a.part.i_arg ? 1 : 0);
    llm_calls_put(t, "\"", 1);
    llm_calls_put_string(t, key_of(c, arg));
    llm_calls_put(t, "\":", 2);
}

/* The end of a text without the bytes at its end that may be a part of a character. */
static size_t before_cut(const llm_calls *c, size_t begin, size_t end) {
    for (size_t k = 1; k < 4 && k <= end - begin && end >= begin; k++) {
        const unsigned char ch = (unsigned char)c->text[end - k];
        if (ch >= 0xc0)
            return ggl_utf8_length(c->text + end - k, k) ? end : end - k;
        if (ch < 0x80)
            break;
    }
    return end;
}

/* More of a string that goes on. A line break may be the format's: it waits for what follows. */
static void put_more(llm_calls *c, const argument *arg, call_text *t) {
    partial *p = &c->a.part;
    const size_t first = arg->value.begin;
    size_t end = c->a.scan;
    if (!arg->verbatim && first < end && c->text[first] == '\n') {
        if (!c->f.lines)
            return; /* the string's end tells whether it is part of the string */
        p->at = p->at > first ? p->at : first + 1;
    }
    if (end > p->at && c->text[end - 1] == '\n')
        end--;
    end = before_cut(c, p->at, end);
    if (end <= p->at)
        return;
    llm_calls_put_string(t, (ggl_str){c->text + p->at, end - p->at});
    p->at = end;
}

/* What is left of an argument that is complete. */
static ggl_status put_rest(llm_calls *c, const argument *arg, call_text *t) {
    partial *p = &c->a.part;
    const ggl_str raw = llm_calls_slice(c, arg->value);
    const ggl_str value = arg->verbatim ? raw : llm_calls_unwrap(&c->f, raw);
    const size_t begins = (size_t)(value.s - c->text), ends = begins + value.n;
    bool string = true;
    ggl_status st = GGL_OK;
    if (!p->in_arg) {
        put_key(c, arg, t);
        string = arg->typed && arg->string;
        if (!string)
            st = llm_calls_as_string(arg->typed ? 0 : kinds_of(c, arg), value, &string);
        llm_calls_put(t, "\"", string);
    }
    const size_t at = p->in_arg && p->at > begins ? p->at : begins;
    const ggl_str left = {c->text + at, ends > at ? ends - at : 0};
    if (string)
        llm_calls_put_string(t, left);
    else
        (void)llm_calls_put_line(t, left);
    llm_calls_put(t, "\"", string);
    p->in_arg = false;
    p->i_arg++;
    return st;
}

/* The last argument, whose value goes on. */
static void put_part(llm_calls *c, const argument *arg, call_text *t) {
    partial *p = &c->a.part;
    const bool string = arg->typed ? arg->string : kinds_of(c, arg) == 1u << JSON_STRING;
    if (!string)
        return;
    if (!p->in_arg) {
        put_key(c, arg, t);
        llm_calls_put(t, "\"", 1);
        p->in_arg = true;
        p->at = arg->value.begin;
    }
    put_more(c, arg, t);
}

static ggl_status report_params(llm_calls *c) {
    attempt *a = &c->a;
    partial *p = &a->part;
    call_text t = {0};
    ggl_status st = GGL_OK;
    if (!a->sure)
        return GGL_OK;
    if (p->n_begun == 0) {
        st = begin(c, llm_calls_slice(c, a->name), (ggl_str){0});
        if (st != GGL_OK || p->never)
            return st;
        llm_calls_put(&t, "{", 1);
    }
    while (p->i_arg < a->n_args && st == GGL_OK) {
        const argument *arg = &a->arg[p->i_arg];
        if (p->i_arg + 1 < a->n_args || a->arg_piece == 0) {
            st = put_rest(c, arg, &t);
            continue;
        }
        if (a->entered && c->f.arg.piece[a->arg_piece].kind == PIECE_VALUE)
            put_part(c, arg, &t);
        break;
    }
    const ggl_status given = give(c, &t);
    return st == GGL_OK ? given : st;
}

ggl_status llm_calls_report_partial(llm_calls *c) {
    attempt *a = &c->a;
    if (!a->p || a->part.never || a->piece >= a->p->n)
        return GGL_OK;
    const piece_kind kind = a->p->piece[a->piece].kind;
    if (kind == PIECE_PARAMS)
        return report_params(c);
    /* in other notations, the arguments come with the call */
    return (kind == PIECE_ARGS || kind == PIECE_JSON) && a->entered ? llm_calls_track(c) : GGL_OK;
}
