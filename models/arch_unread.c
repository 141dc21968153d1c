/* Keys and tensors of the source that the descriptor does not read: whether they are harmless
 * (known_keys.arch), ignored on request, or an error. The error names all of them. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "arch_impl.h"

#define MAX_LINES 20  /* of the error */
#define LINE      220 /* bytes of one of them, about */
#define TAIL      420 /* bytes of what follows them */

/* --- notes ------------------------------------------------------------------------------------ */

void arch_note(arch_eval *ev, const char *fmt, ...) {
    char buf[512];
    va_list args;
    va_start(args, fmt);
    ggl_vformat(buf, sizeof buf, fmt, args);
    va_end(args);
    size_t n = ev->notes ? strlen(ev->notes) : 0, m = strlen(buf);
    if (n > 16384)
        return;
    char *notes = ggl_calloc(n + m + 2, 1);
    if (!notes) {
        arch_nomem(ev);
        return;
    }
    if (n)
        memcpy(notes, ev->notes, n);
    memcpy(notes + n, buf, m);
    notes[n + m] = '\n';
    ggl_free(ev->notes);
    ev->notes = notes;
}

/* --- values, for messages --------------------------------------------------------------------- */

static void item_text(arch_eval *ev, const llm_arch_key *k, uint64_t i, char *buf, size_t size) {
    llm_arch_item item = {0};
    char shown[4 * 64 + 1];
    snprintf(buf, size, "?");
    if (!ev->src->get_item(ev->src->ctx, k, i, &item))
        return;
    if (k->type == LLM_ARCH_NUMBER)
        snprintf(buf, size, "%.12g", item.number);
    else if (k->type == LLM_ARCH_BOOL)
        snprintf(buf, size, "%s", item.flag ? "true" : "false");
    else {
        ggl_show(shown, sizeof shown, item.string.s, item.string.n < 64 ? item.string.n : 64);
        snprintf(buf, size, "\"%s\"", shown);
    }
}

const char *arch_value_of_key(arch_eval *ev, ggl_str key, char *buf, size_t size) {
    char name[300], item[300];
    llm_arch_key k;
    snprintf(name, sizeof name, "%.*s", (int)(key.n < 256 ? key.n : 256), key.s);
    buf[0] = 0;
    if (!ev->src->find_key(ev->src->ctx, name, &k))
        return buf;
    if (!k.is_list) {
        item_text(ev, &k, 0, item, sizeof item);
        snprintf(buf, size, " = %s", item);
        return buf;
    }
    size_t used = (size_t)snprintf(buf, size, " = [");
    for (uint64_t i = 0; i < k.n && i < 4 && used + 60 < size; i++) {
        item_text(ev, &k, i, item, sizeof item);
        used += (size_t)snprintf(buf + used, size - used, "%s%.50s", i ? ", " : "", item);
    }
    snprintf(buf + used, size - used, k.n > 4 ? ", ..] of %" PRIu64 : "]", k.n);
    return buf;
}

/* --- what is ignored on request --------------------------------------------------------------- */

typedef struct asked { /* of a pattern */
    size_t n;
    ggl_str first;
} asked;

typedef struct unread_key {
    ggl_str name;
    const char *reason;
} unread_key;

/* Tensors whose names differ in numbers only: "blk.*.ffn_gate.*.weight". */
typedef struct unread_tensor {
    ggl_str pattern;
    size_t n;
    int n_numbers;
    int64_t from[4], to[4];
    ggl_str first;
} unread_tensor;

typedef struct unread_part { /* tensors of a part that text does not need */
    const char *what;
    size_t n;
} unread_part;

typedef struct unread {
    arch_eval *ev;
    unread_key *key;
    size_t n_key, cap_key;
    unread_tensor *tensor;
    size_t n_tensor, cap_tensor, n_tensors;
    ggl_index index; /* of tensor, by pattern */
    unread_part part[16];
    int n_part;
    asked *key_asked, *tensor_asked; /* for each pattern of ev->request */
} unread;

static bool on_request(const char *const *pattern, size_t n, asked *found, ggl_str name) {
    for (size_t i = 0; i < n; i++)
        if (arch_match(pattern[i], name.s, name.n)) {
            if (found && found[i].n++ == 0)
                found[i].first = name;
            return true;
        }
    return false;
}

bool arch_key_on_request(const arch_eval *ev, ggl_str key) {
    return ev->request && on_request(ev->request->key, ev->request->n_key, NULL, key);
}

