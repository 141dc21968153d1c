#include "override_options.h"

#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "quant/keys.h"
#include "report.h"

const char *const rope_scalings[] = {"none", "linear", "yarn", NULL};

static const struct rope_flag {
    const char *flag, *key;
    bool
        is_above_0; /* 0 means what a number below 0 means for the others: that the flag says nothing */
    double neutral; /* if not 0, another number that says nothing */
} rope_flags[N_ROPE_FLAGS] = {
#define OPEN_ROPE(kind, id, place, key, is_above_0, neutral, flag, ...)                            \
    {flag, key, is_above_0, neutral},
#include "open_params.def"
};

enum { ROPE_TEXT = 96 };

/* True if s begins with KEY=TYPE: of a known type. So a comma in a text ends it only if an override follows. */
static bool begins_override(const char *s) {
    static const char *const types[] = {"=int:", "=float:", "=bool:", "=str:"};
    const size_t n = strcspn(s, "=,");
    for (size_t i = 0; n > 0 && i < sizeof types / sizeof *types; i++)
        if (strncmp(s + n, types[i], strlen(types[i])) == 0)
            return true;
    return false;
}

/* Cuts a text at the commas between overrides, and adds these. */
static void split(tool_overrides *o, char *s) {
    o->text[o->n++] = s;
    for (char *comma = strchr(s, ','); comma; comma = strchr(comma + 1, ','))
        if (begins_override(comma + 1)) {
            *comma = '\0';
            o->text[o->n++] = comma + 1;
        }
}

/* Makes room for the copy, and for as many overrides as the commas and the flags allow. */
static bool make_room(tool_overrides *o) {
    size_t bytes = N_ROPE_FLAGS * ROPE_TEXT, most = o->given.n + N_ROPE_FLAGS;
    for (size_t i = 0; i < o->given.n; i++) {
        bytes += strlen(o->given.s[i]) + 1;
        for (const char *c = o->given.s[i]; *c; c++)
            most += *c == ',';
    }
    o->copy = calloc(bytes, 1);
    o->text = calloc(most, sizeof *o->text);
    return o->copy && o->text;
}

static bool says_something(const tool_overrides *o, int i) {
    const struct rope_flag *f = &rope_flags[i];
    return o->has_rope[i] &&
           (i == ROPE_SCALING || (o->rope[i] >= 0 && !(f->is_above_0 && o->rope[i] <= 0) &&
                                  (f->neutral <= 0 || o->rope[i] != f->neutral)));
}

/* Adds the overrides of the flags, which come after those of --override-kv. */
static void add_rope(tool_overrides *o, char *to) {
    o->rope[YARN_ORIG_CTX] = (double)o->orig_ctx;
    for (int i = 0; i < N_ROPE_FLAGS; i++) {
        if (!says_something(o, i))
            continue;
        if (i == ROPE_SCALING)
            snprintf(to, ROPE_TEXT, "%s:%s", rope_flags[i].key, rope_scalings[o->scaling]);
        else
            snprintf(to, ROPE_TEXT, "%s:%.17g", rope_flags[i].key,
                     i == ROPE_FREQ_SCALE ? 1 / o->rope[i] : o->rope[i]);
        o->text[o->n++] = to;
        to += ROPE_TEXT;
    }
}

int overrides_read(const char *tool, tool_overrides *o) {
    ggl_error err = {0};
    if (says_something(o, ROPE_SCALE) && says_something(o, ROPE_FREQ_SCALE))
        return tool_error(tool, 2, "--rope-scale and --rope-freq-scale say the same: give one");
    if (says_something(o, ROPE_FREQ_SCALE) && !(1 / o->rope[ROPE_FREQ_SCALE] <= FLT_MAX))
        return tool_error(tool, 2,
                          "--rope-freq-scale is %g, which divides by too much: give 1e-38 or more",
                          o->rope[ROPE_FREQ_SCALE]);
    if (!make_room(o))
        return tool_error(tool, 1, "out of memory");
    char *to = o->copy;
    for (size_t i = 0; i < o->given.n; i++) {
        const size_t n = strlen(o->given.s[i]) + 1;
        split(o, memcpy(to, o->given.s[i], n));
        to += n;
    }
    for (size_t i = 0; i < o->n; i++) {
        quant_key k;
        if (llm_quant_read_key(&k, o->text[i], &err) != GGL_OK)
            return tool_error(tool, 2, "--override-kv: %s", err.msg);
    }
    add_rope(o, to);
    return -1;
}

/* True if a message says that nothing reads a key "ARCH.rope..", without its type. */
static bool names_unread(const char *message, const char *key) {
    const size_t n = strcspn(key, "=");
    char text[ROPE_TEXT];
    snprintf(text, sizeof text, "%.*s = ", (int)n, key);
    const char *at = strstr(message, text);
    return at && strncmp(at + strcspn(at, ":\n"), ": overridden, ", 14) == 0;
}

void overrides_advise(ggl_error *err) {
    bool is_first = true, is_yarn = false;
    for (int i = 0; i < N_ROPE_FLAGS; i++) {
        const size_t n = strlen(err->msg);
        if (!names_unread(err->msg, rope_flags[i].key))
            continue;
        snprintf(err->msg + n, sizeof err->msg - n, "%s%s",
                 is_first ? "\nFlags that set them: " : ", ", rope_flags[i].flag);
        is_first = false;
        is_yarn = is_yarn || i >= YARN_ORIG_CTX;
    }
    const size_t n = strlen(err->msg);
    if (is_yarn)
        snprintf(
            err->msg + n, sizeof err->msg - n, "; YaRN's are read only with --rope-scaling yarn%s",
            names_unread(err->msg, rope_flags[YARN_ATTN_FACTOR].key)
                ? ", which computes its own magnitude: --yarn-attn-factor is for other scalings"
                : "");
}

void overrides_fini(tool_overrides *o) {
    args_list_fini(&o->given);
    free(o->text);
    free(o->copy);
    *o = (tool_overrides){.n = 0};
}
