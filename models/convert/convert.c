/* Converts a Hugging Face folder to a GGUF file: everything around the convert section
 * (section.c). */
#include "llm/internal/convert.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "ggl/internal/os_fs.h"
#include "ggl/internal/pass.h"
#include "ggl/internal/text.h"
#include "ggl/internal/types.h"
#include "checkpoint.h"
#include "common/model_folder.h"
#include "common/text_file.h"
#include "convert_impl.h"
#include "ctranslate2.h"
#include "ggl/internal/params.h"
#include "ggl/internal/show.h"
#include "keys.h"
#include "legacy.h"
#include "lone.h"
#include "pickle.h"

#define MAX_CONFIG ((size_t)16 << 20)
#define GENERATION "generation_config.json"

void llm_convert_fill_default(llm_convert_params *p, size_t size) {
    const llm_convert_params d = {.size = sizeof(llm_convert_params), .type = LLM_CONVERT_AUTO};
    ggl_params_fill(p, size, &d, sizeof d);
}

/* --- config.json ------------------------------------------------------------------------------ */

/* Reports that a file, which is no checkpoint, cannot be converted. */
static ggl_status refuse_file(const char *path, ggl_error *err) {
    char head[64], config[4096];
    const size_t n = llm_read_head(path, head, sizeof head);
    const char *slash = ggl_os_last_separator(path);
    const int n_folder = slash ? (int)(slash - path) : 0;
    if (llm_is_lfs_pointer(head, n))
        return ggl_fail(err, GGL_FORMAT, "%s: " LLM_LFS_ADVICE, path);
    if (n >= 4 && memcmp(head, "GGUF", 4) == 0)
        return ggl_fail(err, GGL_FORMAT,
                        "%s: is a GGUF file already; llm-quantize makes other types of it", path);
    snprintf(config, sizeof config, "%.*sconfig.json", slash ? n_folder + 1 : 0, path);
    if (ggl_file_exists(config))
        return ggl_fail(err, GGL_IO,
                        "%s: is a file; give the folder that contains config.json, '%.*s'", path,
                        slash ? n_folder : 1, slash ? path : ".");
    if (n >= 4 && memcmp(head, "lmgg", 4) == 0)
        return ggl_fail(err, GGL_FORMAT,
                        "%s: is a model in ggml's format before GGUF; of these, only speech models "
                        "are read, and its header is not that of one: convert the original model",
                        path);
    return ggl_fail(err, GGL_FORMAT,
                    "%s: is neither a folder with config.json nor a llama2.c checkpoint, nor a "
                    "speech model in ggml's format before GGUF",
                    path);
}

/* Checks that `folder` is a folder. A missing one, or a file in it, is the likeliest mistake of
 * a user. */
static ggl_status check_folder(const char *folder, ggl_error *err) {
    os_stat st;
    if (!ggl_os_stat(folder, &st))
        return ggl_fail(err, GGL_IO, "%s: %s", folder,
                        errno == ENOENT ? "the folder does not exist" : strerror(errno));
    return st.kind == OS_FOLDER ? GGL_OK : refuse_file(folder, err);
}

static bool has_file(const llm_converter *c, const char *name) {
    char path[4096];
    int n = snprintf(path, sizeof path, "%s/%s", c->folder, name);
    return n > 0 && (size_t)n < sizeof path && ggl_os_exists(path);
}

static ggl_status other_tokenizer(const llm_converter *c, ggl_error *err) {
    return ggl_fail(err, GGL_USAGE,
                    "%s: a tokenizer is given, but only a llama2.c checkpoint has it in a file of "
                    "any name",
                    c->folder);
}

/* Opens the tokenizer of n tokens in a speech model's file. */
static ggl_status open_legacy_tokens(llm_converter *c, int64_t n, ggl_error *err) {
    return llm_hf_tokenizer_open_legacy(&c->tokenizer, c->source->map[0].data, n, err);
}