/* One line for all that was ignored, and one for each pattern that fits nothing. */
static void note_request(unread *u) {
    const llm_arch_ignore *r = u->ev->request;
    char line[400] = "", value[128];
    size_t used = 0;
    for (size_t i = 0; r && i < r->n_key + r->n_tensor; i++) {
        const bool key = i < r->n_key;
        const char *pattern = key ? r->key[i] : r->tensor[i - r->n_key];
        const asked *a = key ? &u->key_asked[i] : &u->tensor_asked[i - r->n_key];
        if (a->n == 0)
            arch_note(u->ev, "%s: no unread %s fits '%s', which was to be ignored",
                      u->ev->src->name, key ? "key" : "tensor", pattern);
        else if (used + 40 >= sizeof line)
            continue;
        else if (a->n > 1)
            used += (size_t)snprintf(line + used, sizeof line - used, "%s%zu %s %.100s",
                                     used ? ", " : "", a->n, key ? "keys" : "tensors", pattern);
        else
            used += (size_t)snprintf(line + used, sizeof line - used, "%s%.*s%s", used ? ", " : "",
                                     (int)(a->first.n < 100 ? a->first.n : 100), a->first.s,
                                     key ? arch_value_of_key(u->ev, a->first, value, sizeof value)
                                         : "");
        used = used < sizeof line ? used : sizeof line - 1;
    }
    if (used)
        arch_note(u->ev, "ignored on your request: %s", line);
}

/* --- keys ------------------------------------------------------------------------------------- */

static bool ignored(arch_eval *ev, ggl_str name) {
    arch_place begin = {&ev->arch->text, 0, 1};
    for (size_t k = 0; k < ev->n_ignore; k++)
        if (!arch_step(ev, begin, 4) || arch_match(ev->ignore[k], name.s, name.n))
            return true;
    return false;
}

static bool find_keys(unread *u, const arch_judge *j) {
    arch_eval *ev = u->ev;
    const llm_arch_ignore *r = ev->request;
    ggl_str key;
    for (size_t i = 0; ev->src->key_at && ev->src->key_at(ev->src->ctx, i, &key); i++) {
        const llm_arch_judged judged = arch_judge_key(j, key);
        if (ev->status != GGL_OK)
            return false;
        if (judged.use != LLM_ARCH_UNREAD ||
            (r && on_request(r->key, r->n_key, u->key_asked, key)))
            continue;
        if (!arch_push(ev, &u->key, &u->cap_key, u->n_key + 1, sizeof *u->key))
            return false;
        u->key[u->n_key++] = (unread_key){key, judged.reason};
    }
    return ev->status == GGL_OK;
}

/* --- tensors ---------------------------------------------------------------------------------- */

/* The name with '*' for its numbers, which go to `number`; returns how many. Further ones stay. */
static int pattern_of(ggl_str name, char *buf, size_t size, int64_t number[4]) {
    int n_numbers = 0;
    size_t n = 0;
    for (size_t i = 0; i < name.n && n + 1 < size; i++) {
        size_t end = i;
        int64_t x = 0;
        while (end < name.n && end < i + 9 && name.s[end] >= '0' && name.s[end] <= '9')
            x = 10 * x + (name.s[end++] - '0');
        const bool whole = end > i && i > 0 && name.s[i - 1] == '.' && end < name.n &&
                           name.s[end] == '.' && n_numbers < 4;
        buf[n++] = whole ? '*' : name.s[i];
        if (whole) {
            number[n_numbers++] = x;
            i = end - 1;
        }
    }
    buf[n] = 0;
    return n_numbers;
}

static bool add_tensor(unread *u, ggl_str name) {
    char buf[256];
    int64_t number[4];
    const int n_numbers = pattern_of(name, buf, sizeof buf, number);
    arch_eval *ev = u->ev;
    if (!arch_push(ev, &u->tensor, &u->cap_tensor, u->n_tensor + 1, sizeof *u->tensor))
        return false;
    unread_tensor *t = &u->tensor[u->n_tensor];
    *t = (unread_tensor){.pattern = {buf, strlen(buf)}, .n_numbers = n_numbers, .first = name};
    size_t at = ggl_index_find(&u->index, u->tensor, t->pattern);
    if (at == SIZE_MAX) {
        if (!(t->pattern.s = arch_strdup(ev, buf)))
            return false;
        ggl_status s = u->index.slots
                           ? ggl_index_reserve(&u->index, u->tensor, u->n_tensor + 1, NULL)
                           : ggl_index_init(&u->index, 64, sizeof *t, GGL_INDEX_STRINGS, NULL);
        if (s != GGL_OK)
            return arch_nomem(ev), false;
        memcpy(t->from, number, sizeof number);
        memcpy(t->to, number, sizeof number);
        ggl_index_put(&u->index, u->tensor, at = u->n_tensor++);
    }
    t = &u->tensor[at];
    t->n++;
    u->n_tensors++;
    for (int k = 0; k < n_numbers; k++) {
        t->from[k] = number[k] < t->from[k] ? number[k] : t->from[k];
        t->to[k] = number[k] > t->to[k] ? number[k] : t->to[k];
    }
    return true;
}

