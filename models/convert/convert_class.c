/* Chooses the descriptor and its convert section by the folder's class name, and names the model. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/folder_name.h"
#include "convert_impl.h"
#include "ggl/internal/nearest.h"
#include "ggl/internal/os_fs.h"
#include "ggl/internal/text.h"

/* Makes "architectures" a list of the class that was chosen, where config.json lacks it or names another one: sections ask it for their
 * class. False: out of memory. */
static bool name_class(llm_converter *c) {
    json_value *root = &c->config->root;
    if (root->kind != JSON_OBJECT)
        return true;
    const json_value *old = llm_json_get(root, "architectures");
    const size_t n = root->n, all = n + !old, at = old ? (size_t)(old - root->item) : n;
    json_value *item = ggl_arena_alloc(&c->arena, 2 * all, sizeof *item),
               *name = ggl_arena_alloc(&c->arena, 1, sizeof *name);
    if (!item || !name)
        return false;
    *name =
        (json_value){.kind = JSON_STRING, .n = (uint32_t)strlen(c->class_name), .s = c->class_name};
    for (size_t i = 0; i < n; i++) {
        item[i] = root->item[i];
        item[all + i] = root->item[n + i];
    }
    item[at] = (json_value){.kind = JSON_ARRAY, .n = 1, .item = name};
    if (!old)
        item[all + at] = (json_value){
            .kind = JSON_STRING, .n = sizeof "architectures" - 1, .s = "architectures"};
    root->item = item;
    root->n = (uint32_t)all;
    return true;
}

ggl_status llm_converter_choose_class(llm_converter *c, const char *path, ggl_error *err) {
    const json_value *list = llm_json_get_kind(&c->config->root, "architectures", JSON_ARRAY);
    const json_value *first = list && list->n > 0 ? list->item : NULL;
    const char *given = c->params.arch_class;
    ggl_str class_name = {given, given ? strlen(given) : 0};
    if (!given && first && first->kind == JSON_STRING)
        class_name = json_str(first);
    if (class_name.n == 0 && c->usual_class)
        class_name = (ggl_str){c->usual_class, strlen(c->usual_class)};
    if (class_name.n == 0 || class_name.n > ARCH_MAX_NAME || memchr(class_name.s, 0, class_name.n))
        return ggl_fail(err, GGL_FORMAT,
                        "%s: \"architectures\" is not a list with a name, so the kind of model is "
                        "unknown; set it by --arch-class NAME",
                        path);
    char *name = ggl_arena_strndup(&c->arena, class_name.s, class_name.n);
    if (!name)
        return llm_converter_no_memory(err);
    for (size_t i = 0; i < class_name.n; i++)
        if ((unsigned char)name[i] < 0x20)
            name[i] = '?';
    c->class_name = name;
    const bool is_named = !given && first && first->kind == JSON_STRING;
    return is_named || name_class(c) ? GGL_OK : llm_converter_no_memory(err);
}

/* --- the descriptor --------------------------------------------------------------------------- */

/* Class names for a message: the nearest one, and those that are known. family: only those of
 * its family; NULL: all. */
typedef struct classes {
    ggl_nearest near;
    char nearest[ARCH_MAX_NAME + 1];
    const char *family; /* NULL: list all */
    char known[600];
    size_t used, n_more;
} classes;

/* True if two class names begin with the same letters, up to a digit, '_' or "For": Qwen3VLFor..
 * and Qwen2For.. */
static bool same_family(const char *a, const char *b) {
    size_t n = 0, m = 0;
    for (; (a[n] | 0x20) >= 'a' && (a[n] | 0x20) <= 'z' && strncmp(a + n, "For", 3) != 0;)
        n++;
    for (; (b[m] | 0x20) >= 'a' && (b[m] | 0x20) <= 'z' && strncmp(b + m, "For", 3) != 0;)
        m++;
    n = n < m ? n : m;
    return n > 2 && ggl_case_compare_n(a, b, n) == 0;
}

/* Starts a search for the nearest class. At most two letters may differ, because most names have
 * the same end. */
static classes classes_near(const char *name) {
    classes x = {.near = ggl_nearest_to(name)};
    x.near.distance = x.near.distance < 3 ? x.near.distance : 3;
    return x;
}

/* True for the descriptor of an eye: it makes rows of pictures for a text model, whose descriptor may have a section for the same
 * class. */
static bool is_eye(const llm_arch *arch) {
    return llm_arch_has_output(arch, "rows") && !llm_arch_reads_text(arch);
}

bool llm_converter_hears(const llm_arch *arch) {
    for (const arch_stmt *s = arch->body; s; s = s->next)
        if (s->kind == ST_INPUT && s->other && s->other->kind == EX_CALL &&
            (s->other->builtin == FN_SOUND || s->other->builtin == FN_SAMPLES))
            return true;
    return false;
}