/* Opens the tokenizer of n tokens that CTranslate2's converter has copied, or the vocabulary that it has written. */
static ggl_status open_copied_tokens(llm_converter *c, int64_t n, ggl_error *err) {
    const llm_hf_vocab vocab = {n, c->params.extra_tokens == LLM_CONVERT_CUT_EXTRA};
    const char *slash = ggl_os_last_separator(c->folder);
    const char *folder = ggl_os_is_folder(c->folder) ? c->folder
                         : slash
                             ? ggl_arena_strndup(&c->arena, c->folder, (size_t)(slash - c->folder))
                             : ".";
    if (!folder)
        return llm_converter_no_memory(err);
    ggl_status s = llm_hf_tokenizer_open(&c->tokenizer, folder, &c->config->root, &vocab, err);
    if (s == GGL_OK && !c->tokenizer)
        s = llm_hf_tokenizer_open_ordered(&c->tokenizer, folder, n, err);
    if (s == GGL_OK && !c->tokenizer &&
        !llm_converter_note(c, "the folder has no tokenizer: there is no tokenizer.json, and "
                               "neither vocabulary.json nor vocabulary.txt"))
        s = llm_converter_no_memory(err);
    return s;
}

/* A model that reads no text. */
static ggl_status open_no_tokens(llm_converter *c, int64_t n, ggl_error *err) {
    (void)c, (void)n, (void)err;
    return GGL_OK;
}

/* Models in one file, which is opened as what a folder has. */
static const struct {
    bool (*is)(const char *path);
    ggl_status (*open)(llm_safetensors **out, llm_json **config, const char *path,
                       const ggl_file_how *how, const ggl_str *bytes, ggl_error *err);
    ggl_status (*open_tokens)(llm_converter *c, int64_t n, ggl_error *err);
} file_kinds[] = {{llm_checkpoint_is, llm_checkpoint_open, llm_converter_open_bin},
                  {llm_legacy_is, llm_legacy_open, open_legacy_tokens},
                  {llm_lone_is, llm_lone_open, open_no_tokens},
                  {llm_ctranslate2_is, llm_ctranslate2_open, open_copied_tokens}};
enum { N_FILE_KINDS = sizeof file_kinds / sizeof *file_kinds };

bool llm_converter_is_file(const char *path) {
    int k = 0;
    while (k < N_FILE_KINDS && !file_kinds[k].is(path))
        k++;
    return k < N_FILE_KINDS;
}

/* Reads a file of the folder; *out stays NULL if there is none. */
static ggl_status read_beside(llm_converter *c, const char *name, llm_json **out, ggl_error *err) {
    if (!has_file(c, name))
        return GGL_OK;
    const char *path = ggl_arena_printf(&c->arena, "%s/%s", c->folder, name);
    return path ? llm_json_read(out, path, MAX_CONFIG, err) : llm_converter_no_memory(err);
}

/* Checks that the file is an object, and that those parts of it are which sections look into. */
static ggl_status check_processor(const llm_converter *c, const char *name, const json_value *root,
                                  ggl_error *err) {
    static const char *const part[] = {ARCH_PICTURES, "feature_extractor"};
    if (root->kind != JSON_OBJECT)
        return ggl_fail(err, GGL_FORMAT, "%s/%s: an object is expected", c->folder, name);
    for (size_t k = 0; k < sizeof part / sizeof *part; k++) {
        const json_value *v = llm_json_get(root, part[k]);
        if (v && v->kind != JSON_OBJECT && v->kind != JSON_NULL)
            return ggl_fail(err, GGL_FORMAT, "%s/%s: '%s' is no object", c->folder, name, part[k]);
    }
    return GGL_OK;
}

static ggl_status read_processors(llm_converter *c, ggl_error *err) {
    ggl_status s = GGL_OK;
    for (int k = 0; k < ARCH_PROCESSORS / 2 && s == GGL_OK; k++) {
        s = read_beside(c, llm_arch_processor_files[k], &c->processor[k], err);
        const json_value *root = c->processor[k] ? &c->processor[k]->root : NULL;
        c->conv.processor[2 * k] =
            root ? llm_json_get_kind(root, ARCH_PICTURES, JSON_OBJECT) : NULL;
        c->conv.processor[2 * k + 1] = root;
        if (root && s == GGL_OK)
            s = check_processor(c, llm_arch_processor_files[k], root, err);
    }
    return s;
}

