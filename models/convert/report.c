/* The report of a dry run: what a conversion would do, line by line. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "convert_impl.h"
#include "keys.h"

typedef struct report {
    const llm_converter *c;
    void (*line)(void *ctx, const char *text);
    void *ctx;
    size_t n_faults, n_unread; /* n_unread: values of config.json */
} report;

static void say(const report *r, const char *fmt, ...) GGL_PRINTF(2, 3);
static void say(const report *r, const char *fmt, ...) {
    char text[2400];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    r->line(r->ctx, text);
}

/* Writes the number of a mapping's line: "62", or "prelude:102" for one of the prelude. NULL:
 * "". */
static const char *line_of(const arch_mapping *m, char *buf, size_t size) {
    int line, column;
    buf[0] = 0;
    if (!m)
        return buf;
    llm_arch_line_col(m->place, &line, &column);
    snprintf(buf, size, "%s%d", m->place.text->prelude ? "prelude:" : "", line);
    return buf;
}

/* --- keys ------------------------------------------------------------------------------------- */

static void list_keys(const report *r) {
    const arch_conversion *v = &r->c->conv;
    char value[160], line[32];
    say(r, "keys, %zu of them, with their lines in %s:", v->n_key, v->arch->text.name);
    for (size_t i = 0; i < v->n_key; i++) {
        const converted_key *k = &v->key[i];
        say(r, "  %-42s %-16s %-6s %s", k->name, llm_convert_value_text(k, value, sizeof value),
            llm_convert_type_text(k), line_of(k->line, line, sizeof line));
    }
}

/* --- config.json ------------------------------------------------------------------------------ */

static void list_unread(void *ctx, const arch_unread *u) {
    report *r = ctx;
    char value[120];
    if (r->n_unread++ == 0) {
        say(r, "%s", "");
        say(r, "config.json: values that no line reads (ignore config.x, if it has no effect):");
    }
    r->n_faults += !u->on_request;
    say(r, "  %-42s %s%s%.*s%s", arch_unread_text(u),
        llm_arch_json_text(u->value, value, sizeof value), u->refused.s ? "  " : "",
        (int)u->refused.n, u->refused.s ? u->refused.s : "",
        u->on_request ? "  (ignored at your request)" : "");
}

/* --- tensors ---------------------------------------------------------------------------------- */

static const char *shape_text(const st_tensor *t, char *buf, size_t size) {
    size_t n = (size_t)snprintf(buf, size, "[");
    for (int d = 0; d < t->n_dims && n < size; d++)
        n += (size_t)snprintf(buf + n, size - n, "%s%" PRId64, d ? ", " : "", t->ne[d]);
    if (n < size)
        snprintf(buf + n, size - n, "]");
    return buf;
}

/* Says who reads a tensor: "62 blk.0.attn_q.weight", "85 ignored", "UNREAD", or "?" if the
 * descriptor could not be built. */
static const char *reader_text(const report *r, const st_tensor *t, char *buf, size_t size) {
    char line[32];
    const arch_mapping *ignored = t->used ? NULL : llm_arch_convert_ignored(&r->c->conv, t);
    if (t->used)
        snprintf(buf, size, "%s %s", line_of(t->line, line, sizeof line), t->makes ? t->makes : "");
    else if (ignored)
        snprintf(buf, size, "%s ignored", line_of(ignored, line, sizeof line));
    else if (llm_arch_convert_tensor_on_request(&r->c->conv, t))
        snprintf(buf, size, "ignored at your request");
    else
        snprintf(buf, size, "%s", r->c->built ? "UNREAD" : "?");
    return buf;
}

static void list_tensors(report *r) {
    const llm_safetensors *source = r->c->source;
    char shape[128], reader[256];
    size_t n_unread = 0;
    if (!source || r->c->params.vocab_only)
        return;
    say(r, "%s", "");
    say(r, "tensors, %zu of them, with the lines that read them%s:", source->n_tensor,
        r->c->built ? "" : " (?: unknown, because the descriptor could not be built)");
    for (size_t i = 0; i < source->n_tensor; i++) {
        const st_tensor *t = &source->tensor[i];
        n_unread += r->c->built && !t->used && !llm_arch_convert_ignored(&r->c->conv, t) &&
                    !llm_arch_convert_tensor_on_request(&r->c->conv, t);
        say(r, "  %-46s %-4s %-14s %s", t->name.s, t->dtype, shape_text(t, shape, sizeof shape),
            reader_text(r, t, reader, sizeof reader));
    }
    r->n_faults += n_unread;
    if (n_unread)
        say(r, "%zu tensor%s read by no line: map or ignore %s", n_unread,
            n_unread == 1 ? " is" : "s are", n_unread == 1 ? "it" : "them");
}

/* --- the report ------------------------------------------------------------------------------- */

/* Lists the faults; a message may have several lines. */
static void list_faults(const report *r) {
    const arch_conversion *v = &r->c->conv;
    for (size_t i = 0; i < v->n_fault; i++) {
        say(r, "%s", i ? "" : "faults:");
        for (const char *s = v->fault[i]; *s;) {
            const size_t n = strcspn(s, "\n");
            say(r, "  %.*s", (int)n, s);
            s += n + (s[n] == '\n');
        }
    }
}

ggl_status llm_converter_report(const llm_converter *c, void (*line)(void *ctx, const char *text),
                                void *ctx, size_t *n_faults, ggl_error *err) {
    report r = {c, line, ctx, 0, 0};
    *n_faults = 0;
    if (!c->params.dry_run)
        return ggl_fail(err, GGL_USAGE, "this is not a dry run");
    list_keys(&r);
    ggl_status s = llm_arch_convert_each_unread(&c->conv, list_unread, &r, err);
    if (s != GGL_OK)
        return s;
    list_tensors(&r);
    if (c->conv.n_fault > 0)
        say(&r, "%s", "");
    list_faults(&r);
    r.n_faults += c->conv.n_fault;
    say(&r, "%s", "");
    if (!c->params.vocab_only && c->built)
        say(&r, "the weights themselves were not checked: NaN, or numbers too large for f16, are "
                "found when they are written");
    say(&r, r.n_faults ? "%zu fault%s: nothing would be written" : "no faults: it would be written",
        r.n_faults, r.n_faults == 1 ? "" : "s");
    *n_faults = r.n_faults;
    if (!c->eye)
        return GGL_OK;
    say(&r, "%s", "");
    say(&r, "the ear beside it, by %s:", c->eye->origin);
    size_t n_more = 0;
    s = llm_converter_report(c->eye, line, ctx, &n_more, err);
    *n_faults += n_more;
    return s;
}
