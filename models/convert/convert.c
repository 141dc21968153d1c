/* Converts a Hugging Face folder to a GGUF file: everything around the convert section
 * (section.c). */
#include "llm/convert.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checkpoint.h"
#include "convert_impl.h"
#include "common/text_file.h"
#include "ggl/params.h"
#include "ggl/show.h"
#include "groups.h"
#include "keys.h"
#include "pickle.h"
#include "pieces.h"

#define MAX_CONFIG ((size_t)16 << 20)

void llm_convert_fill_default(llm_convert_params *p, size_t size) {
    const llm_convert_params d = {.size = sizeof(llm_convert_params), .type = LLM_CONVERT_AUTO};
    ggl_params_fill(p, size, &d, sizeof d);
}

static ggl_status no_memory(ggl_error *err) {
    return ggl_fail(err, GGL_NOMEM, "out of memory");
}

bool llm_converter_note(llm_converter *c, const char *text) {
    char *all = ggl_arena_printf(&c->arena, "%s%s\n", c->notes ? c->notes : "", text);
    c->notes = all;
    return all != NULL;
}

/* --- config.json and the descriptor ----------------------------------------------------------- */

/* Sets the class name: the caller's, else the first of "architectures". */
static ggl_status choose_class(llm_converter *c, const char *path, ggl_error *err) {
    const json_value *list = llm_json_get_kind(&c->config->root, "architectures", JSON_ARRAY);
    const json_value *first = list && list->n > 0 ? list->item : NULL;
    const char *given = c->params.arch_class;
    ggl_str class_name = {given, given ? strlen(given) : 0};
    if (!given && first && first->kind == JSON_STRING)
        class_name = json_str(first);
    if (class_name.n == 0 || class_name.n > ARCH_MAX_NAME || memchr(class_name.s, 0, class_name.n))
        return ggl_fail(err, GGL_FORMAT,
                        "%s: \"architectures\" is not a list with a name, so the kind of model is "
                        "unknown; set it by --arch-class NAME",
                        path);
    char *name = ggl_arena_strndup(&c->arena, class_name.s, class_name.n);
    if (!name)
        return no_memory(err);
    for (size_t i = 0; i < class_name.n; i++)
        if ((unsigned char)name[i] < 0x20)
            name[i] = '?';
    c->class_name = name;
    return GGL_OK;
}

/* Checks that `folder` is a folder. A missing one, or a file in it, is the likeliest mistake of
 * a user. */
static ggl_status check_folder(const char *folder, ggl_error *err) {
    struct stat st;
    if (stat(folder, &st) != 0)
        return ggl_fail(err, GGL_IO, "%s: %s", folder,
                        errno == ENOENT ? "the folder does not exist" : strerror(errno));
    if (!S_ISDIR(st.st_mode))
        return ggl_fail(err, GGL_IO, "%s: is a file; give the folder that contains config.json",
                        folder);
    return GGL_OK;
}

static ggl_status read_config(llm_converter *c, ggl_error *err) {
    if (llm_checkpoint_is(c->folder)) {
        const ggl_status opened =
            llm_checkpoint_open(&c->source, &c->config, c->folder, &c->params.how, err);
        c->is_checkpoint = true;
        return opened == GGL_OK ? choose_class(c, c->folder, err) : opened;
    }
    if (llm_pickle_is(c->folder))
        return ggl_fail(err, GGL_UNSUPPORTED, "%s is a PyTorch pickle: " LLM_PICKLE_ADVICE,
                        c->folder);
    if (c->params.tokenizer)
        return ggl_fail(
            err, GGL_USAGE,
            "%s: a tokenizer is given, but only a llama2.c checkpoint has it in a file of "
            "any name",
            c->folder);
    char *path = ggl_arena_printf(&c->arena, "%s/config.json", c->folder);
    if (!path)
        return no_memory(err);
    ggl_status s = check_folder(c->folder, err);
    if (s == GGL_OK)
        s = llm_json_read(&c->config, path, MAX_CONFIG, err);
    if (s != GGL_OK)
        return s;
    return choose_class(c, path, err);
}

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
    return n > 2 && strncasecmp(a, b, n) == 0;
}