static ggl_status read_config(llm_converter *c, ggl_error *err) {
    for (int k = 0; k < N_FILE_KINDS; k++) {
        if (!file_kinds[k].is(c->folder))
            continue;
        const ggl_status opened =
            file_kinds[k].open(&c->source, &c->config, c->folder, &c->params.how, NULL, err);
        c->is_file = true;
        c->params.eye |= file_kinds[k].open_tokens == open_no_tokens; /* it has no text */
        c->open_tokens = file_kinds[k].open_tokens;
        if (opened == GGL_OK && c->params.tokenizer && c->open_tokens != llm_converter_open_bin)
            return other_tokenizer(c, err);
        return opened == GGL_OK ? llm_converter_choose_class(c, c->folder, err) : opened;
    }
    if (llm_pickle_is(c->folder)) {
        char advice[LLM_PICKLE_ADVICE];
        return ggl_fail(err, GGL_UNSUPPORTED, "%s is a PyTorch pickle: %s", c->folder,
                        llm_pickle_advice(c->folder, advice));
    }
    if (c->params.tokenizer)
        return other_tokenizer(c, err);
    ggl_status s = check_folder(c->folder, err);
    if (s == GGL_OK)
        s = llm_folder_refuse_params(c->folder, err);
    if (s == GGL_OK)
        s = llm_converter_find_model(c, err);
    const char *path = c->config_path;
    if (s == GGL_OK && !c->config)
        s = llm_json_read(&c->config, path, MAX_CONFIG, err);
    if (s == GGL_OK)
        s = read_beside(c, GENERATION, &c->generation, err);
    if (s == GGL_OK && c->params.eye)
        s = read_processors(c, err);
    if (s == GGL_OK)
        s = llm_converter_read_modules(c, err);
    if (s != GGL_OK)
        return s;
    llm_arch_convert_plain_numbers(&c->config->root);
    c->conv.config = &c->config->root;
    c->conv.folder = c->folder;
    c->conv.alike = llm_hf_tokens_alike;
    c->conv.config_path = c->config_path;
    c->conv.generation = c->generation ? &c->generation->root : NULL;
    return llm_converter_choose_class(c, path, err);
}

/* Makes a converter of the folder's eye, or of its ear. NULL: out of memory. */
static llm_converter *new_for_sense(const char *folder, bool ear) {
    llm_converter *c = ggl_calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->params = llm_convert_default();
    c->params.eye = true;
    c->params.senses = ear ? LLM_CONVERT_EAR : LLM_CONVERT_FIRST_SENSE;
    c->model_folder = c->folder = folder;
    return c;
}

/* *hears (NULL is fine): the one that is found is an ear. */
static bool finds(const char *folder, bool ear, bool *hears, ggl_error *why) {
    ggl_error err = {0};
    if (hears)
        *hears = false;
    llm_converter *c = new_for_sense(folder, ear);
    if (!c)
        return false;
    const bool is_folder = !llm_converter_is_file(folder) && has_file(c, "config.json");
    const ggl_status st = is_folder ? read_config(c, &err) : GGL_OK;
    const bool found = is_folder && st == GGL_OK && llm_converter_find_builtin(c, &err) == GGL_OK &&
                       c->arch && llm_converter_has_part(c);
    if (hears)
        *hears = found && llm_converter_hears(c->arch);
    llm_converter_free(c);
    if (why)
        *why = st == GGL_OK ? (ggl_error){0} : err;
    return found;
}

bool llm_convert_finds_eye(const char *folder, ggl_error *why) {
    return finds(folder, false, NULL, why);
}

bool llm_convert_finds_ear(const char *folder) {
    return finds(folder, true, NULL, NULL);
}

bool llm_convert_finds_ear_alone(const char *folder) {
    bool hears;
    (void)finds(folder, false, &hears, NULL);
    return hears;
}

/* --- folders in the folder -------------------------------------------------------------------- */

/* Calls `each` for those that a section reads. Files that cannot be read are reported when the folder is opened. */
static ggl_status each_of_section(llm_converter *c, llm_convert_on_folder *each, void *user,
                                  ggl_error *err) {
    ggl_error ignored;
    ggl_status s = read_config(c, &ignored);
    if (s == GGL_OK)
        s = c->params.arch_path ? llm_converter_choose_section(c, &ignored)
                                : llm_converter_find_builtin(c, &ignored);
    if (s != GGL_OK || !c->conv.section || (c->params.eye && !llm_converter_has_part(c)))
        return s == GGL_NOMEM ? llm_converter_no_memory(err) : GGL_OK;
    for (const arch_mapping *m = c->conv.section->map; m && s == GGL_OK; m = m->next)
        if (m->kind == MAP_FOLDER)
            s = each(user, m->name, !c->params.eye, err);
    return s;
}

