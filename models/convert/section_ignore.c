/* The patterns of `ignore`, `only` and `copy` for source tensors: '*' matches anything, {n_layer} is that number,
 * {l} and {e} match the number of any layer or expert. */
#include <stdio.h>
#include <string.h>

#include "conversion.h"

#define ANY_NUMBER '\x01' /* in an expanded pattern */
#define MAX_NAME   512

/* --- patterns --------------------------------------------------------------------------------- */

/* True if one of the statements is a loop over layers, also in a stage, whose number is called so. */
static bool counts_layers(const arch_stmt *s, const char *name, size_t n) {
    bool found = false;
    for (; s && !found; s = s->next)
        found = s->kind == ST_STAGE ? counts_layers(s->arm->body, name, n)
                                    : s->kind == ST_LAYER && strlen(s->target[0].name) == n &&
                                          memcmp(s->target[0].name, name, n) == 0;
    return found;
}

/* True for the names of the layer's and the expert's number, which match any number. */
static bool counts_turns(const llm_arch *arch, const char *name, size_t n) {
    return (n == 1 && name[0] == 'e') || counts_layers(arch->body, name, n);
}

/* Returns a pattern with its {..} replaced. NULL: reported. */
static const char *expand(arch_eval *ev, const arch_mapping *m) {
    char buf[MAX_NAME], name[ARCH_MAX_NAME + 3];
    size_t n = 0;
    for (const char *s = m->name, *end; *s; s = end + 1) {
        end = *s == '{' ? strchr(s, '}') : NULL;
        const char *text = NULL;
        size_t len = end ? (size_t)(end - s - 1) : 0;
        if (end && !counts_turns(ev->arch, s + 1, len)) {
            snprintf(name, sizeof name, "{%.*s}", (int)(len < ARCH_MAX_NAME ? len : ARCH_MAX_NAME),
                     s + 1);
            if (!(text = llm_arch_expand(ev, name, m->place)))
                return NULL;
        }
        if (n + 32 > sizeof buf) {
            llm_arch_error(ev, m->place, "a name of more than %d characters", MAX_NAME - 32);
            return NULL;
        }
        if (text)
            n += (size_t)snprintf(buf + n, sizeof buf - n, "%.24s", text);
        else
            buf[n++] = end ? ANY_NUMBER : *s;
        end = end ? end : s;
    }
    const char *out = ggl_arena_strndup(&ev->conv->arena, buf, n);
    return out ? out : (llm_arch_nomem(ev), NULL);
}

bool llm_arch_convert_expand_ignored(arch_eval *ev) {
    arch_conversion *c = ev->conv;
    for (const arch_mapping *m = c->section->map; m; m = m->next) {
        const char *pattern = m->kind >= MAP_IGNORE && m->name ? expand(ev, m) : NULL;
        if (ev->status != GGL_OK)
            return false;
        if (pattern &&
            !ggl_grow(&c->ignored, &c->cap_ignored, c->n_ignored + 1, sizeof *c->ignored))
            return llm_arch_nomem(ev), false;
        if (pattern)
            c->ignored[c->n_ignored++] = (arch_ignored){pattern, m};
    }
    return true;
}

static const arch_mapping *find_pattern(const arch_conversion *c, arch_map_kind kind,
                                        ggl_str name) {
    for (size_t k = 0; k < c->n_ignored; k++)
        if (c->ignored[k].line->kind == kind &&
            llm_stars_match((ggl_str){c->ignored[k].pattern, strlen(c->ignored[k].pattern)},
                            ANY_NUMBER, name))
            return c->ignored[k].line;
    return NULL;
}

/* Looks up a tensor by its name, then with each alternative beginning of a `prefix` line
 * replaced by the line's first. */
static const arch_mapping *find_line(const arch_conversion *c, arch_map_kind kind, ggl_str name) {
    const arch_mapping *line = find_pattern(c, kind, name);
    for (const arch_mapping *m = c->section->map; m && !line; m = m->next) {
        const size_t n = m->kind == MAP_PREFIX ? strlen(m->other) : 0;
        char text[2 * MAX_NAME];
        if (m->kind != MAP_PREFIX || name.n < n || memcmp(name.s, m->other, n) != 0)
            continue;
        snprintf(text, sizeof text, "%s%.*s", m->name, (int)(name.n - n), name.s + n);
        line = find_pattern(c, kind, (ggl_str){text, strlen(text)});
    }
    return line;
}

const arch_mapping *llm_arch_convert_ignored(const arch_conversion *c, const st_tensor *t) {
    const arch_mapping *line = find_line(c, MAP_IGNORE, t->name), *only = NULL;
    if (!line && !llm_arch_convert_tensor_on_request(c, t))
        line = find_line(c, MAP_COPY, t->name);
    for (size_t k = 0; k < c->n_ignored && !only; k++)
        only = c->ignored[k].line->kind == MAP_ONLY ? c->ignored[k].line : NULL;
    return line || !only || find_line(c, MAP_ONLY, t->name) ? line : only;
}

bool llm_arch_convert_tensor_on_request(const arch_conversion *c, const st_tensor *t) {
    const llm_arch_ignore *r = c->ignore;
    return r && llm_arch_match_first(r->tensor, r->n_tensor, t->name, c->tensor_hits) < r->n_tensor;
}