static void add_classes(classes *x, const llm_arch *arch) {
    for (const arch_convert *s = arch->convert; s; s = s->next)
        for (int i = 0; i < s->n_name; i++) {
            const size_t before = x->near.distance;
            ggl_nearest_try(&x->near, s->name[i], SIZE_MAX);
            if (x->near.distance < before) /* copied, because the descriptor is freed */
                snprintf(x->nearest, sizeof x->nearest, "%s", s->name[i]);
            if ((x->family && !same_family(x->family, s->name[i])) ||
                x->used + strlen(s->name[i]) + 3 > sizeof x->known)
                x->n_more++;
            else
                x->used += (size_t)snprintf(x->known + x->used, sizeof x->known - x->used, "%s%s",
                                            x->used ? ", " : "", s->name[i]);
        }
}

/* Reports that there is no section for the class, with those that there are. */
static ggl_status unknown_class(const llm_converter *c, const classes *x, const char *who,
                                ggl_error *err) {
    char more[100] = "";
    if (x->n_more)
        snprintf(more, sizeof more, "%s%zu %s (docs/models.md lists them)", x->used ? " and " : "",
                 x->n_more, x->used ? "others" : "classes");
    return ggl_fail(err, GGL_NOT_FOUND,
                    "%s: %s '%s', which %s names%s%s%s. There are sections for %s%s. To use "
                    "another descriptor: --arch FILE",
                    c->folder, who, c->class_name,
                    c->params.arch_class ? "--arch-class" : "config.json",
                    x->nearest[0] ? " (did you mean '" : "", x->nearest, x->nearest[0] ? "'?)" : "",
                    x->used || more[0] ? x->known : "nothing", more);
}

/* Sets c->conv.section to the section of c->arch for the class, if its condition holds; else to NULL. */
static ggl_status find_section(llm_converter *c, ggl_error *err) {
    bool applies = false;
    c->conv.arch = c->arch;
    c->conv.section =
        llm_arch_find_convert(c->arch, (ggl_str){c->class_name, strlen(c->class_name)});
    const ggl_status s =
        c->conv.section ? llm_arch_convert_applies(&c->conv, &applies, err) : GGL_OK;
    if (s == GGL_OK && c->conv.section && !applies) {
        char quote[256];
        int line, column;
        llm_arch_line_col(c->conv.section->place, &line, &column);
        c->passed =
            ggl_arena_printf(&c->arena, "%s:%d, if %s", c->arch->text.name, line,
                             llm_arch_quote(c->conv.section->cond->place, quote, sizeof quote));
        if (!c->passed)
            return llm_converter_no_memory(err);
    }
    c->conv.section = applies ? c->conv.section : NULL;
    return s;
}

/* Reports a class whose sections are for other folders than this one. */
static ggl_status other_folders(const llm_converter *c, ggl_error *err) {
    return ggl_fail(
        err, GGL_UNSUPPORTED,
        "%s: the convert section for '%s' is for other folders: %s, which is not so here",
        c->folder, c->class_name, c->passed);
}

static ggl_status use_file(llm_converter *c, ggl_error *err) {
    ggl_status s = llm_arch_open_given(&c->arch, c->params.arch_path, NULL, err);
    if (s != GGL_OK)
        return s;
    c->origin = c->params.arch_path;
    s = find_section(c, err);
    if (s != GGL_OK || c->conv.section)
        return s;
    if (c->passed)
        return other_folders(c, err);
    classes x = classes_near(c->class_name);
    char who[600];
    snprintf(who, sizeof who, "%.500s has no convert section for", c->params.arch_path);
    add_classes(&x, c->arch);
    return unknown_class(c, &x, who, err);
}

static bool mentions(const char *text, size_t n, const char *word) {
    const size_t n_word = strlen(word);
    for (const char *at = text; n - (size_t)(at - text) >= n_word; at++) {
        at = memchr(at, word[0], n - (size_t)(at - text) - n_word + 1);
        if (!at)
            return false;
        if (memcmp(at, word, n_word) == 0)
            return true;
    }
    return false;
}

static ggl_status no_builtin(llm_converter *c, ggl_error *err) {
    const char *name, *text;
    size_t n;
    const bool eye = c->params.eye;
    classes x = classes_near(c->class_name);
    x.family = eye ? NULL : c->class_name;
    bool has_eye = false;
    for (int k = 0; llm_arch_builtin(k, &name, &text, &n); k++) {
        llm_arch *arch;
        ggl_status s = llm_arch_parse(&arch, text, n, name, err);
        if (s != GGL_OK)
            return s;
        if (is_eye(arch) == eye)
            add_classes(&x, arch);
        else if (!eye &&
                 llm_arch_find_convert(arch, (ggl_str){c->class_name, strlen(c->class_name)}))
            has_eye = true;
        llm_arch_free(arch);
    }
    if (has_eye)
        return ggl_fail(err, GGL_NOT_FOUND,
                        "%s: no built-in descriptor converts the text model of '%s', which %s "
                        "names, but one converts its eye or ear: open that beside a text model in "
                        "another file (-m MODEL --mmproj %s), or write its file (llm-convert %s "
                        "--mmproj FILE)",
                        c->folder, c->class_name,
                        c->params.arch_class ? "--arch-class" : "config.json", c->folder,
                        c->folder);
    return unknown_class(c, &x,
                         eye ? "no built-in descriptor converts the eye or ear of"
                             : "no built-in descriptor converts",
                         err);
}