ggl_status llm_convert_each_folder(const char *folder, const char *arch_path,
                                   llm_convert_on_folder *each, void *user, ggl_error *err) {
    enum { TEXT, EYE, EAR, N };
    ggl_status s = GGL_OK;
    for (int k = 0; k < N && s == GGL_OK && !llm_converter_is_file(folder); k++) {
        llm_converter *c = new_for_sense(folder, k == EAR);
        if (!c)
            return llm_converter_no_memory(err);
        c->params.eye = k != TEXT;
        c->params.arch_path = k == TEXT ? arch_path : NULL;
        s = each_of_section(c, each, user, err);
        if (s == GGL_OK && k == TEXT)
            s = llm_converter_each_module(c, each, user, err);
        if (k == EYE && c->arch && llm_converter_hears(c->arch))
            k = EAR; /* the only sense of the folder */
        llm_converter_free(c);
    }
    return s;
}

typedef struct name_search {
    ggl_str name;
    bool found;
} name_search;

static ggl_status compare_name(void *user, const char *name, bool needs_weights, ggl_error *err) {
    name_search *s = user;
    (void)needs_weights, (void)err;
    s->found = s->found || ggl_str_is(s->name, name);
    return GGL_OK;
}

bool llm_convert_is_part(const char *folder, char *whole, size_t size) {
    ggl_error ignored;
    size_t n = strlen(folder), at;
    while (n > 1 && ggl_os_has_separator(folder + n - 1, 1))
        n--;
    for (at = n; at > 0 && !ggl_os_has_separator(folder + at - 1, 1);)
        at--;
    name_search s = {.name = {folder + at, n - at}};
    const int n_whole = at > 1 ? (int)at - 1 : (int)at; /* of "/a": "/" */
    if (s.name.n == 0 || (size_t)n_whole + 2 > size)
        return false;
    snprintf(whole, size, "%.*s", at > 0 ? n_whole : 1, at > 0 ? folder : ".");
    return llm_convert_each_folder(whole, NULL, compare_name, &s, &ignored) == GGL_OK && s.found;
}

/* --- opening ---------------------------------------------------------------------------------- */

/* Returns {arch}.vocab_size, which sizes the model's embedding; 0: not known. */
static int64_t n_vocab(const llm_converter *c) {
    char key[2 * ARCH_MAX_NAME];
    snprintf(key, sizeof key, "%s.vocab_size", c->conv.family);
    const converted_key *k = llm_arch_converted_key(&c->conv, key);
    const llm_arch_item *item =
        k && k->key.type == LLM_ARCH_NUMBER && !k->key.is_list ? k->key.handle : NULL;
    return item && item->number >= 1 && item->number <= INT32_MAX ? (int64_t)item->number : 0;
}

/* Returns a note on why no tokenizer is written. It names files with another form of tokenizer. */
static const char *no_tokenizer(const llm_converter *c) {
    static const char *const other[][2] = {
        {"merges.txt", "no tokenizer is written: there is a merges.txt, but neither vocab.json nor "
                       "tokenizer.json"}};
    for (size_t i = 0; i < sizeof other / sizeof *other; i++)
        if (has_file(c, other[i][0]))
            return other[i][1];
    return "the folder has no tokenizer: there is no tokenizer.json, no file of SentencePiece "
           "(such as tokenizer.model), no file of tiktoken (tiktoken.model), no tekken.json, no "
           "rwkv_vocab_v20230424.txt, and no vocab.json with merges.txt";
}

static ggl_status add_tokenizer_notes(llm_converter *c, ggl_error *err) {
    const char *text;
    for (int k = 0; c->tokenizer && (text = llm_hf_tokenizer_note(c->tokenizer, k)); k++)
        if (!llm_converter_note(c, text))
            return llm_converter_no_memory(err);
    return GGL_OK;
}

