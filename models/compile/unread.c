/* Handles keys and tensors of the source that the descriptor does not read: they are harmless
 * (known_keys.arch), ignored on request, or an error. The error lists all of them. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "compile.h"

#define MAX_NOTES 65536
#define MAX_LINES 20  /* lines in the error's list */
#define LINE      220 /* maximal bytes of such a line, roughly */
#define TAIL      760 /* bytes reserved for the text after the list */
#define NAME      80  /* bytes of a name in the list */
#define BEYOND    "blk.*.*"
#define FEW       3 /* most names that are suggested one by one; for more, a pattern is */

/* --- notes ------------------------------------------------------------------------------------ */

/* True if `text` contains the line. text: NULL, or lines that each end in '
 * '. */
static bool has_line(const char *text, const char *line, size_t n) {
    for (const char *s = text; s && *s; s = strchr(s, '\n') + 1)
        if (strncmp(s, line, n) == 0 && s[n] == '\n')
            return true;
    return false;
}

void llm_arch_note(arch_eval *ev, const char *fmt, ...) {
    char buf[512];
    va_list args;
    va_start(args, fmt);
    ggl_vformat(buf, sizeof buf, fmt, args);
    va_end(args);
    size_t n = ev->notes ? strlen(ev->notes) : 0, m = strlen(buf);
    if (n > MAX_NOTES || has_line(ev->notes, buf, m))
        return;
    char *notes = ggl_calloc(n + m + 2, 1);
    if (!notes) {
        llm_arch_nomem(ev);
        return;
    }
    if (n)
        memcpy(notes, ev->notes, n);
    memcpy(notes + n, buf, m);
    notes[n + m] = '\n';
    ggl_free(ev->notes);
    ev->notes = notes;
}

/* --- names, cut to fit ------------------------------------------------------------------------ */

/* Copies a name to buf as messages show it, escaped and cut; returns buf, which has room for
 * NAME + 3 bytes. */
static const char *shown(ggl_str name, char *buf) {
    char all[4 * (NAME + 4) + 1];
    ggl_show(all, sizeof all, name.s, name.n < NAME + 4 ? name.n : NAME + 4);
    llm_arch_cut(all, NAME);
    return strcpy(buf, all);
}

bool llm_arch_is_pasteable(const char *s, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!((s[i] >= 'a' && s[i] <= 'z') || (s[i] >= 'A' && s[i] <= 'Z') ||
              (s[i] >= '0' && s[i] <= '9') || (s[i] && strchr("._-*", s[i]))))
            return false;
    return n > 0 && n <= NAME;
}

/* --- what is ignored on request --------------------------------------------------------------- */

typedef struct asked { /* matches of a pattern */
    size_t n_own;      /* matching names that no earlier pattern matches */
    ggl_str first;     /* the first of these */
} asked;

typedef struct requests { /* one element per pattern of keys, or of tensors */
    asked *asked;
    size_t *hits; /* all matching names */
} requests;

typedef struct unread_key {
    ggl_str name;
    const char *reason, *near; /* as in llm_arch_judged */
    bool is_changed;           /* the user has set it: it is no fault of the file */
} unread_key;

/* Unread tensors whose names differ only in numbers: "blk.*.ffn_gate.*.weight". */
typedef struct unread_tensor {
    ggl_str pattern;
    size_t n;
    int n_numbers;
    int64_t from[4], to[4];
    ggl_str first;
    bool is_beyond; /* tensors of layers that the graph does not have: the pattern is BEYOND */
} unread_tensor;

typedef struct unread_part { /* unread tensors of a part that text does not need */
    const char *what;
    size_t n;
} unread_part;

typedef struct unread {
    arch_eval *ev;
    bool is_early; /* not all lines have run */
    unread_key *key;
    size_t n_key, cap_key;
    unread_tensor *tensor;
    size_t n_tensor, cap_tensor, n_tensors;
    int64_t last_layer; /* of those whose tensors are read; -1: there is none */
    ggl_index index;    /* of `tensor`, by pattern */
    unread_part part[16];
    int n_part;
    requests key_asked, tensor_asked; /* matches of ev->request */
} unread;

/* True if one of the user's patterns matches. Counts the name for each matching pattern, and as
 * the first one's own. */
static bool on_request(const unread *u, const char *const *pattern, size_t n, const requests *r,
                       ggl_str name) {
    if (!llm_arch_step_patterns(u->ev, n, name))
        return false;
    const size_t i = llm_arch_match_first(pattern, n, name, r->hits);
    if (i < n && r->asked[i].n_own++ == 0)
        r->asked[i].first = name;
    return i < n;
}

