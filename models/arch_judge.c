/* What becomes of each key of a source: the descriptor names it, it is the engine's, the table of known
 * keys (known_keys.arch) calls it harmless, or nothing reads it. */
#include <stdio.h>
#include <string.h>

#include "arch_impl.h"

/* --- what the descriptor and the engine know -------------------------------------------------- */

/* Names of keys, in full or below the architecture's. */
typedef struct key_names {
    ggl_str *name;
    const arch_known_key **of; /* NULL: the engine's */
    ggl_index index;
} key_names;

static bool starts_with(ggl_str s, const char *prefix) {
    size_t n = strlen(prefix);
    return s.n >= n && memcmp(s.s, prefix, n) == 0;
}

static bool is_engine_key(ggl_str k) {
    static const char *const prefixes[] = {"general.", "tokenizer.", "split.", "quantize."};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (starts_with(k, prefixes[i]))
            return true;
    return false;
}

/* What the descriptor and the engine read; `whole`: in full. False: out of memory. */
static bool known_names(arch_eval *ev, bool whole, key_names *out) {
    static const char *const engine[] = {"context_length", "vocab_size"};
    size_t n = 2, used = 0;
    for (const arch_known_key *k = ev->arch->key; k; k = k->next)
        n++;
    out->name = ggl_arena_alloc(&ev->arena, n, sizeof *out->name);
    out->of = ggl_arena_alloc(&ev->arena, n, sizeof *out->of);
    if (!out->name || !out->of ||
        ggl_index_init(&out->index, n, sizeof *out->name, GGL_INDEX_STRINGS, NULL) != GGL_OK)
        return arch_nomem(ev), false;
    for (const arch_known_key *k = ev->arch->key; k; k = k->next)
        if (k->whole == whole) {
            out->of[used] = k;
            out->name[used++] = (ggl_str){k->name, strlen(k->name)};
        }
    for (size_t i = 0; !whole && i < sizeof engine / sizeof *engine; i++)
        out->name[used++] = (ggl_str){engine[i], strlen(engine[i])};
    for (size_t i = 0; i < used; i++)
        ggl_index_put(&out->index, out->name, i);
    return true;
}

struct arch_judge {
    arch_eval *ev;
    key_names whole, below;
    char prefix[ARCH_MAX_NAME + 8]; /* "llama." */
};

arch_judge *arch_judge_new(arch_eval *ev) {
    arch_judge *j = ggl_calloc(1, sizeof *j);
    if (!j)
        return arch_nomem(ev), NULL;
    j->ev = ev;
    snprintf(j->prefix, sizeof j->prefix, "%s.", ev->family);
    if (known_names(ev, true, &j->whole) && known_names(ev, false, &j->below))
        return j;
    arch_judge_free(j);
    return NULL;
}

void arch_judge_free(arch_judge *j) {
    if (!j)
        return;
    ggl_index_fini(&j->whole.index);
    ggl_index_fini(&j->below.index);
    ggl_free(j);
}

/* Where the descriptor names a key, or an `ignore` of it has a pattern that fits. */
static bool named(const arch_judge *j, ggl_str key, bool own, llm_arch_judged *out) {
    const size_t skip = own ? strlen(j->prefix) : 0;
    const ggl_str rest = {key.s + skip, key.n - skip};
    size_t i = ggl_index_find(&j->whole.index, j->whole.name, key);
    const key_names *names = &j->whole;
    if (i == SIZE_MAX && own) {
        names = &j->below;
        i = ggl_index_find(&names->index, names->name, rest);
    }
    const arch_known_key *k = i == SIZE_MAX ? NULL : names->of[i];
    for (const arch_known_key *p = j->ev->arch->key_pattern; i == SIZE_MAX && own && p; p = p->next)
        if (arch_match(p->name, rest.s, rest.n))
            k = p;
    out->use = !k ? LLM_ARCH_ENGINE : k->ignored ? LLM_ARCH_IGNORED : LLM_ARCH_READ;
    if (k) {
        int col;
        arch_line_col(k->place, &out->line, &col);
        out->file = k->place.text->name;
    }
    return k || i != SIZE_MAX;
}

llm_arch_judged arch_judge_key(const arch_judge *j, ggl_str key) {
    arch_eval *ev = j->ev;
    llm_arch_judged out = {.key = key};
    const bool own = starts_with(key, j->prefix);
    const size_t skip = strlen(j->prefix);
    if (!arch_step(ev, (arch_place){&ev->arch->text, 0, 1}, 16) || named(j, key, own, &out))
        return out;
    out.use = is_engine_key(key) ? LLM_ARCH_ENGINE : LLM_ARCH_FOREIGN;
    if (!own)
        return out;
    const arch_verdict v = arch_judge_known(ev, (ggl_str){key.s + skip, key.n - skip});
    out.use = v.harmless ? LLM_ARCH_HARMLESS : LLM_ARCH_UNREAD;
    out.reason = v.reason;
    if (v.harmless && v.cond) {
        char quote[200];
        out.reason = arch_strdup(ev, arch_quote(v.cond->place, quote, sizeof quote));
    }
    return out;
}

ggl_status llm_arch_judge_keys(const llm_arch *arch, const llm_arch_source *source,
                               void (*each)(void *ctx, const llm_arch_judged *key), void *ctx,
                               ggl_error *err) {
    arch_eval ev = {.arch = arch, .src = source, .err = err, .layer = -1};
    ggl_str key;
    ev.arena.limit = ARCH_MAX_MEMORY;
    arch_judge *j = arch_find_family(&ev) && arch_eval_init(&ev) ? arch_judge_new(&ev) : NULL;
    bool ok = j;
    for (size_t i = 0; ok && source->key_at && source->key_at(source->ctx, i, &key); i++) {
        const llm_arch_judged judged = arch_judge_key(j, key);
        ok = ev.status == GGL_OK;
        if (ok)
            each(ctx, &judged);
    }
    arch_judge_free(j);
    arch_eval_fini(&ev);
    return ev.status;
}