static ggl_status open_tokenizer(llm_converter *c, ggl_error *err) {
    if (c->is_file) {
        const ggl_status opened = c->open_tokens(c, n_vocab(c), err);
        return opened == GGL_OK ? add_tokenizer_notes(c, err) : opened;
    }
    const llm_hf_vocab vocab = {n_vocab(c), c->params.extra_tokens == LLM_CONVERT_CUT_EXTRA};
    ggl_status s =
        llm_hf_tokenizer_open(&c->tokenizer, c->model_folder, &c->config->root, &vocab, err);
    if (s == GGL_OK && !c->tokenizer && llm_converter_is_draft(c))
        return llm_converter_borrow_tokenizer(c, vocab.n, err);
    if (s == GGL_OK && !c->tokenizer && !llm_converter_note(c, no_tokenizer(c)))
        s = llm_converter_no_memory(err);
    if (c->tokenizer && llm_arch_converted_key(&c->conv, LLM_HF_MASK_KEY))
        llm_hf_tokenizer_forget_mask(c->tokenizer);
    return s == GGL_OK ? add_tokenizer_notes(c, err) : s;
}

/* Opens the tokenizer, unless it is to be left out. */
static ggl_status find_tokenizer(llm_converter *c, ggl_error *err) {
    if (c->params.no_tokenizer)
        return GGL_OK;
    const ggl_status s = open_tokenizer(c, err);
    if (s != GGL_UNSUPPORTED || !c->params.tokenizer_advice || !err)
        return s;
    const ggl_error first = *err;
    return ggl_fail(err, s, "%s; %s", first.msg, c->params.tokenizer_advice);
}

/* Notes that what the folder sees with becomes no part of the file, nor one of its own. */
static ggl_status note_unseen(llm_converter *c, ggl_error *err) {
    if (c->is_file || c->params.eye ||
        !llm_json_get_kind(&c->config->root, "vision_config", JSON_OBJECT) ||
        llm_convert_finds_eye(c->folder, NULL))
        return GGL_OK;
    return llm_converter_note(c, "the model sees no pictures: what config.json describes as "
                                 "vision_config is left out, as no descriptor reads it")
               ? GGL_OK
               : llm_converter_no_memory(err);
}

/* In a dry run, stores the error as a fault and returns GGL_OK. */
static ggl_status settle(llm_converter *c, ggl_status s, ggl_error *err) {
    if (s == GGL_OK || s == GGL_NOMEM || !c->params.dry_run)
        return s;
    return llm_arch_convert_add_fault(&c->conv, err->msg) ? GGL_OK : llm_converter_no_memory(err);
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
    return llm_converter_note(c, text) ? GGL_OK : llm_converter_no_memory(err);
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
    return t == GGL_OK ? s : ggl_pass(err, &other);
}

/* Notes what was ignored on request. */
static ggl_status note_requests(llm_converter *c, const requests *r, ggl_error *err) {
    char text[1400], more[64] = "";
    if (r->n_more)
        snprintf(more, sizeof more, " and %zu more", r->n_more);
    snprintf(text, sizeof text, "%s%s %s ignored at your request: the output may be wrong", r->text,
             more, r->n == 1 ? "is" : "are");
    return r->n == 0 || llm_converter_note(c, text) ? GGL_OK : llm_converter_no_memory(err);
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
        if (!t->used && !llm_arch_convert_ignored(&c->conv, t) &&
            llm_arch_convert_tensor_on_request(&c->conv, t))
            add_request(&r, t->name.s, "");
    }
    ggl_status s = note_requests(c, &r, err);
    const llm_arch_ignore *ignore = &c->params.ignore;
    return s == GGL_OK ? each_unfit(c, "--ignore-tensor", ignore->tensor, c->conv.tensor_hits,
                                    ignore->n_tensor, note_unfit, err)
                       : s;
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

static ggl_status open_keys(llm_converter *c, ggl_error *err) {
    ggl_error own = {0};
    const ggl_status keys = llm_arch_convert_keys(&c->conv, &own);
    /* a count that cannot be is the cause of what else is wrong with the keys, such as a division by it */
    ggl_status s = settle(c, llm_convert_check_counts(&c->conv, err), err);
    if (s == GGL_OK && keys != GGL_OK)
        s = settle(c, ggl_pass(err, &own), err);
    if (s == GGL_OK)
        s = settle(c, llm_arch_convert_check_keys(&c->conv, err), err);
    /* those are about the model, and an adapter is written without it */
    for (size_t i = 0; s == GGL_OK && !c->lora && i < c->conv.n_note; i++)
        if (!llm_converter_note(c, c->conv.note[i]))
            s = llm_converter_no_memory(err);
    /* a dry run's report lists them; the model's own conversion judges them for an adapter */
    if (s == GGL_OK && !c->params.dry_run && !c->lora && !c->params.for_adapter)
        s = llm_arch_convert_check_config(&c->conv, err);
    if (s == GGL_OK)
        s = llm_convert_check_numbers(&c->conv, err);
    if (s == GGL_OK && !c->params.for_adapter)
        s = llm_converter_take_generation(c, NULL, err);
    return s == GGL_OK ? note_values(c, err) : s;
}