/* Starts a search for the nearest class. At most two letters may differ, because most names have
 * the same end. */
static classes classes_near(const char *name) {
    classes x = {.near = ggl_nearest_to(name)};
    x.near.distance = x.near.distance < 3 ? x.near.distance : 3;
    return x;
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

static ggl_status use_file(llm_converter *c, ggl_error *err) {
    ggl_status s = llm_arch_open_given(&c->arch, c->params.arch_path, NULL, err);
    if (s != GGL_OK)
        return s;
    c->origin = c->params.arch_path;
    if ((c->conv.section =
             llm_arch_find_convert(c->arch, (ggl_str){c->class_name, strlen(c->class_name)})))
        return GGL_OK;
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
    classes x = classes_near(c->class_name);
    x.family = c->class_name;
    for (int k = 0; llm_arch_builtin(k, &name, &text, &n); k++) {
        llm_arch *arch;
        ggl_status s = llm_arch_parse(&arch, text, n, name, err);
        if (s != GGL_OK)
            return s;
        add_classes(&x, arch);
        llm_arch_free(arch);
    }
    return unknown_class(c, &x, "no built-in descriptor converts", err);
}

/* Opens the built-in descriptor with a section for the class. Parses only descriptors whose text
 * contains the name. */
static ggl_status use_builtin(llm_converter *c, ggl_error *err) {
    const char *name, *text;
    size_t n;
    for (int k = 0; llm_arch_builtin(k, &name, &text, &n); k++) {
        if (!mentions(text, n, c->class_name))
            continue;
        ggl_status s = llm_arch_parse(&c->arch, text, n, name, err);
        if (s != GGL_OK)
            return s;
        if ((c->conv.section =
                 llm_arch_find_convert(c->arch, (ggl_str){c->class_name, strlen(c->class_name)}))) {
            c->origin = ggl_arena_printf(&c->arena, "built-in %s", name);
            return c->origin ? GGL_OK : no_memory(err);
        }
        llm_arch_free(c->arch);
        c->arch = NULL;
    }
    return no_builtin(c, err);
}

/* Cuts the last part off a path of *n bytes, without slashes at its end, and returns it. */
static ggl_str take_last(const char *path, size_t *n) {
    while (*n > 0 && path[*n - 1] == '/')
        --*n;
    const size_t end = *n;
    while (*n > 0 && path[*n - 1] != '/')
        --*n;
    return (ggl_str){path + *n, end - *n};
}

/* Returns NAME of a path ../models--ORG--NAME/snapshots/HASH, as the Hugging Face cache has them; empty:
 * the path is another one. */
static ggl_str name_in_cache(const char *path) {
    size_t n = strlen(path), at = 0;
    const ggl_str hash = take_last(path, &n), snapshots = take_last(path, &n);
    const ggl_str repository = take_last(path, &n);
    if (hash.n < 7 || !ggl_str_is(snapshots, "snapshots") || repository.n < 8 ||
        memcmp(repository.s, "models--", 8) != 0)
        return (ggl_str){NULL, 0};
    for (size_t i = 0; i + 2 < repository.n; i++)
        if (repository.s[i] == '-' && repository.s[i + 1] == '-')
            at = i + 2;
    return (ggl_str){repository.s + at, repository.n - at};
}

/* Returns the length of a file's name without ".bin". */
static size_t without_ending(const char *name, size_t n) {
    return n > 4 && memcmp(name + n - 4, ".bin", 4) == 0 ? n - 4 : n;
}

/* Sets the model's name: the folder's or checkpoint's own name, that of its repository in the Hugging Face cache, or
 * the end of config.json's _name_or_path. */
static ggl_status choose_name(llm_converter *c, ggl_error *err) {
    const char *folder = c->params.adapter ? c->params.adapter : c->folder;
    size_t n = strlen(folder);
    ggl_str name = name_in_cache(folder);
    if (name.n == 0)
        name = take_last(folder, &n);
    if (c->is_checkpoint)
        name.n = without_ending(name.s, name.n);
    const json_value *v = llm_json_get_kind(&c->config->root, "_name_or_path", JSON_STRING);
    if ((name.n == 0 || name.s[0] == '.') && v) {
        name = json_str(v);
        for (size_t i = 0; i < v->n; i++)
            if (v->s[i] == '/')
                name = (ggl_str){v->s + i + 1, v->n - i - 1};
    }
    c->name = ggl_arena_strndup(&c->arena, name.s, name.n);
    return c->name ? GGL_OK : no_memory(err);
}

/* --- types ------------------------------------------------------------------------------------ */

ggl_type llm_converter_type(const llm_converter *c, const converted_tensor *t) {
    static const ggl_type types[] = {
        [LLM_CONVERT_F32] = GGL_F32, [LLM_CONVERT_F16] = GGL_F16, [LLM_CONVERT_BF16] = GGL_BF16};
    if (llm_recipe_type(t->recipe) == GGL_I32)
        return GGL_I32;
    if (t->only_f32)
        return GGL_F32;
    if (c->params.type == LLM_CONVERT_AUTO && t->block_type >= 0)
        return (ggl_type)t->block_type;
    if (c->params.type == LLM_CONVERT_NUMBERS && llm_groups_of(t->recipe))
        return GGL_F32; /* quantizing codes of groups must not begin with a rounding to f16 */
    return c->params.type == LLM_CONVERT_AUTO || c->params.type == LLM_CONVERT_NUMBERS
               ? llm_recipe_type(t->recipe)
               : types[c->params.type];
}

static bool add_sizes(llm_converter *c) {
    c->size = 0;
    for (size_t i = 0; i < c->conv.n_tensor; i++) {
        const converted_tensor *t = &c->conv.tensor[i];
        size_t size;
        if (!ggl_row_size_checked(llm_converter_type(c, t), llm_recipe_count(t->recipe), &size) ||
            !ggl_size_add(c->size, size, &c->size))
            return false;
    }
    return true;
}

/* Returns {arch}.vocab_size, which sizes the model's embedding; 0: not known. */
static int64_t n_vocab(const llm_converter *c) {
    char key[2 * ARCH_MAX_NAME];
    snprintf(key, sizeof key, "%s.vocab_size", c->conv.family);
    const converted_key *k = llm_arch_converted_key(&c->conv, key);
    const llm_arch_item *item =
        k && k->key.type == LLM_ARCH_NUMBER && !k->key.is_list ? k->key.handle : NULL;
    return item && item->number >= 1 && item->number <= INT32_MAX ? (int64_t)item->number : 0;
}

/* --- opening ---------------------------------------------------------------------------------- */

static bool has_file(const llm_converter *c, const char *name) {
    char path[4096];
    int n = snprintf(path, sizeof path, "%s/%s", c->folder, name);
    return n > 0 && (size_t)n < sizeof path && access(path, F_OK) == 0;
}

/* Returns a note on why no tokenizer is written. It names files with another form of tokenizer. */
static const char *no_tokenizer(const llm_converter *c) {
    static const char *const other[][2] = {
        {"merges.txt", "no tokenizer is written: there is a merges.txt, but neither vocab.json nor "
                       "tokenizer.json"}};
    for (size_t i = 0; i < sizeof other / sizeof *other; i++)
        if (has_file(c, other[i][0]))
            return other[i][1];
    return "the folder has no tokenizer: there is no tokenizer.json, no tokenizer.model, and no "
           "vocab.json with merges.txt";
}

static ggl_status open_tokenizer(llm_converter *c, ggl_error *err) {
    if (c->params.no_tokenizer)
        return GGL_OK;
    if (c->is_checkpoint)
        return llm_converter_open_bin(c, n_vocab(c), err);
    const llm_hf_vocab vocab = {n_vocab(c), c->params.extra_tokens == LLM_CONVERT_CUT_EXTRA};
    ggl_status s = llm_hf_tokenizer_open(&c->tokenizer, c->folder, &c->config->root, &vocab, err);
    if (s == GGL_OK && !c->tokenizer && !llm_converter_note(c, no_tokenizer(c)))
        s = no_memory(err);
    const char *text;
    for (int k = 0; s == GGL_OK && c->tokenizer && (text = llm_hf_tokenizer_note(c->tokenizer, k));
         k++)
        if (!llm_converter_note(c, text))
            s = no_memory(err);
    return s;
}

/* In a dry run, stores the error as a fault and returns GGL_OK. */
static ggl_status settle(llm_converter *c, ggl_status s, ggl_error *err) {
    if (s == GGL_OK || s == GGL_NOMEM || !c->params.dry_run)
        return s;
    return llm_arch_convert_add_fault(&c->conv, err->msg) ? GGL_OK : no_memory(err);
}

/* A list of names ignored on request, for a note: shows as many as fit, counts the others. */
typedef struct requests {
    char text[1000];
    size_t used, n, n_more;
} requests;

static void add_request(requests *r, const char *name, const char *value) {
    r->n++;
    if (r->used + strlen(name) + strlen(value) + 8 > sizeof r->text)
        r->n_more++;
    else
        r->used += (size_t)snprintf(r->text + r->used, sizeof r->text - r->used, "%s%s%s%s",
                                    r->used ? ", " : "", name, value[0] ? " = " : "", value);
}

/* Calls f for each pattern of an option that matches nothing unread. */
static ggl_status each_unfit(llm_converter *c, const char *flag, const char *const *pattern,
                             const size_t *hits, size_t n,
                             ggl_status (*f)(llm_converter *c, const char *text, ggl_error *err),
                             ggl_error *err) {
    char text[1000], shown[4 * 200 + 1];
    ggl_status s = GGL_OK;
    for (size_t k = 0; k < n && s == GGL_OK; k++) {
        if (hits[k] > 0)
            continue;
        ggl_show(shown, sizeof shown, pattern[k],
                 ggl_utf8_cut(pattern[k], strlen(pattern[k]), 200));
        snprintf(text, sizeof text, "%s '%s' matches nothing unread", flag, shown);
        s = f(c, text, err);
    }
    return s;
}

static ggl_status note_unfit(llm_converter *c, const char *text, ggl_error *err) {
    return llm_converter_note(c, text) ? GGL_OK : no_memory(err);
}

/* Appends a line to the error, if there is room. */
static ggl_status add_unfit(llm_converter *c, const char *text, ggl_error *err) {
    const size_t n = strlen(err->msg);
    (void)c;
    if (n + strlen(text) + 2 < sizeof err->msg)
        snprintf(err->msg + n, sizeof err->msg - n, "\n%s", text);
    return GGL_OK;
}

static void pass_over(void *ctx, const arch_unread *u) {
    (void)ctx;
    (void)u;
}

/* After an error: points out patterns of the user's that match nothing, as a typo in one may be
 * the cause. */
static ggl_status say_unfit(llm_converter *c, ggl_status s, ggl_error *err) {
    const llm_arch_ignore *r = &c->params.ignore;
    ggl_error other = {0};
    if (s == GGL_OK || s == GGL_NOMEM)
        return s;
    ggl_status t =
        r->n_key ? llm_arch_convert_each_unread(&c->conv, pass_over, NULL, &other) : GGL_OK;
    if (t == GGL_OK)
        t = each_unfit(c, "--ignore-config", r->key, c->conv.key_hits, r->n_key, add_unfit, err);
    if (t == GGL_OK && c->conv.tensors_known)
        t = each_unfit(c, "--ignore-tensor", r->tensor, c->conv.tensor_hits, r->n_tensor, add_unfit,
                       err);
    return t == GGL_OK ? s : ggl_fail(err, t, "%s", other.msg);
}

/* Notes what was ignored on request. */
static ggl_status note_requests(llm_converter *c, const requests *r, ggl_error *err) {
    char text[1400], more[64] = "";
    if (r->n_more)
        snprintf(more, sizeof more, " and %zu more", r->n_more);
    snprintf(text, sizeof text, "%s%s %s ignored at your request: the output may be wrong", r->text,
             more, r->n == 1 ? "is" : "are");
    return r->n == 0 || llm_converter_note(c, text) ? GGL_OK : no_memory(err);
}

static void add_value(void *ctx, const arch_unread *u) {
    char value[120];
    if (u->on_request)
        add_request(ctx, arch_unread_text(u), llm_arch_json_text(u->value, value, sizeof value));
}

static ggl_status note_values(llm_converter *c, ggl_error *err) {
    requests r = {.n = 0};
    if (c->params.ignore.n_key == 0)
        return GGL_OK;
    ggl_status s = llm_arch_convert_each_unread(&c->conv, add_value, &r, err);
    if (s == GGL_OK)
        s = note_requests(c, &r, err);
    const llm_arch_ignore *ignore = &c->params.ignore;
    return s == GGL_OK ? each_unfit(c, "--ignore-config", ignore->key, c->conv.key_hits,
                                    ignore->n_key, note_unfit, err)
                       : s;
}

static ggl_status note_tensors(llm_converter *c, ggl_error *err) {
    requests r = {.n = 0};
    if (c->params.ignore.n_tensor == 0)
        return GGL_OK;
    for (size_t i = 0; i < c->source->n_tensor; i++) {
        const st_tensor *t = &c->source->tensor[i];
        if (!t->used && !llm_arch_convert_ignored(&c->conv, t->name) &&
            llm_arch_convert_tensor_on_request(&c->conv, t))
            add_request(&r, t->name.s, "");
    }
    ggl_status s = note_requests(c, &r, err);
    const llm_arch_ignore *ignore = &c->params.ignore;
    return s == GGL_OK ? each_unfit(c, "--ignore-tensor", ignore->tensor, c->conv.tensor_hits,
                                    ignore->n_tensor, note_unfit, err)
                       : s;
}

static ggl_status open_keys(llm_converter *c, ggl_error *err) {
    ggl_status s = settle(c, llm_arch_convert_keys(&c->conv, err), err);
    if (s == GGL_OK)
        s = settle(c, llm_arch_convert_check_keys(&c->conv, err), err);
    for (size_t i = 0; s == GGL_OK && i < c->conv.n_note; i++)
        if (!llm_converter_note(c, c->conv.note[i]))
            s = no_memory(err);
    /* a dry run's report lists them; the model's own conversion judges them for an adapter */
    if (s == GGL_OK && !c->params.dry_run && !c->lora)
        s = llm_arch_convert_check_config(&c->conv, err);
    if (s == GGL_OK)
        s = llm_convert_check_numbers(&c->conv, err);
    return s == GGL_OK ? note_values(c, err) : s;
}

static ggl_status open_tensors(llm_converter *c, ggl_error *err) {
    ggl_status s = llm_arch_convert_tensors(&c->conv, err);
    if (s == GGL_OK && c->lora)
        s = llm_lora_take_apart(c->lora, &c->conv, err);
    c->built = s == GGL_OK;
    if (s == GGL_OK)
        s = llm_convert_check_numbers(&c->conv, err);
    if (s == GGL_OK && !c->lora)
        s = note_tensors(c, err);
    if (s == GGL_OK && !c->lora)
        s = llm_converter_choose_blocks(c, err);
    if (s == GGL_OK && !add_sizes(c))
        s = ggl_fail(err, GGL_LIMIT, "the file would be too large");
    return s;
}

/* Converts keys, then tensors, then the tokenizer, because tensors show whether config.json's
 * vocab_size is wrong. */
static ggl_status open_parts(llm_converter *c, ggl_status tensors, const ggl_error *tensors_err,
                             ggl_error *err) {
    ggl_status s = open_keys(c, err);
    const bool wanted = s == GGL_OK && !c->params.vocab_only;
    if (wanted && tensors != GGL_OK)
        s = settle(c, ggl_fail(err, tensors, "%s", tensors_err->msg), err);
    else if (wanted && !c->conv.no_keys)
        s = settle(c, open_tensors(c, err), err);
    return s == GGL_OK ? settle(c, open_tokenizer(c, err), err) : s;
}

/* Runs the section on the folder. */
static ggl_status run_section(llm_converter *c, ggl_error *err) {
    c->conv.arch = c->arch;
    c->conv.config = &c->config->root;
    c->conv.backend = c->params.backend;
    c->conv.collect = c->params.dry_run;
    c->conv.ignore = &c->params.ignore;
    c->conv.key_hits = ggl_arena_alloc(&c->arena, c->params.ignore.n_key + 1, sizeof(size_t));
    c->conv.tensor_hits = ggl_arena_alloc(&c->arena, c->params.ignore.n_tensor + 1, sizeof(size_t));
    if (!c->conv.key_hits || !c->conv.tensor_hits)
        return no_memory(err);
    /* Keys may read tensors. If there are none, errors of config.json are reported first. */
    ggl_error tensors_err = {0};
    ggl_status tensors =
        c->source ? GGL_OK
                  : llm_safetensors_open(&c->source, c->folder, &c->params.how, &tensors_err);
    if (c->lora)
        tensors = llm_lora_choose_source(c->lora, &c->conv, &c->source, tensors, &tensors_err);
    if (tensors == GGL_NOMEM)
        return no_memory(err);
    c->conv.source = c->source;
    c->conv.no_source = ggl_arena_strndup(&c->arena, tensors_err.msg, strlen(tensors_err.msg));
    if (!c->conv.no_source)
        return no_memory(err);
    return say_unfit(c, open_parts(c, tensors, &tensors_err, err), err);
}

/* True for messages that begin with a file of the folder. */
static bool begins_with_folder(const char *msg, const char *folder) {
    const size_t n = strlen(folder);
    return strncmp(msg, folder, n) == 0 && (msg[n] == '/' || msg[n] == ':');
}

static ggl_status open_rest(llm_converter *c, ggl_error *err) {
    ggl_status s = read_config(c, err);
    if (s == GGL_OK)
        s = c->params.arch_path ? use_file(c, err) : use_builtin(c, err);
    if (s == GGL_OK)
        s = choose_name(c, err);
    if (s == GGL_OK && c->params.adapter)
        s = llm_lora_open(&c->lora, c->params.adapter, &c->params.ignore, err);
    if (s == GGL_OK && c->lora)
        s = llm_lora_check_model(c->lora, &c->config->root, err);
    if (s != GGL_OK)
        return s;
    s = run_section(c, err);
    const bool named = begins_with_folder(err->msg, c->folder) ||
                       (c->lora && begins_with_folder(err->msg, c->params.adapter));
    return s == GGL_OK || s == GGL_NOMEM || named ? s : ggl_within(err, s, "%s", c->folder);
}

ggl_status llm_converter_open(llm_converter **out, const char *folder,
                              const llm_convert_params *params, ggl_error *err) {
    *out = NULL;
    llm_converter *c = ggl_calloc(1, sizeof *c);
    if (!c)
        return no_memory(err);
    ggl_error own = {0}; /* a dry run needs the messages */
    err = err ? err : &own;
    c->params = llm_convert_default();
    ggl_status s = GGL_READ_PARAMS(llm_convert_params, &c->params, params, err);
    c->params.no_tokenizer = c->params.no_tokenizer || c->params.adapter;
    c->folder = ggl_arena_strndup(&c->arena, folder, strlen(folder));
    if (s == GGL_OK && !c->folder)
        s = no_memory(err);
    if (s == GGL_OK && c->params.adapter && (c->params.dry_run || c->params.vocab_only))
        s = ggl_fail(err, GGL_USAGE, "an adapter has no dry run, and no tokenizer of its own");
    if (s == GGL_OK)
        s = open_rest(c, err);
    if (s != GGL_OK) {
        llm_converter_free(c);
        return s;
    }
    *out = c;
    return GGL_OK;
}

void llm_converter_free(llm_converter *c) {
    if (!c)
        return;
    llm_hf_tokenizer_free(c->tokenizer);
    llm_arch_conversion_fini(&c->conv);
    if (!c->conv.partial) /* else the adapter owns it */
        llm_safetensors_close(c->source);
    llm_lora_free(c->lora);
    llm_arch_free(c->arch);
    llm_json_free(c->config);
    ggl_free(c->turn);
    ggl_arena_fini(&c->arena);
    ggl_free(c);
}

/* --- keys ------------------------------------------------------------------------------------- */

/* Types that most numbers of a file may have, with llama.cpp's values of general.file_type. Of types with
 * as many numbers, the later one counts. */
static const struct {
    ggl_type type;
    uint32_t value;
} file_types[] = {{GGL_F32, 0},  {GGL_Q8_0, 7},  {GGL_Q5_1, 9},
                  {GGL_Q4_1, 3}, {GGL_BF16, 32}, {GGL_F16, 1}};
enum { N_FILE_TYPES = sizeof file_types / sizeof *file_types };

/* Returns general.file_type, by the type of most numbers. *blocks: some tensors are quantized. */
static uint32_t file_type(const llm_converter *c, bool *blocks) {
    int64_t n[N_FILE_TYPES] = {0};
    int most = 0;
    *blocks = false;
    for (size_t i = 0; i < c->conv.n_tensor; i++) {
        ggl_type type = llm_converter_type(c, &c->conv.tensor[i]);
        int k = N_FILE_TYPES - 1;
        while (k > 0 && file_types[k].type != type)
            k--;
        n[k] += llm_recipe_count(c->conv.tensor[i].recipe);
        *blocks = *blocks || ggl_type_get((int)type)->quantized;
    }
    for (int k = 1; k < N_FILE_TYPES; k++)
        most = n[k] > n[0] && n[k] >= n[most] ? k : most;
    return file_types[most].value;
}

ggl_status llm_converter_put_keys(llm_converter *c, ggl_gguf_writer *w, ggl_error *err) {
    bool blocks;
    uint32_t type = file_type(c, &blocks);
    if (c->lora)
        llm_lora_put_keys(c->lora, w);
    ggl_gguf_put_string(w, "general.architecture", c->conv.family, strlen(c->conv.family));
    if (c->name[0])
        ggl_gguf_put_string(w, "general.name", c->name, strlen(c->name));
    if (!c->params.vocab_only)
        ggl_gguf_put(w, "general.file_type", GGL_GGUF_U32, false, &type, 1);
    if (blocks)
        ggl_gguf_put(w, "general.quantization_version", GGL_GGUF_U32, false, &(uint32_t){2}, 1);
    ggl_status s = GGL_OK;
    for (size_t i = 0; s == GGL_OK && i < c->conv.n_key && !c->lora; i++)
        s = llm_convert_put_key(w, &c->conv.key[i], err);
    if (s == GGL_OK && c->tokenizer)
        llm_hf_tokenizer_put(c->tokenizer, w);
    return s;
}

/* --- tensors ---------------------------------------------------------------------------------- */

static void tell(llm_converter *c, size_t n) {
    c->done += n;
    if (c->params.progress)
        c->params.progress(c->params.progress_ctx, c->done, c->size);
}

/* Bytes of the file between two calls of drop_pages. */
#define DROP_AFTER ((size_t)32 << 20)

/* Frees the memory of what was read of the recipe's sources, so that memory stays small, however large
 * the folder is. */
static void drop_pages(const llm_converter *c, const recipe *r) {
    const st_tensor *source[] = {r->source, r->scale, r->bias};
    for (size_t k = 0; k < sizeof source / sizeof *source; k++)
        if (source[k])
            llm_safetensors_drop(c->source, source[k]);
    for (int k = 0; k < r->n_part; k++)
        drop_pages(c, r->part[k]);
}

/* Tells of n more bytes of the file, and drops pages from time to time. */
static void written(llm_converter *c, const recipe *r, size_t n) {
    if (c->done / DROP_AFTER != (c->done + n) / DROP_AFTER)
        drop_pages(c, r);
    tell(c, n);
}

/* Copies the bytes of a source that is written unchanged. */
static ggl_status copy_tensor(llm_converter *c, const recipe *r, ggl_gguf_sink *to, size_t *bad,
                              ggl_error *err) {
    const st_tensor *t = r->source;
    const char *data = t->data;
    const size_t element = t->type == GGL_F32 ? 4 : 2;
    ggl_status s = GGL_OK;
    for (size_t at = 0, n; s == GGL_OK && at < t->size; at += n) {
        n = t->size - at < (size_t)4 << 20 ? t->size - at : (size_t)4 << 20;
        *bad += llm_convert_count_bad(data + at, n / element, (ggl_type)t->type);
        s = ggl_gguf_sink_write(to, data + at, n, err);
        written(c, r, n);
    }
    return s;
}

static ggl_status convert_tensor(const tensor_turn *turn, ggl_gguf_sink *to, ggl_error *err) {
    llm_converter *c = turn->c;
    const converted_tensor *t = &c->conv.tensor[turn->i];
    const ggl_type_info *type = ggl_type_get(llm_converter_type(c, t));
    size_t bad = 0;
    if (t->recipe->kind == RECIPE_SOURCE && t->recipe->source->type == (int)type->type) {
        ggl_status copied = copy_tensor(c, t->recipe, to, &bad, err);
        drop_pages(c, t->recipe);
        return copied == GGL_OK ? llm_convert_check_bad(t->recipe, bad, err) : copied;
    }
    int64_t count = llm_recipe_count(t->recipe), n;
    float *x = ggl_calloc((size_t)LLM_CONVERT_PIECE, sizeof *x);
    void *y = ggl_calloc(ggl_row_size(type->type, LLM_CONVERT_PIECE), 1);
    ggl_status s = x && y ? GGL_OK : no_memory(err);
    for (int64_t at = 0; s == GGL_OK && at < count; at += n) {
        n = count - at < LLM_CONVERT_PIECE ? count - at : LLM_CONVERT_PIECE;
        s = llm_convert_piece(t->recipe, type, at, n, x, y, &bad, err);
        if (s != GGL_OK)
            break;
        const size_t size = ggl_row_size(type->type, n);
        s = ggl_gguf_sink_write(to, y, size, err);
        written(c, t->recipe, size);
    }
    llm_recipe_drop(t->recipe);
    drop_pages(c, t->recipe);
    if (s == GGL_OK)
        s = llm_convert_check_bad(t->recipe, bad, err);
    ggl_free(x);
    ggl_free(y);
    return s;
}

/* The writer's callback for a tensor's data. The writer's message would name the output file, so
 * errors of the folder's weights are kept in bad_input. */
static ggl_status fill_tensor(void *ctx, ggl_gguf_sink *to, ggl_error *err) {
    const tensor_turn *turn = ctx;
    llm_converter *c = turn->c;
    ggl_error own = {0};
    ggl_status s = convert_tensor(turn, to, &own);
    if (s == GGL_FORMAT || s == GGL_LIMIT)
        ggl_fail(&c->bad_input, s, "%s: tensor '%s': %s", c->folder, c->conv.tensor[turn->i].name,
                 own.msg);
    return s == GGL_OK ? s : ggl_fail(err, s, "%s", own.msg);
}

ggl_status llm_converter_write(llm_converter *c, const char *path, ggl_error *err) {
    if (c->params.dry_run)
        return ggl_fail(err, GGL_USAGE, "a dry run writes nothing");
    ggl_gguf_writer *w = ggl_gguf_writer_new();
    if (!c->turn)
        c->turn = ggl_calloc(c->conv.n_tensor + 1, sizeof *c->turn);
    c->done = 0;
    ggl_status s = w && c->turn ? llm_converter_put_keys(c, w, err) : no_memory(err);
    for (size_t i = 0; s == GGL_OK && i < c->conv.n_tensor; i++) {
        const converted_tensor *t = &c->conv.tensor[i];
        c->turn[i] = (tensor_turn){c, i};
        ggl_gguf_put_tensor_later(w, t->name, llm_converter_type(c, t), t->n_dims, t->ne,
                                  fill_tensor, &c->turn[i]);
    }
    c->bad_input = (ggl_error){0};
    if (s == GGL_OK)
        s = ggl_gguf_writer_write(w, path, err);
    if (err && c->bad_input.msg[0])
        *err = c->bad_input;
    ggl_gguf_writer_free(w);
    return s;
}

/* --- queries ---------------------------------------------------------------------------------- */

const char *llm_converter_origin(const llm_converter *c) {
    return c->origin;
}
const char *llm_converter_class(const llm_converter *c) {
    return c->class_name;
}
const char *llm_converter_family(const llm_converter *c) {
    return c->conv.family;
}
size_t llm_converter_n_tensors(const llm_converter *c) {
    return c->conv.n_tensor;
}
size_t llm_converter_size(const llm_converter *c) {
    return c->size;
}
const char *llm_converter_notes(const llm_converter *c) {
    return c->notes ? c->notes : "";
}
bool llm_converter_has_tokenizer(const llm_converter *c) {
    return c->tokenizer != NULL;
}
