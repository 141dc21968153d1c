/* The values of a folder's files on which an error depends, for messages (compile/blame.c). */
#include <stdio.h>
#include <string.h>

#include "conversion.h"
#include "ggl/internal/show.h"

/* Files that say how pictures are prepared. Values for pictures may be in an object of their own; the first place counts. */
const char *const llm_arch_processor_files[] = {"processor_config.json",
                                                "preprocessor_config.json"};

/* Appends the names of config.a.b, "a.b", without the first n. */
static void append_path(const arch_expr *e, int n, char *buf, size_t size) {
    const char *root;
    if (llm_arch_field_path(e, NULL, 0, &root) <= n)
        return;
    append_path(e->a, n, buf, size);
    const size_t used = strlen(buf);
    snprintf(buf + used, size - used, "%s%s", used > 0 && buf[used - 1] != '.' ? "." : "", e->name);
}

static const char *outermost_name(const arch_expr *e) {
    while (e->a->kind == EX_FIELD)
        e = e->a;
    return e->name;
}

/* True if config.x is in the object that the section's `within` line names, which is appended. */
static bool append_within(const arch_conversion *c, const arch_expr *e, char *buf, size_t size) {
    const json_value *v = llm_json_get(c->inner, outermost_name(e));
    for (const arch_mapping *m = c->section->map; v && v->kind != JSON_NULL && m; m = m->next)
        if (m->kind == MAP_WITHIN) {
            append_path(m->expr, 0, buf, size);
            return true;
        }
    return false;
}

/* Writes the file that has the value, and the object of it in which the value's name is looked up. */
static void place_text(const arch_conversion *c, const arch_expr *e, const char *root, char *file,
                       char *path, size_t size) {
    const char *name = llm_arch_convert_file(c, e);
    for (int k = 0; k < ARCH_PROCESSORS && strcmp(root, "processor") == 0; k++) {
        const json_value *v = llm_json_get(c->processor[k], outermost_name(e));
        if (!v || v->kind == JSON_NULL)
            continue;
        name = llm_arch_processor_files[k / 2];
        snprintf(path, size, "%s", k % 2 == 0 ? ARCH_PICTURES "." : "");
        break;
    }
    if (strcmp(root, "config") == 0 && append_within(c, e, path, size))
        strcat(path, ".");
    const bool is_own = (strcmp(root, "config") == 0 || strcmp(root, "rope") == 0) &&
                        !llm_arch_convert_folder(c, e);
    char text[300];
    if (is_own && c->config_path)
        snprintf(text, sizeof text, "%s", c->config_path);
    else if (strcmp(root, "target") == 0 && c->target_name)
        snprintf(text, sizeof text, "%s", c->target_name);
    else
        snprintf(text, sizeof text, "%s%s%s", c->folder ? c->folder : "", c->folder ? "/" : "",
                 name);
    ggl_show(file, size, text, strlen(text));
}

bool llm_arch_convert_value(arch_eval *ev, const arch_expr *e, bool absent, char *file, char *text,
                            size_t size) {
    const json_value *v = NULL;
    const char *root, *const *outside;
    char value[80], path[200] = "";
    const int n = llm_arch_field_path(e, NULL, 0, &root);
    if (strcmp(e->name, "architectures") == 0) /* the class, which has chosen the section */
        return false;
    /* the error that is being reported must not end the search */
    const ggl_status status = ev->status;
    ggl_error *err = ev->err;
    ev->status = GGL_OK;
    ev->err = NULL;
    const json_value *of = NULL;
    const bool found = n > 0 && llm_arch_convert_find(ev, e, &v) && v && v->kind != JSON_NULL;
    if (found && n > 1 && llm_arch_convert_find(ev, e->a, &of) && of == v)
        e = e->a; /* one number for both sides of a picture */
    ev->status = status;
    ev->err = err;
    absent = absent && !found && n > 0 && strcmp(root, "config") == 0;
    if (!found && !absent)
        return false;
    place_text(ev->conv, e, root, file, path, sizeof path - ARCH_MAX_NAME);
    if (strcmp(root, "rope") == 0)
        snprintf(path, sizeof path, "%s", llm_arch_rope_key(e->name, &outside));
    else
        append_path(e, llm_arch_convert_folder(ev->conv, e) ? 2 : 0, path, sizeof path);
    if (absent) {
        snprintf(text, size, "%s is missing", path);
        return true;
    }
    llm_arch_convert_value_text(v, value, sizeof value);
    snprintf(text, size, "%s = %s", path, value);
    return true;
}

/* A value of config.json that a line reads, and that is some number. */
typedef struct cause {
    const arch_conversion *c;
    double x;
    char text[300]; /* "": not found */
} cause;

static void try_cause(void *ctx, arch_expr *e) {
    enum { DEEPEST = 4 };
    cause *found = ctx;
    const char *name[DEEPEST], *root = "";
    const int n = llm_arch_field_path(e, name, DEEPEST, &root);
    if (found->text[0] || n < 1 || n > DEEPEST || strcmp(root, "config") != 0)
        return;
    const bool is_inner = llm_json_get(found->c->inner, name[0]) != NULL;
    const json_value *v = is_inner ? found->c->inner : found->c->config;
    for (int k = 0; v && k < n; k++)
        v = llm_json_get(v, name[k]);
    if (!v || v->kind != JSON_NUMBER || v->number != found->x)
        return;
    char path[200] = "";
    if (append_within(found->c, e, path, sizeof path - ARCH_MAX_NAME))
        strcat(path, ".");
    append_path(e, 0, path, sizeof path);
    snprintf(found->text, sizeof found->text, "%s = %.12g", path, found->x);
}

const char *llm_arch_convert_cause(const arch_conversion *c, const arch_expr *e, double x,
                                   char *text, size_t size) {
    cause found = {.c = c, .x = x};
    llm_arch_walk_expr((arch_expr *)e, try_cause, &found);
    snprintf(text, size, "%s", found.text);
    return text;
}

void llm_arch_convert_walk(const arch_eval *ev, void (*visit)(void *ctx, arch_expr *e), void *ctx) {
    for (const arch_mapping *m = ev->conv->section->map; m; m = m->next)
        llm_arch_walk_expr(m->expr, visit, ctx);
}