static ggl_status open_tensors(llm_converter *c, ggl_error *err) {
    ggl_status s = c->lora ? GGL_OK : settle(c, llm_converter_check_width(c, err), err);
    if (s == GGL_OK)
        s = llm_arch_convert_tensors(&c->conv, err);
    if (s == GGL_OK && !c->lora)
        s = llm_converter_make_modules(c, err);
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
    if (s != GGL_OK && c->conv.needs_source && !c->params.vocab_only)
        return ggl_pass(err,
                        tensors_err); /* which a line that asks for a tensor does not explain */
    const bool wanted = s == GGL_OK && !c->params.vocab_only;
    if (wanted && tensors != GGL_OK)
        s = settle(c, ggl_pass(err, tensors_err), err);
    else if (wanted && !c->conv.no_keys)
        s = settle(c, open_tensors(c, err), err);
    if (s == GGL_OK)
        s = settle(c, find_tokenizer(c, err), err);
    return s == GGL_OK ? note_unseen(c, err) : s;
}

/* Fails if the folder's weights are still downloaded (library/hub/hub_files.c): some may be absent, or of an
 * older version, which fits and computes nonsense. */
static ggl_status check_finished(const llm_converter *c, ggl_error *err) {
    return c->params.vocab_only || !has_file(c, "config.json.unfinished")
               ? GGL_OK
               : ggl_fail(err, GGL_IO,
                          "the folder is not complete, because its download was interrupted; the "
                          "same command with -hf continues it");
}

/* Runs the section on the folder. */
static ggl_status run_section(llm_converter *c, ggl_error *err) {
    c->conv.arch = c->arch;
    c->conv.config = &c->config->root;
    c->conv.folder = c->folder;
    c->conv.alike = llm_hf_tokens_alike;
    c->conv.config_path = c->config_path;
    c->conv.generation = c->generation ? &c->generation->root : NULL;
    c->conv.backend = c->params.backend;
    c->conv.collect = c->params.dry_run;
    c->conv.only_some = c->params.for_adapter;
    c->conv.ignore = &c->params.ignore;
    c->conv.key_hits = ggl_arena_alloc(&c->arena, c->params.ignore.n_key + 1, sizeof(size_t));
    c->conv.tensor_hits = ggl_arena_alloc(&c->arena, c->params.ignore.n_tensor + 1, sizeof(size_t));
    if (!c->conv.key_hits || !c->conv.tensor_hits)
        return llm_converter_no_memory(err);
    ggl_status before = check_finished(c, err);
    if (before == GGL_OK)
        before = llm_converter_read_target(c, err);
    if (before != GGL_OK)
        return before;
    /* Keys may read tensors. Without tensors, errors of config.json are reported first. */
    ggl_error tensors_err = {0};
    ggl_status tensors =
        c->source ? GGL_OK
                  : llm_safetensors_open(&c->source, c->model_folder, &c->params.how, &tensors_err);
    if (tensors == GGL_OK)
        tensors = llm_converter_add_modules(c, &tensors_err);
    if (c->lora)
        tensors = llm_lora_choose_source(c->lora, &c->conv, &c->source, tensors, &tensors_err);
    if (tensors == GGL_NOMEM)
        return llm_converter_no_memory(err);
    c->conv.source = tensors == GGL_OK ? c->source : NULL; /* else some may lack */
    c->conv.no_source = ggl_arena_strndup(&c->arena, tensors_err.msg, strlen(tensors_err.msg));
    if (!c->conv.no_source)
        return llm_converter_no_memory(err);
    const ggl_status s = open_parts(c, tensors, &tensors_err, err);
    if (c->params.needs_weights)
        *c->params.needs_weights = s != GGL_OK && c->conv.needs_source;
    return say_unfit(c, s, err);
}