static void add_part(unread *u, const char *what) {
    int k = 0;
    while (k < u->n_part && u->part[k].what != what)
        k++;
    if (k == u->n_part && k < (int)(sizeof u->part / sizeof *u->part))
        u->part[u->n_part++] = (unread_part){what, 0};
    if (k < u->n_part)
        u->part[k].n++;
}

static bool find_tensors(unread *u) {
    arch_eval *ev = u->ev;
    const llm_arch_ignore *r = ev->request;
    ggl_str name;
    char full[512];
    for (size_t i = 0; ev->src->tensor_at && ev->src->tensor_at(ev->src->ctx, i, &name); i++) {
        snprintf(full, sizeof full, "%.*s", (int)(name.n < 500 ? name.n : 500), name.s);
        if (arch_find_weight(ev, full) || ignored(ev, name))
            continue;
        const char *part = arch_part_of_tensor(ev, name);
        if (ev->status != GGL_OK)
            return false;
        if (part)
            add_part(u, part);
        else if (!(r && on_request(r->tensor, r->n_tensor, u->tensor_asked, name)) &&
                 !add_tensor(u, name))
            return false;
    }
    for (int k = 0; k < u->n_part; k++)
        arch_note(ev, "%s: %zu tensor%s of %s %s not used", ev->src->name, u->part[k].n,
                  u->part[k].n == 1 ? "" : "s", u->part[k].what, u->part[k].n == 1 ? "is" : "are");
    return ev->status == GGL_OK;
}

/* "blk.{0..23}.attn_k.bias" */
static void numbered(const unread_tensor *t, char *buf, size_t size) {
    size_t n = 0;
    int k = 0;
    buf[0] = 0;
    for (const char *s = t->pattern.s; *s && n + 1 < size; s++) {
        if (*s != '*' || k >= t->n_numbers) {
            buf[n++] = *s;
            buf[n] = 0;
            continue;
        }
        if (t->from[k] == t->to[k])
            n += (size_t)snprintf(buf + n, size - n, "%" PRId64, t->from[k]);
        else
            n += (size_t)snprintf(buf + n, size - n, "{%" PRId64 "..%" PRId64 "}", t->from[k],
                                  t->to[k]);
        k++;
    }
}

/* A bias whose weight is declared without one is the usual case. */
static void bias_hint(arch_eval *ev, ggl_str name, char *buf, size_t size) {
    char full[300];
    size_t n = name.n < 256 ? name.n : 256;
    buf[0] = 0;
    snprintf(full, sizeof full, "%.*s", (int)n, name.s);
    if (n <= 5 || strcmp(full + n - 5, ".bias") != 0)
        return;
    strcpy(full + n - 5, ".weight");
    const arch_weight *w = arch_find_weight(ev, full);
    int line, col;
    if (!w)
        return;
    arch_line_col(w->place, &line, &col);
    snprintf(buf, size, ": its weight is declared in %s:%d without 'bias'", w->place.text->name,
             line);
}

/* --- the error -------------------------------------------------------------------------------- */

typedef struct message {
    char s[sizeof((ggl_error *)0)->msg];
    size_t n;
} message;

/* Appends what ggl_vformat makes of it, which shows control characters, as much as there is room. */
static void say(message *m, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    ggl_vformat(m->s + m->n, sizeof m->s - m->n, fmt, args);
    va_end(args);
    m->n += strlen(m->s + m->n);
}

static void say_count(message *m, size_t n, const char *what) {
    say(m, "%zu %s%s", n, what, n == 1 ? "" : "s");
}