/* Returns the k-th pattern of the request, keys first; *hits: the names that it matches. */
static const char *request_at(const unread *u, size_t k, bool *is_key, size_t *hits) {
    const llm_arch_ignore *r = u->ev->request;
    *is_key = k < r->n_key;
    *hits = *is_key ? u->key_asked.hits[k] : u->tensor_asked.hits[k - r->n_key];
    return *is_key ? r->key[k] : r->tensor[k - r->n_key];
}

/* Writes the names that a pattern matched: "12 keys x.*", or the one name with its value. */
static void describe_asked(const unread *u, bool key, const char *pattern, const asked *a,
                           char *buf, size_t size) {
    char value[128], name[NAME + 3];
    if (a->n_own > 1)
        snprintf(buf, size, "%zu %s %s", a->n_own, key ? "keys" : "tensors",
                 shown((ggl_str){pattern, strlen(pattern)}, name));
    else
        snprintf(buf, size, "%s%s", shown(a->first, name),
                 key ? llm_arch_value_of_key(u->ev, a->first, value, sizeof value) : "");
}

/* Notes everything that was ignored on request, and each pattern that matches nothing. */
static void note_request(unread *u) {
    const llm_arch_ignore *r = u->ev->request;
    char line[400] = "", one[240], name[NAME + 3];
    size_t used = 0, hits;
    bool key;
    for (size_t i = 0; r && i < r->n_key + r->n_tensor; i++) {
        const char *pattern = request_at(u, i, &key, &hits);
        const asked *a = key ? &u->key_asked.asked[i] : &u->tensor_asked.asked[i - r->n_key];
        if (hits == 0) {
            llm_arch_note(u->ev, "%s: no unread %s matches the pattern '%s' to ignore",
                          u->ev->src->name, key ? "key" : "tensor",
                          shown((ggl_str){pattern, strlen(pattern)}, name));
            continue;
        }
        if (a->n_own == 0)
            continue;
        describe_asked(u, key, pattern, a, one, sizeof one);
        if (used && used + strlen(one) + 2 >= sizeof line) {
            llm_arch_note(u->ev, "ignored at your request: %s", line);
            used = 0;
        }
        used += (size_t)snprintf(line + used, sizeof line - used, "%s%s", used ? ", " : "", one);
    }
    if (used)
        llm_arch_note(u->ev, "ignored at your request: %s", line);
}

/* --- keys ------------------------------------------------------------------------------------- */

static bool ignored(arch_eval *ev, ggl_str name) {
    return llm_arch_step_patterns(ev, ev->n_ignore, name) &&
           arch_match_any(ev->ignore, ev->n_ignore, name);
}

/* True for NAME.scale if NAME.weight is ignored. */
static bool is_ignored_factor(arch_eval *ev, ggl_str name) {
    static const char end[] = ".scale";
    const size_t n = sizeof end - 1;
    char weight[512];
    if (name.n <= n || name.n > 480 || memcmp(name.s + name.n - n, end, n) != 0)
        return false;
    const int m = snprintf(weight, sizeof weight, "%.*s.weight", (int)(name.n - n), name.s);
    return ignored(ev, (ggl_str){weight, (size_t)m});
}

/* Returns the reason in the message about a changed key that nothing reads; it may propose another key. */
static const char *overridden(arch_eval *ev, const llm_arch_judged *judged) {
    static const char plain[] = "overridden, but nothing reads it";
    char key[2 * ARCH_MAX_NAME], text[3 * ARCH_MAX_NAME];
    snprintf(key, sizeof key, "%.*s", (int)(judged->key.n < sizeof key ? judged->key.n : 0),
             judged->key.s);
    const char *meant =
        judged->is_foreign ? llm_arch_meant_of_family(ev->arch, ev->family, key) : NULL;
    if (!meant)
        return plain;
    snprintf(text, sizeof text, "%s; did you mean %s.%s?", plain, ev->family, meant);
    const char *copy = llm_arch_strdup(ev, text);
    return copy ? copy : plain;
}

/* A key that the user changed has to be read by a line that ran, or by the engine: that a line names or ignores it, or that it
 * is harmless, is not enough. Returns true if it is changed and unread. */
