/* The state of an evaluation, and what all of its files use: errors with their chain of calls, step
 * counts, growing lists. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "compile.h"
#include "ggl/internal/show.h"

/* --- errors, bounds --------------------------------------------------------------------------- */

arch_place llm_arch_users_place(const arch_eval *ev, arch_place p) {
    for (const arch_frame *f = ev->frame; f && p.text->prelude; f = f->up)
        p = f->call;
    return p;
}

const char *llm_arch_chain(arch_eval *ev, arch_place at) {
    char buf[400];
    size_t n = 0;
    for (const arch_frame *f = ev->frame; f && n < sizeof buf; f = f->up) {
        int line, col;
        const bool inside = at.text->prelude;
        const arch_place p = inside ? at : f->call;
        llm_arch_line_col(p, &line, &col);
        n += (size_t)snprintf(buf + n, sizeof buf - n, "%sin %s%s%s:%d:%d", n ? ", " : "  (",
                              f->fn->name, inside ? " at " : ", called from ", p.text->name, line,
                              col);
        at = f->call;
    }
    if (n == 0)
        return "";
    if (n + 2 > sizeof buf)
        n = sizeof buf - 2;
    strcpy(buf + n, ")");
    const char *out = llm_arch_strdup(ev, buf);
    return out ? out : "";
}

const char *llm_arch_strdup(arch_eval *ev, const char *s) {
    const char *out = ggl_arena_strndup(&ev->arena, s, strlen(s));
    if (!out)
        llm_arch_nomem(ev);
    return out;
}

static arch_value fail(arch_eval *ev, ggl_status s, arch_place p, const char *hint, const char *fmt,
                       va_list args) {
    if (ev->status == GGL_OK) {
        /* hints are for authors of descriptors; who uses a built-in one has another file to look at */
        if (!ev->convert && llm_arch_is_builtin(ev->arch))
            hint = NULL;
        ev->status = llm_arch_failv(ev->err, s, llm_arch_users_place(ev, p), llm_arch_chain(ev, p),
                                    hint, fmt, args);
        llm_arch_lead_with_file(ev, p);
    }
    return ARCH_FAIL;
}

arch_value llm_arch_error_hint(arch_eval *ev, ggl_status s, arch_place p, const char *hint,
                               const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    const arch_value v = fail(ev, s, p, hint, fmt, args);
    va_end(args);
    return v;
}

arch_value llm_arch_error(arch_eval *ev, arch_place p, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    const arch_value v = fail(ev, GGL_FORMAT, p, NULL, fmt, args);
    va_end(args);
    return v;
}

bool llm_arch_source_error(arch_eval *ev, const char *fmt, ...) {
    char text[900];
    va_list args;
    va_start(args, fmt);
    ggl_vformat(text, sizeof text, fmt, args);
    va_end(args);
    if (ev->status == GGL_OK)
        ev->status = ggl_fail(ev->err, GGL_FORMAT, "%s: error: %s", ev->src->name, text);
    return false;
}

arch_value llm_arch_nomem(arch_eval *ev) {
    /* the arena does not report which limit it hit */
    bool limit = ev->arena.used >= ARCH_MAX_MEMORY / 2;
    if (ev->status == GGL_OK)
        ev->status = ggl_fail(ev->err, limit ? GGL_LIMIT : GGL_NOMEM, "%s: %s", ev->arch->text.name,
                              limit ? "building it takes more than 256 MiB" : "out of memory");
    return ARCH_FAIL;
}

bool llm_arch_step(arch_eval *ev, arch_place p, int64_t n) {
    ev->steps += n;
    if (ev->steps > ARCH_MAX_STEPS)
        llm_arch_error_hint(ev, GGL_LIMIT, p, NULL, "the descriptor takes more than %d steps",
                            ARCH_MAX_STEPS);
    return ev->status == GGL_OK;
}

bool llm_arch_step_patterns(arch_eval *ev, size_t n, ggl_str name) {
    return n == 0 ||
           llm_arch_step(ev, (arch_place){&ev->arch->text, 0, 1}, (int64_t)(n * (1 + name.n / 16)));
}