/* Ends the line before; false: the message is long enough. */
static bool new_line(message *m, int *lines) {
    if (++*lines > MAX_LINES || m->n + LINE + TAIL > sizeof m->s)
        return false;
    m->s[m->n++] = '\n';
    m->s[m->n] = 0;
    return true;
}

static void end_line(message *m) {
    if (m->n + 1 < sizeof m->s) {
        m->s[m->n++] = '\n';
        m->s[m->n] = 0;
    }
}

static void list_all(const unread *u, message *m) {
    char text[300], hint[160];
    int lines = 0;
    size_t k = 0, i = 0;
    for (; k < u->n_key && new_line(m, &lines); k++) {
        const unread_key *x = &u->key[k];
        say(m, "  %.*s%s%s%s", (int)(x->name.n < 80 ? x->name.n : 80), x->name.s,
            arch_value_of_key(u->ev, x->name, text, 90), x->reason ? ": " : "",
            x->reason ? x->reason : "");
    }
    for (; k == u->n_key && i < u->n_tensor && new_line(m, &lines); i++) {
        const unread_tensor *t = &u->tensor[i];
        numbered(t, text, 100);
        bias_hint(u->ev, t->first, hint, sizeof hint);
        say(m, t->n > 1 ? "  %s (%zu tensors)" : "  %s", text, t->n);
        say(m, "%s", hint);
    }
    const size_t more = u->n_key - k + u->n_tensor - i;
    if (more) {
        end_line(m);
        say(m, "  and %zu more ('llm-arch show' lists all)", more);
    }
}

/* How to go on, for whoever runs the model. */
static void say_advice(const unread *u, message *m) {
    end_line(m);
    say(m, "Without them the output may be wrong. To go on at your own risk:");
    if (u->n_key == 1)
        say(m, " --ignore-key '%.*s'", (int)(u->key->name.n < 80 ? u->key->name.n : 80),
            u->key->name.s);
    else if (u->n_key)
        say(m, " --ignore-key '%s.*'", u->ev->family);
    if (u->n_tensor == 1)
        say(m, " --ignore-tensor '%.80s'", u->tensor->pattern.s);
    else if (u->n_tensor)
        say(m, " --ignore-tensor '*'");
}

static bool report(const unread *u) {
    arch_eval *ev = u->ev;
    const char *arch = ev->arch->text.name;
    message m = {.n = 0};
    if (u->n_key + u->n_tensor == 0)
        return true;
    say(&m, "%.200s: error: ", ev->src->name);
    if (u->n_key)
        say_count(&m, u->n_key, "key");
    if (u->n_key && u->n_tensor)
        say(&m, " and ");
    if (u->n_tensor)
        say_count(&m, u->n_tensors, "tensor");
    say(&m,
        u->n_key + u->n_tensors == 1 ? " of this file is not read by %.100s:"
                                     : " of this file are not read by %.100s:",
        arch);
    list_all(u, &m);
    say_advice(u, &m);
    end_line(&m);
    say(&m, "An author reads, ignores or requires each of them in %.100s.", arch);
    ev->status = GGL_FORMAT;
    if (ev->err) {
        ev->err->status = GGL_FORMAT; /* not by ggl_fail, which would show the ends of lines */
        memcpy(ev->err->msg, m.s, m.n + 1);
    }
    return false;
}

static bool make_asked(unread *u) {
    const llm_arch_ignore *r = u->ev->request;
    if (!r)
        return true;
    u->key_asked = ggl_arena_alloc(&u->ev->arena, r->n_key + 1, sizeof *u->key_asked);
    u->tensor_asked = ggl_arena_alloc(&u->ev->arena, r->n_tensor + 1, sizeof *u->tensor_asked);
    if (!u->key_asked || !u->tensor_asked)
        return arch_nomem(u->ev), false;
    memset(u->key_asked, 0, (r->n_key + 1) * sizeof *u->key_asked);
    memset(u->tensor_asked, 0, (r->n_tensor + 1) * sizeof *u->tensor_asked);
    return true;
}

bool arch_check_source(arch_eval *ev) {
    unread u = {.ev = ev};
    arch_judge *j = arch_judge_new(ev);
    bool ok = j && make_asked(&u) && find_tensors(&u) && find_keys(&u, j);
    if (ok) {
        note_request(&u);
        ok = ev->status == GGL_OK && report(&u);
    }
    arch_judge_free(j);
    ggl_index_fini(&u.index);
    ggl_free(u.key);
    ggl_free(u.tensor);
    return ok;
}