static bool judge_change(const unread *u, size_t i, llm_arch_judged *judged) {
    const llm_arch_source *s = u->ev->src;
    const bool is_used = llm_arch_engine_reads(u->ev, judged->key) ||
                         llm_arch_was_read(u->ev, judged->key) ||
                         (u->is_early && judged->use == LLM_ARCH_READ);
    if (is_used || !s->is_changed || !s->is_changed(s->ctx, i))
        return false;
    if (judged->use != LLM_ARCH_UNREAD || !judged->reason)
        judged->reason = overridden(u->ev, judged);
    judged->use = LLM_ARCH_UNREAD;
    return true;
}

/* Collects the unread keys that are not ignored on request. */
static bool find_keys(unread *u, arch_judge *j) {
    arch_eval *ev = u->ev;
    const llm_arch_ignore *r = ev->request;
    ggl_str key;
    for (size_t i = 0; ev->src->key_at && ev->src->key_at(ev->src->ctx, i, &key); i++) {
        llm_arch_judged judged = llm_arch_judge_key(j, key);
        if (ev->status != GGL_OK)
            return false;
        const bool is_changed = judge_change(u, i, &judged);
        const bool maybe = judged.use == LLM_ARCH_IGNORED && judged.reason;
        if (judged.use != LLM_ARCH_UNREAD && !maybe)
            continue;
        if ((r && on_request(u, r->key, r->n_key, &u->key_asked, key)) || maybe)
            continue;
        if (!llm_arch_push(ev, &u->key, &u->cap_key, u->n_key + 1, sizeof *u->key))
            return false;
        u->key[u->n_key++] = (unread_key){key, judged.reason, judged.near, is_changed};
    }
    return ev->status == GGL_OK;
}

/* --- tensors ---------------------------------------------------------------------------------- */