bool llm_arch_push(arch_eval *ev, void *array, size_t *cap, size_t n, size_t size) {
    if (n <= *cap || ggl_grow(array, cap, n, size))
        return true;
    llm_arch_nomem(ev);
    return false;
}

bool llm_arch_add_edge(arch_eval *ev, const ggl_tensor *from, ggl_tensor *to) {
    if (!llm_arch_push(ev, &ev->read, &ev->cap_read, ev->n_read + 1, sizeof *ev->read))
        return false;
    ev->read[ev->n_read++] = (arch_edge){from, to};
    return true;
}

/* --- begin and end ---------------------------------------------------------------------------- */

bool llm_arch_find_family(arch_eval *ev) {
    const llm_arch *a = ev->arch;
    llm_arch_key k;
    llm_arch_item item = {0};
    if (!ev->src->find_key(ev->src->ctx, "general.architecture", &k) || k.is_list ||
        k.type != LLM_ARCH_STRING || !ev->src->get_item(ev->src->ctx, &k, 0, &item)) {
        llm_arch_source_error(ev, "key general.architecture is missing, or not a string");
        return false;
    }
    for (int i = 0; i < a->n_family; i++)
        if (strlen(a->key_family[i]) == item.string.n &&
            memcmp(a->key_family[i], item.string.s, item.string.n) == 0) {
            ev->family = a->key_family[i];
            return true;
        }
    static const char word[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    char shown[4 * 64 + 1], hint[96]; /* a zero byte, too, is seen */
    const size_t n = item.string.n < 64 ? item.string.n : 64;
    ggl_show(shown, sizeof shown, item.string.s, n);
    const bool is_plain = n > 0 && n == item.string.n && strlen(shown) == n &&
                          !strpbrk(shown, "\"\\:"); /* so that a descriptor can have it */
    const bool is_word = strspn(shown, word) == n && !strchr("0123456789", shown[0]);
    if (is_plain)
        snprintf(hint, sizeof hint, is_word ? "write: arch %s" : "write: arch \"%s\"", shown);
    ev->status = llm_arch_fail(
        ev->err, GGL_FORMAT, a->family_place[0], NULL, is_plain ? hint : NULL,
        "%s has the architecture '%s', which this descriptor does not have", ev->src->name, shown);
    return false;
}

bool llm_arch_eval_init(arch_eval *ev) {
    static const int slots[] = {SLOT_ARCH, SLOT_PI, SLOT_INF};
    ev->global = ggl_calloc((size_t)ev->arch->n_global, sizeof *ev->global);
    ev->line_ran = ggl_calloc((size_t)ev->arch->n_lines, 1);
    if (!ev->global || !ev->line_ran)
        return llm_arch_nomem(ev), false;
    ev->global[SLOT_ARCH].v =
        (arch_value){.kind = VAL_STRING, .str = {ev->family, strlen(ev->family)}};
    ev->global[SLOT_PI].v = llm_arch_number(3.14159265358979323846);
    ev->global[SLOT_INF].v = llm_arch_number(HUGE_VAL);
    for (int k = 0; k < 3; k++)
        ev->global[slots[k]].bound = true;
    return true;
}

void llm_arch_eval_fini(arch_eval *ev) {
    ggl_free(ev->global);
    ggl_free(ev->weight);
    ggl_free(ev->weight_name);
    ggl_index_fini(&ev->weight_index);
    ggl_index_fini(&ev->word_index);
    ggl_free(ev->read_key);
    ggl_index_fini(&ev->read_key_index);
    ggl_free(ev->part);
    ggl_free(ev->made);
    ggl_free(ev->rows_of);
    ggl_free(ev->keep);
    ggl_free(ev->call);
    ggl_free(ev->read);
    ggl_free(ev->kept);
    ggl_free(ev->ignore);
    ggl_free(ev->line_ran);
    ggl_free(ev->notes);
    ggl_arena_fini(&ev->arena);
}