/* True for messages that begin with a file of the folder. */
static bool begins_with_folder(const char *msg, const char *folder) {
    const size_t n = strlen(folder);
    return strncmp(msg, folder, n) == 0 && (msg[n] == '/' || msg[n] == ':');
}

static void notice_processor(void *ctx, arch_expr *e) {
    *(bool *)ctx |= e->kind == EX_NAME && strcmp(e->name, "processor") == 0;
}

/* Reads the processor's files for a text model whose section has lines about them: one that hears by itself. */
static ggl_status read_own_processors(llm_converter *c, ggl_error *err) {
    bool reads = false;
    for (const arch_mapping *m = c->conv.section->map; m; m = m->next)
        llm_arch_walk_expr(m->expr, notice_processor, &reads);
    return reads && !c->params.eye ? read_processors(c, err) : GGL_OK;
}

static ggl_status open_rest(llm_converter *c, ggl_error *err) {
    char whole[OS_MOST_PATH];
    ggl_status s = read_config(c, err);
    if (s == GGL_FORMAT && c->config && !c->class_name && !c->is_file &&
        llm_convert_is_part(c->folder, whole, sizeof whole))
        return ggl_fail(err, s, "%s is a folder of a model: give that of the whole model, '%s'",
                        c->folder, whole);
    if (s == GGL_OK)
        s = llm_converter_choose_section(c, err);
    if (s == GGL_OK)
        s = read_own_processors(c, err);
    if (s == GGL_OK)
        s = llm_converter_place_modules(c, err);
    if (s == GGL_OK)
        s = llm_converter_choose_name(c, err);
    static const char reads[] = "config.reranker";
    if (s == GGL_OK && !c->is_file)
        s = llm_converter_add_reranker(
            c, ggl_find_bytes(c->arch->text.s, c->arch->text.n, reads, strlen(reads)) != NULL, err);
    if (s == GGL_OK && c->params.adapter)
        s = llm_lora_open(&c->lora, c->params.adapter, &c->params.ignore, err);
    else if (s == GGL_OK && c->params.task)
        s = llm_lora_open_task(&c->lora, c->folder, &c->config->root, c->params.task, err);
    if (s == GGL_OK && c->lora)
        s = llm_lora_check_model(c->lora, &c->config->root, c->conv.section,
                                 llm_arch_has_output(c->arch, "logits"), err);
    if (s != GGL_OK)
        return s;
    s = run_section(c, err);
    const bool named = begins_with_folder(err->msg, c->folder) ||
                       (c->params.adapter && begins_with_folder(err->msg, c->params.adapter));
    return s == GGL_OK || s == GGL_NOMEM || named ? s : ggl_within(err, s, "%s", c->folder);
}

/* Opens the converter of the adapter's pairs for the eye, or of the ear beside an eye. On failure c->eye is NULL. */
static ggl_status open_eye(llm_converter *c, ggl_error *err) {
    llm_converter *eye = ggl_calloc(1, sizeof *eye);
    if (!eye)
        return llm_converter_no_memory(err);
    eye->whole = c;
    eye->params = c->params;
    eye->params.arch_path = NULL; /* that of the text model */
    eye->params.senses = c->params.eye ? LLM_CONVERT_EAR : LLM_CONVERT_FIRST_SENSE;
    eye->params.eye = true;
    eye->params.needs_weights = NULL;
    eye->folder = c->folder;
    eye->model_folder = c->model_folder;
    const ggl_status s = open_rest(eye, err);
    if (s == GGL_OK)
        c->eye = eye;
    else
        llm_converter_free(eye);
    return s;
}