/* Returns the value that config.a.b names; NULL: there is none. */
static const json_value *value_at(const json_value *config, const arch_expr *e) {
    return e->kind == EX_FIELD ? llm_json_get(value_at(config, e->a), e->name) : config;
}

bool llm_converter_has_part(const llm_converter *c) {
    for (const arch_mapping *m = c->conv.section->map; m; m = m->next) {
        if (m->kind != MAP_ONLY || !m->expr)
            continue;
        const json_value *v = value_at(&c->config->root, m->expr);
        if (!v || v->kind == JSON_NULL)
            return false;
    }
    return true;
}

/* Which descriptor is looked for: one that reads texts, an eye, or an ear. has_part: only one whose section is about objects that config.json
 * has. draft: only one of a model that guesses for another one. */
typedef struct wanted {
    bool eye, ear, has_part, draft;
} wanted;

/* Parses only descriptors whose text contains the name. */
static ggl_status find_wanted(llm_converter *c, const wanted *w, ggl_error *err) {
    const char *name, *text;
    size_t n;
    for (int k = 0; llm_arch_builtin(k, &name, &text, &n); k++) {
        if (!mentions(text, n, c->class_name))
            continue;
        ggl_status s = llm_arch_parse(&c->arch, text, n, name, err);
        if (s == GGL_OK && is_eye(c->arch) == w->eye && (!w->draft || llm_arch_is_draft(c->arch)) &&
            (!w->eye || llm_converter_hears(c->arch) == w->ear))
            s = find_section(c, err);
        if (s != GGL_OK)
            return s;
        if (c->conv.section && w->has_part && !llm_converter_has_part(c))
            c->conv.section = NULL;
        if (c->conv.section) {
            c->origin = ggl_arena_printf(&c->arena, "built-in %s", name);
            return c->origin ? GGL_OK : llm_converter_no_memory(err);
        }
        llm_arch_free(c->arch);
        c->arch = NULL;
    }
    return GGL_OK;
}

ggl_status llm_converter_find_builtin(llm_converter *c, ggl_error *err) {
    static const wanted text[] = {{.draft = false}}, draft[] = {{.draft = true}, {.draft = false}},
                        first[] = {{.eye = true, .has_part = true},
                                   {.eye = true, .ear = true, .has_part = true},
                                   {.eye = true},
                                   {.eye = true, .ear = true}},
                        ear[] = {{.eye = true, .ear = true, .has_part = true}};
    const bool is_ear = c->params.eye && c->params.senses == LLM_CONVERT_EAR;
    const bool is_draft =
        !c->params.eye && c->params.target; /* a folder may have one beside the model */
    const wanted *w = is_draft ? draft : !c->params.eye ? text : is_ear ? ear : first;
    const int n = is_draft                   ? (int)(sizeof draft / sizeof *draft)
                  : c->params.eye && !is_ear ? (int)(sizeof first / sizeof *first)
                                             : 1;
    ggl_status s = GGL_OK;
    for (int k = 0; k < n && s == GGL_OK && !c->arch; k++)
        s = find_wanted(c, &w[k], err);
    return s;
}

ggl_status llm_converter_choose_section(llm_converter *c, ggl_error *err) {
    if (c->params.arch_path)
        return use_file(c, err);
    const ggl_status s = llm_converter_find_builtin(c, err);
    if (s != GGL_OK || c->arch)
        return s;
    return c->passed ? other_folders(c, err) : no_builtin(c, err);
}

/* --- the name --------------------------------------------------------------------------------- */

/* Returns the length of a file's name without ".bin". */
static size_t without_ending(const char *name, size_t n) {
    return n > 4 && memcmp(name + n - 4, ".bin", 4) == 0 ? n - 4 : n;
}

/* True for a path's end that names no folder by itself: "/", "." and "..". */
static bool is_no_name(ggl_str s) {
    return s.n == 0 || ggl_str_is(s, ".") || ggl_str_is(s, "..");
}

ggl_status llm_converter_choose_name(llm_converter *c, ggl_error *err) {
    const char *folder = c->params.adapter ? c->params.adapter : c->folder;
    ggl_str name = llm_folder_name(folder);
    if (c->is_file)
        name.n = without_ending(name.s, name.n);
    const json_value *v = llm_json_get_kind(&c->config->root, "_name_or_path", JSON_STRING);
    if ((name.n == 0 || name.s[0] == '.') && v) {
        name = json_str(v);
        for (size_t i = 0; i < v->n; i++)
            if (v->s[i] == '/')
                name = (ggl_str){v->s + i + 1, v->n - i - 1};
    }
    char *real = is_no_name(name) ? ggl_os_real_path(folder) : NULL;
    if (real)
        name = llm_folder_name(real);
    c->name = ggl_arena_strndup(&c->arena, name.s, name.n);
    free(real);
    return c->name ? GGL_OK : llm_converter_no_memory(err);
}