int llm_arch_number_pattern(ggl_str name, char *buf, size_t size, int64_t number[4]) {
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

/* Returns the last layer whose tensors the graph reads, also in stages after its layers; -1: there is none. */
static int64_t last_layer_of(const arch_eval *ev) {
    char buf[256];
    int64_t last = -1, number[4];
    for (size_t i = 0; i < ev->n_weight; i++)
        if (llm_arch_number_pattern(ev->weight_name[i], buf, sizeof buf, number) > 0 &&
            strncmp(buf, "blk.*.", 6) == 0 && number[0] > last)
            last = number[0];
    return last;
}

/* Adds a tensor to the group of names that differ only in numbers. All tensors of layers that the graph does not have are one group:
 * they have one cause. */
static bool add_tensor(unread *u, ggl_str name) {
    char buf[256];
    int64_t number[4] = {0};
    int n_numbers = llm_arch_number_pattern(name, buf, sizeof buf, number);
    arch_eval *ev = u->ev;
    const bool is_beyond =
        u->last_layer >= 0 && strncmp(buf, "blk.*.", 6) == 0 && number[0] > u->last_layer;
    if (is_beyond) {
        strcpy(buf, BEYOND);
        n_numbers = 1;
    }
    if (!llm_arch_push(ev, &u->tensor, &u->cap_tensor, u->n_tensor + 1, sizeof *u->tensor))
        return false;
    unread_tensor *t = &u->tensor[u->n_tensor];
    *t = (unread_tensor){.pattern = {buf, strlen(buf)},
                         .n_numbers = n_numbers,
                         .first = name,
                         .is_beyond = is_beyond};
    size_t at = ggl_index_find(&u->index, u->tensor, t->pattern);
    if (at == SIZE_MAX) {
        if (!(t->pattern.s = llm_arch_strdup(ev, buf)))
            return false;
        if (arch_index_room(&u->index, u->tensor, u->n_tensor + 1, sizeof *t, NULL) != GGL_OK)
            return llm_arch_nomem(ev), false;
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

/* True for tensors of modules after the pooling (llm/internal/head.h), which are no part of the graph. */
static bool is_of_head(ggl_str name) {
    static const char head[] = "sentence.";
    return name.n >= sizeof head && memcmp(name.s, head, sizeof head - 1) == 0;
}

/* Collects the unread tensors that are not ignored on request, and notes those of parts that
 * text does not need. */
static bool find_tensors(unread *u) {
    arch_eval *ev = u->ev;
    const llm_arch_ignore *r = ev->request;
    ggl_str name;
    char full[512];
    u->last_layer = last_layer_of(ev);
    for (size_t i = 0; ev->src->tensor_at && ev->src->tensor_at(ev->src->ctx, i, &name); i++) {
        snprintf(full, sizeof full, "%.*s", (int)(name.n < 500 ? name.n : 500), name.s);
        if (llm_arch_find_weight(ev, full) || ignored(ev, name) || is_of_head(name) ||
            is_ignored_factor(ev, name))
            continue;
        const char *part = llm_arch_part_of_tensor(ev, name);
        if (ev->status != GGL_OK)
            return false;
        if (ev->params && ev->params->unread)
            ev->params->unread(ev->params->ctx, i, part);
        if (part)
            add_part(u, part);
        else if (!(r && on_request(u, r->tensor, r->n_tensor, &u->tensor_asked, name)) &&
                 !add_tensor(u, name))
            return false;
    }
    for (int k = 0; k < u->n_part; k++)
        llm_arch_note(ev, "%s: %zu tensor%s of %s %s not used", ev->src->name, u->part[k].n,
                      u->part[k].n == 1 ? "" : "s", u->part[k].what,
                      u->part[k].n == 1 ? "is" : "are");
    return ev->status == GGL_OK;
}

/* Writes the names of a group as "blk.{0..23}.attn_k.bias". */
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

/* Writes a hint for a bias without a weight: ': it has no weight; declared by exp_probs_b [64]
 * from "blk.{l}.exp_probs_b.bias"'. */
static void lone_bias_hint(const arch_eval *ev, const char *name, char *buf, size_t size) {
    const arch_stmt *s = ev->arch->body;
    char shape[64], prefix[ARCH_MAX_NAME + 8] = "";
    llm_arch_tensor t = {.name = name, .optional = true};
    const char *dot = strncmp(name, "blk.", 4) == 0 ? strchr(name + 4, '.') : NULL;
    const char *stem = dot ? dot + 1 : name;
    while (s && s->kind != ST_LAYER)
        s = s->next;
    if ((dot && !s) || !ev->src->find_tensor(ev->src->ctx, &t))
        return;
    if (dot)
        snprintf(prefix, sizeof prefix, "blk.{%s}.", s->target[0].name);
    size_t n = (size_t)snprintf(shape, sizeof shape, "%lld", (long long)t.ne[0]);
    for (int d = 1; d < t.n_dims && n < sizeof shape; d++)
        n += (size_t)snprintf(shape + n, sizeof shape - n, ", %lld", (long long)t.ne[d]);
    const int word = (int)strcspn(stem, ".");
    if ((size_t)word + strlen(stem) + strlen(prefix) < 60)
        snprintf(buf, size, ": it has no weight; declared by %.*s [%s] from \"%s%.60s\"", word,
                 stem, shape, prefix, stem);
}

/* Writes a hint for an unread bias, usually that its weight is declared without 'bias'; else "". */
static void bias_hint(arch_eval *ev, ggl_str name, char *buf, size_t size) {
    char full[300], bias[300];
    size_t n = name.n < 256 ? name.n : 256;
    buf[0] = 0;
    snprintf(full, sizeof full, "%.*s", (int)n, name.s);
    if (n <= 5 || strcmp(full + n - 5, ".bias") != 0)
        return;
    strcpy(bias, full);
    strcpy(full + n - 5, ".weight");
    const arch_weight *w = llm_arch_find_weight(ev, full);
    llm_arch_tensor t = {.name = full, .optional = true};
    int line, col;
    if (!w && !ev->src->find_tensor(ev->src->ctx, &t))
        lone_bias_hint(ev, bias, buf, size);
    if (!w)
        return;
    llm_arch_line_col(w->place, &line, &col);
    snprintf(buf, size, ": its weight is declared in %s:%d without 'bias'", w->place.text->name,
             line);
}

/* Writes which keys say that the layers end before these tensors. */
static void layers_hint(const unread *u, char *buf, size_t size) {
    char keys[200];
    llm_arch_keys_of_layers(u->ev, false, keys, sizeof keys);
    snprintf(buf, size, ": the last layer is blk.%" PRId64 "%s%s", u->last_layer,
             keys[0] ? ", by " : "", keys);
}

/* --- the error -------------------------------------------------------------------------------- */

typedef struct message {
    char s[sizeof((ggl_error *)0)->msg];
    size_t n, tail; /* tail: bytes reserved for the text after the list */
} message;

/* Appends a formatted text with control characters escaped, as far as there is room. */
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

/* Ends the previous line. Returns false if the message is long enough. */
static bool new_line(message *m, int *lines) {
    if (++*lines > MAX_LINES || m->n + LINE + m->tail > sizeof m->s)
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

/* Appends a line for each unread key and group of tensors, as many as there is room for. */
static void list_all(const unread *u, message *m) {
    char text[300], hint[260], name[NAME + 3];
    int lines = 0;
    size_t k = 0, i = 0;
    for (; k < u->n_key && new_line(m, &lines); k++) {
        const unread_key *x = &u->key[k];
        say(m, "  %s%s%s%s", shown(x->name, name),
            llm_arch_value_of_key(u->ev, x->name, text, sizeof text), x->reason ? ": " : "",
            x->reason ? x->reason : "");
        if (x->near && !x->reason)
            say(m, ": did you mean %s.%s?", u->ev->family, x->near);
    }
    for (; k == u->n_key && i < u->n_tensor && new_line(m, &lines); i++) {
        const unread_tensor *t = &u->tensor[i];
        if (t->is_beyond && t->n == 1)
            shown(t->first, text);
        else
            numbered(t, text, sizeof text);
        llm_arch_cut(text, 100);
        if (t->is_beyond)
            layers_hint(u, hint, sizeof hint);
        else
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

/* Says how the caller ignores keys, or tensors, of this name: by a flag, or by a member. */
static void say_ignore(const unread *u, message *m, bool key, const char *name, const char *end) {
    const bool member = u->ev->request && u->ev->request->are_members;
    say(m, "%signore%c%s '%s%s'", member ? "" : "--", member ? '_' : '-', key ? "key" : "tensor",
        name, end);
}

static void suggest(const unread *u, message *m, bool key, const char *name, const char *end) {
    say(m, " ");
    say_ignore(u, m, key, name, end);
}

/* Returns the key's namespace, what stands before its first dot. */
static ggl_str namespace_of(ggl_str key) {
    const char *dot = memchr(key.s, '.', key.n);
    return (ggl_str){key.s, dot ? (size_t)(dot - key.s) : key.n};
}

/* Collects the namespaces of the unread keys, each once. Returns how many there are; FEW + 1: more than FEW, or one that cannot be pasted. */
static size_t find_namespaces(const unread *u, ggl_str out[FEW]) {
    size_t n = 0;
    for (size_t i = 0; i < u->n_key; i++) {
        const ggl_str x = namespace_of(u->key[i].name);
        size_t k = 0;
        while (k < n && !(out[k].n == x.n && memcmp(out[k].s, x.s, x.n) == 0))
            k++;
        if (k < n)
            continue;
        if (n == FEW || !llm_arch_is_pasteable(x.s, x.n))
            return FEW + 1;
        out[n++] = x;
    }
    return n;
}

/* Suggests each key while they are few, else a pattern for each namespace. */
static void suggest_keys(const unread *u, message *m) {
    bool each = u->n_key <= FEW;
    for (size_t i = 0; each && i < u->n_key; i++)
        each = llm_arch_is_pasteable(u->key[i].name.s, u->key[i].name.n);
    char name[NAME + 3];
    ggl_str space[FEW];
    const size_t n = each ? 0 : find_namespaces(u, space);
    for (size_t i = 0; each && i < u->n_key; i++)
        suggest(u, m, true, shown(u->key[i].name, name), "");
    for (size_t i = 0; i < n && n <= FEW; i++)
        suggest(u, m, true, shown(space[i], name), ".*");
}

static void suggest_tensors(const unread *u, message *m) {
    bool each = u->n_tensor <= FEW;
    for (size_t i = 0; each && i < u->n_tensor; i++)
        each = llm_arch_is_pasteable(u->tensor[i].pattern.s, u->tensor[i].pattern.n);
    for (size_t i = 0; each && i < u->n_tensor; i++) {
        const unread_tensor *t = &u->tensor[i];
        char one[64] = "";
        if (t->is_beyond && t->from[0] == t->to[0])
            snprintf(one, sizeof one, "blk.%" PRId64 ".*", t->from[0]);
        suggest(u, m, false, one[0] ? one : t->pattern.s, "");
    }
    if (!each)
        suggest(u, m, false, "*", "");
}

/* Points out a mistake in the user's patterns: the first that matches nothing. */
static void say_unfit(const unread *u, message *m) {
    const llm_arch_ignore *r = u->ev->request;
    char name[NAME + 3];
    bool key;
    size_t hits;
    for (size_t i = 0; r && i < r->n_key + r->n_tensor; i++) {
        const char *pattern = request_at(u, i, &key, &hits);
        if (hits > 0)
            continue;
        end_line(m);
        say(m, "Nothing unread matches ");
        say_ignore(u, m, key, shown((ggl_str){pattern, strlen(pattern)}, name), "");
        say(m, ".");
        return;
    }
}

/* Tells the user how to run the model anyway. */
static void say_advice(const unread *u, message *m) {
    say_unfit(u, m);
    end_line(m);
    say(m, "Without %s the output may be wrong.", u->n_key + u->n_tensor == 1 ? "it" : "them");
    if (u->ev->request && u->ev->request->is_fixed)
        return;
    const size_t end = m->n;
    say(m, " To continue at your own risk:");
    const size_t begin = m->n;
    if (u->n_key)
        suggest_keys(u, m);
    if (u->n_tensor)
        suggest_tensors(u, m);
    if (m->n == begin) /* no pattern can be pasted */
        m->s[m->n = end] = 0;
}

/* Says how many keys and tensors are unread, and lists them. */
static void say_unread(const unread *u, message *m) {
    say(m, "%.200s: error: ", u->ev->src->name);
    if (u->n_key)
        say_count(m, u->n_key, "key");
    if (u->n_key && u->n_tensor)
        say(m, " and ");
    if (u->n_tensor)
        say_count(m, u->n_tensors, "tensor");
    say(m,
        u->n_key + u->n_tensors == 1 ? " of this file is not read by %.100s:"
                                     : " of this file are not read by %.100s:",
        u->ev->arch->text.name);
    list_all(u, m);
}

static bool report(const unread *u) {
    arch_eval *ev = u->ev;
    message m = {.tail = TAIL};
    if (u->n_key + u->n_tensor == 0)
        return true;
    bool is_of_file = u->n_tensor > 0;
    for (size_t i = 0; i < u->n_key; i++)
        is_of_file = is_of_file || !u->key[i].is_changed;
    say_unread(u, &m);
    say_advice(u, &m);
    if (!llm_arch_is_builtin(ev->arch)) {
        end_line(&m);
        say(&m, "If you write the descriptor, read, ignore or require each of them in %.100s.",
            ev->arch->text.name);
    }
    ev->status = is_of_file ? GGL_FORMAT : GGL_USAGE;
    if (ev->err) {
        ev->err->status = ev->status; /* ggl_fail would escape the line ends */
        memcpy(ev->err->msg, m.s, m.n + 1);
    }
    return false;
}

static bool make_requests(arch_eval *ev, requests *r, size_t n) {
    r->asked = ggl_arena_alloc(&ev->arena, n + 1, sizeof *r->asked);
    r->hits = ggl_arena_alloc(&ev->arena, n + 1, sizeof *r->hits);
    return (r->asked && r->hits) || (llm_arch_nomem(ev), false);
}

static bool make_asked(unread *u) {
    const llm_arch_ignore *r = u->ev->request;
    return !r || (make_requests(u->ev, &u->key_asked, r->n_key) &&
                  make_requests(u->ev, &u->tensor_asked, r->n_tensor));
}

bool llm_arch_check_source(arch_eval *ev) {
    unread u = {.ev = ev};
    arch_judge *j = llm_arch_judge_new(ev);
    bool ok = j && make_asked(&u) && find_tensors(&u) && find_keys(&u, j);
    if (ok) {
        note_request(&u);
        ok = ev->status == GGL_OK && report(&u);
    }
    llm_arch_judge_free(j);
    ggl_index_fini(&u.index);
    ggl_free(u.key);
    ggl_free(u.tensor);
    return ok;
}

/* Puts the list of unread keys before the error, which they may have caused. */
static void report_before(const unread *u, const ggl_error *error) {
    message m = {.tail = strlen(error->msg) + 40};
    if (u->n_key == 0 || m.tail + 2 * LINE + 200 > sizeof m.s)
        return;
    say_unread(u, &m);
    end_line(&m);
    say(&m, "This may be the cause of:");
    end_line(&m);
    memcpy(m.s + m.n, error->msg, strlen(error->msg) + 1);
    memcpy(u->ev->err->msg, m.s, sizeof m.s);
}

void llm_arch_report_keys_before(arch_eval *ev) {
    const ggl_status status = ev->status;
    if (!ev->err || ev->refused || (status != GGL_FORMAT && status != GGL_SHAPE))
        return;
    const ggl_error error = *ev->err;
    unread u = {.ev = ev, .is_early = true};
    ev->status = GGL_OK;
    arch_judge *j = llm_arch_judge_new(ev);
    const bool ok = j && make_asked(&u) && find_keys(&u, j);
    *ev->err = error;
    if (ok)
        report_before(&u, &error);
    ev->status = status;
    llm_arch_judge_free(j);
    ggl_free(u.key);
}