/* Opens the eye's converter if the adapter has pairs that are not for the text model. Then checks that each pair changes one of the two. */
static ggl_status open_others(llm_converter *c, ggl_error *err) {
    ggl_error of_eye = {0};
    const char *zeros = NULL;
    size_t n_zeros = 0;
    char text[600];
    if (llm_lora_has_others(c->lora) && llm_convert_finds_eye(c->folder, NULL) &&
        open_eye(c, &of_eye) == GGL_NOMEM)
        return ggl_pass(err, &of_eye);
    ggl_status s = llm_lora_check_used(c->lora, c->eye ? c->eye->lora : NULL, c->conv.family,
                                       &zeros, &n_zeros, err);
    if (s != GGL_OK && of_eye.msg[0]) {
        const size_t n = strlen(err->msg), line = strcspn(of_eye.msg, "\n");
        snprintf(err->msg + n, sizeof err->msg - n,
                 "; and the eye or ear of the folder cannot be made: %.*s",
                 (int)ggl_utf8_cut(of_eye.msg, line, 600), of_eye.msg);
    }
    if (s == GGL_OK)
        s = llm_lora_check_copies(c->lora, c->conv.section, c->folder, text, sizeof text, err);
    if (s == GGL_OK && text[0] && !llm_converter_note(c, text))
        return llm_converter_no_memory(err);
    if (s == GGL_OK && n_zeros > 0 && llm_converter_n_tensors(c) == 0)
        s = ggl_fail(err, GGL_UNSUPPORTED, "%s changes nothing: all lora_B are zeros",
                     c->params.adapter);
    if (s != GGL_OK || n_zeros == 0)
        return s;
    snprintf(text, sizeof text,
             "%zu pair%s left out, of which nothing is read, and which change%s nothing: lora_B is "
             "zeros, as of %.300s",
             n_zeros, n_zeros == 1 ? " is" : "s are", n_zeros == 1 ? "s" : "", zeros);
    return llm_converter_note(c, text) ? s : llm_converter_no_memory(err);
}

ggl_status llm_converter_open(llm_converter **out, const char *folder,
                              const llm_convert_params *params, ggl_error *err) {
    *out = NULL;
    llm_converter *c = ggl_calloc(1, sizeof *c);
    if (!c)
        return llm_converter_no_memory(err);
    ggl_error own = {0}; /* a dry run needs the messages */
    err = err ? err : &own;
    c->params = llm_convert_default();
    ggl_status s = GGL_READ_PARAMS(llm_convert_params, &c->params, params, err);
    const bool is_adapter = c->params.adapter || c->params.task;
    c->params.no_tokenizer = c->params.no_tokenizer || is_adapter || c->params.eye;
    c->model_folder = c->folder = ggl_arena_strndup(&c->arena, folder, strlen(folder));
    if (s == GGL_OK && !c->folder)
        s = llm_converter_no_memory(err);
    if (s == GGL_OK && c->params.adapter && c->params.task)
        s = ggl_fail(err, GGL_USAGE, "an adapter of PEFT has no tasks");
    if (s == GGL_OK && c->params.eye && (is_adapter || c->params.vocab_only))
        s = ggl_fail(err, GGL_USAGE, "an eye or ear has no adapter, and no tokenizer of its own");
    if (s == GGL_OK && is_adapter && (c->params.dry_run || c->params.vocab_only))
        s = ggl_fail(err, GGL_USAGE, "an adapter has no dry run, and no tokenizer of its own");
    if (s == GGL_OK)
        s = open_rest(c, err);
    if (s == GGL_OK && c->lora)
        s = open_others(c, err);
    if (s == GGL_OK && c->params.eye && c->params.senses == LLM_CONVERT_BOTH_SENSES &&
        !c->params.arch_path && !llm_converter_hears(c->arch) && llm_convert_finds_ear(c->folder))
        s = open_eye(c, err);
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
    llm_converter_free(c->eye);
    llm_hf_tokenizer_free(c->tokenizer);
    llm_arch_conversion_fini(&c->conv);
    if (!c->conv.partial) /* else the adapter owns it */
        llm_safetensors_close(c->source);
    llm_lora_free(c->lora);
    llm_arch_free(c->arch);
    llm_json_free(c->config);
    llm_json_free(c->generation);
    for (size_t k = 0; k < sizeof c->processor / sizeof *c->processor; k++)
        llm_json_free(c->processor[k]);
    llm_json_free(c->plain_config);
    llm_json_free(c->bare_config);
    llm_json_free(c->modules);
    llm_json_free(c->prompts);
    llm_json_free(c->artifact);
    ggl_free(c->turn);
    ggl_arena_fini(&c->arena);
    ggl_free(c);
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
    return c->conv.n_tensor + (c->eye ? c->eye->conv.n_tensor : 0);
}
size_t llm_converter_size(const llm_converter *c) {
    return c->size + (c->eye ? c->eye->size : 0);
}
const char *llm_converter_notes(const llm_converter *c) {
    return c->notes ? c->notes : "";
}
bool llm_converter_has_tokenizer(const llm_converter *c) {
    return c->tokenizer || c->borrows_tokenizer;
}
