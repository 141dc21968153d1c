/* The modules of a folder of sentence-transformers: what its programs do with the rows that the model gives. modules.json
 * lists them:
 *
 *     [{"path": "", "type": "sentence_transformers.models.Transformer"},
 *      {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}, ..]
 *
 * Each has a folder with a config.json, and a Dense one also has tensors. The convert section sees the latter as if config.json
 * had "modules": {"Dense_0": {..}, ..}. Pooling, prompts and the kind of similarity become keys here, as they have nothing to
 * do with what the model is. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/json_write.h"
#include "ggl/internal/index.h"
#include "ggl/internal/os_fs.h"
#include "ggl/internal/show.h"
#include "common/text_file.h"
#include "convert_impl.h"
#include "ggl/internal/text.h"

#define MAX_FILE ((size_t)1 << 20)
#define KEYS     "sentence_transformers."

/* Poolings by the names that configurations have, of older and newer programs, in the order in which older ones put them side by
 * side. name: that of the key sentence_transformers.pooling; type: of {arch}.pooling_type, -1 if it has no value for it. */
static const struct {
    const char *flag, *mode, *name;
    int type;
} poolings[] = {
    {"pooling_mode_cls_token", "cls", "cls", 2},
    {"pooling_mode_max_tokens", "max", "max", -1},
    {"pooling_mode_mean_tokens", "mean", "mean", 1},
    {"pooling_mode_mean_sqrt_len_tokens", "mean_sqrt_len_tokens", "mean_sqrt_len_tokens", -1},
    {"pooling_mode_weightedmean_tokens", "weightedmean", "weightedmean", -1},
    {"pooling_mode_lasttoken", "lasttoken", "last", 3}};
enum { N_POOLINGS = sizeof poolings / sizeof *poolings };

/* The activations that modules after the pooling may have, by PyTorch's classes. */
static const struct {
    const char *name, *class;
} activations[] = {
#define ACTIVATION(name, class, f) {#name, class},
#include "common/activations.def"
};
static const char activation_classes[] =
#define ACTIVATION(name, class, f) " " class
#include "common/activations.def"
    ;
enum { N_ACTIVATIONS = sizeof activations / sizeof *activations };

/* Returns the path of a file of the folder, in the arena; NULL: out of memory. */
static char *path_of(llm_converter *c, ggl_str module, const char *name) {
    return ggl_arena_printf(&c->arena, "%s/%.*s%s%s", c->folder, (int)module.n, module.s,
                            module.n ? "/" : "", name);
}

/* Returns the last word of a type, as of a.b.Pooling. */
static ggl_str kind_of(const json_value *module) {
    const json_value *type = llm_json_get_kind(module, "type", JSON_STRING);
    ggl_str s = type ? json_str(type) : (ggl_str){"", 0};
    for (size_t i = s.n; i-- > 0;)
        if (s.s[i] == '.')
            return (ggl_str){s.s + i + 1, s.n - i - 1};
    return s;
}

/* Returns the folder of a module; empty: it has none of its own. Only plain names are folders of this folder. */
static ggl_str folder_of(const json_value *module) {
    const json_value *path = llm_json_get_kind(module, "path", JSON_STRING);
    const bool plain = path && path->n < 256 && path->n > 0 && path->s[0] != '.' &&
                       !ggl_os_has_separator(path->s, path->n);
    return plain ? json_str(path) : (ggl_str){"", 0};
}

/* --- pooling ---------------------------------------------------------------------------------- */

/* Adds a pooling to those that are side by side. */
static bool add_pooling(llm_converter *c, int k) {
    const char *name = poolings[k].name;
    c->pooling = c->n_poolings == 0 ? poolings[k].type : -1;
    c->poolings =
        c->n_poolings++ == 0 ? name : ggl_arena_printf(&c->arena, "%s+%s", c->poolings, name);
    return c->poolings != NULL;
}

/* Adds the pooling of that name. GGL_UNSUPPORTED: there is none. */
static ggl_status add_mode(llm_converter *c, const json_value *mode, const char *path,
                           ggl_error *err) {
    for (int k = 0; k < N_POOLINGS; k++)
        if (llm_json_is(mode, poolings[k].mode))
            return add_pooling(c, k) ? GGL_OK : llm_converter_no_memory(err);
    char text[100];
    return ggl_fail(err, GGL_UNSUPPORTED,
                    "%s: \"pooling_mode\" is %s; cls, max, mean, mean_sqrt_len_tokens, "
                    "weightedmean and lasttoken are supported",
                    path, llm_arch_json_text(mode, text, sizeof text));
}

/* Adds the poolings whose flags are set. Other flags of this kind are refused. */
static ggl_status add_flags(llm_converter *c, const json_value *config, const char *path,
                            ggl_error *err) {
    static const char head[] = "pooling_mode_";
    for (int k = 0; k < N_POOLINGS; k++) {
        const json_value *flag = llm_json_get_kind(config, poolings[k].flag, JSON_BOOL);
        if (flag && flag->flag && !add_pooling(c, k))
            return llm_converter_no_memory(err);
    }
    for (size_t i = 0; i < config->n; i++) {
        const ggl_str name = json_name(config, i);
        bool known = name.n < sizeof head || memcmp(name.s, head, sizeof head - 1) != 0 ||
                     config->item[i].kind != JSON_BOOL || !config->item[i].flag;
        for (int k = 0; k < N_POOLINGS; k++)
            known = known || ggl_str_is(name, poolings[k].flag);
        if (!known)
            return ggl_fail(err, GGL_UNSUPPORTED, "%s: the pooling \"%.*s\" is unknown", path,
                            (int)ggl_utf8_cut(name.s, name.n, 60), name.s);
    }
    return GGL_OK;
}

static ggl_status read_pooling(llm_converter *c, const json_value *config, const char *path,
                               ggl_error *err) {
    const json_value *mode = llm_json_get(config, "pooling_mode");
    const json_value *prompt = llm_json_get_kind(config, "include_prompt", JSON_BOOL);
    ggl_status s = GGL_OK;
    if (config->kind != JSON_OBJECT || c->n_poolings > 0 ||
        (mode && mode->kind == JSON_ARRAY && mode->n > N_POOLINGS))
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "%s: one object that describes the pooling, of at most %d kinds side by "
                        "side, is expected",
                        path, (int)N_POOLINGS);
    if (mode && mode->kind == JSON_ARRAY)
        for (size_t i = 0; i < mode->n && s == GGL_OK; i++)
            s = add_mode(c, &mode->item[i], path, err);
    else
        s = mode ? add_mode(c, mode, path, err) : add_flags(c, config, path, err);
    if (s == GGL_OK && c->n_poolings == 0) /* as sentence-transformers does */
        s = add_pooling(c, 2) ? GGL_OK : llm_converter_no_memory(err);
    c->skips_prompt = prompt && !prompt->flag;
    return s;
}

/* --- modules after the pooling ---------------------------------------------------------------- */

/* Checks that a module reads and writes the vector of the text, or of each token, where nothing is pooled. */
static ggl_status check_names(const llm_converter *c, const json_value *config, const char *path,
                              ggl_error *err) {
    static const char *const names[] = {"module_input_name", "module_output_name"};
    const char *usual = c->n_poolings > 0 ? "sentence_embedding" : "token_embeddings";
    for (int k = 0; k < 2; k++) {
        const json_value *v = llm_json_get_kind(config, names[k], JSON_STRING);
        if (v && !llm_json_is(v, usual))
            return ggl_fail(err, GGL_UNSUPPORTED,
                            "%s: \"%s\" is '%.*s', which is not supported; here it is '%s'", path,
                            names[k], (int)ggl_utf8_cut(v->s, v->n, 100), v->s, usual);
    }
    return GGL_OK;
}

/* Finds the activation by its class, such as torch.nn.modules.activation.Tanh. */
static ggl_status find_activation(st_module *m, const json_value *config, const char *path,
                                  ggl_error *err) {
    static const char head[] = "torch.nn.";
    const json_value *v = llm_json_get(config, "activation_function");
    char said[100];
    if (v && v->kind != JSON_STRING)
        return ggl_fail(err, GGL_FORMAT,
                        "%s: \"activation_function\" is %s, but the name of a class is expected",
                        path, llm_arch_json_text(v, said, sizeof said));
    ggl_str name = v ? json_str(v) : (ggl_str){"torch.nn.Tanh", 13}; /* the class's default */
    const bool is_known = name.n > sizeof head && memcmp(name.s, head, sizeof head - 1) == 0;
    const ggl_str all = name;
    for (size_t i = name.n; i-- > 0;)
        if (all.s[i] == '.') {
            name = (ggl_str){all.s + i + 1, all.n - i - 1};
            break;
        }
    for (int k = 0; is_known && k < N_ACTIVATIONS; k++)
        if (ggl_str_is(name, activations[k].class)) {
            m->activation = activations[k].name;
            return GGL_OK;
        }
    return ggl_fail(err, GGL_UNSUPPORTED,
                    "%s: \"activation_function\" is '%.*s', which is not supported; of PyTorch's "
                    "torch.nn these are:%s",
                    path, (int)ggl_utf8_cut(all.s, all.n, 100), all.s, activation_classes);
}

static bool flag_of(const json_value *config, const char *name, bool otherwise) {
    const json_value *v = llm_json_get_kind(config, name, JSON_BOOL);
    return v ? v->flag : otherwise;
}

/* The members of a Dense module's config.json: `shown` are those that a descriptor's section may read. */
static const struct {
    const char *name;
    bool shown;
} dense_members[] = {
    {"in_features", true},         {"out_features", true}, {"bias", true},
    {"activation_function", true}, {"use_residual", true}, {"module_input_name", false},
    {"module_output_name", false}};
enum { N_DENSE_MEMBERS = sizeof dense_members / sizeof *dense_members };

/* Notes members that no Dense module has. */
static ggl_status note_members(llm_converter *c, const json_value *config, const char *path,
                               ggl_error *err) {
    for (size_t i = 0; config->kind == JSON_OBJECT && i < config->n; i++) {
        const ggl_str name = json_name(config, i);
        int k = 0;
        while (k < N_DENSE_MEMBERS && !ggl_str_is(name, dense_members[k].name))
            k++;
        if (k < N_DENSE_MEMBERS)
            continue;
        char shown[4 * 60 + 1]; /* escaped, because notes are lines */
        ggl_show(shown, sizeof shown, name.s, ggl_utf8_cut(name.s, name.n, 60));
        const char *note =
            ggl_arena_printf(&c->arena,
                             "%s: \"%s\" is no member of a Dense module, and is left out, as "
                             "sentence-transformers does",
                             path, shown);
        if (!note || !llm_converter_note(c, note))
            return llm_converter_no_memory(err);
    }
    return GGL_OK;
}

/* Reads a number of features, which the class has no default for. */
static ggl_status read_features(const json_value *config, const char *name, const char *path,
                                int64_t *n, ggl_error *err) {
    const json_value *v = llm_json_get(config, name);
    char said[100];
    if (!v || v->kind != JSON_NUMBER || !v->whole || v->number < 1 || v->number > INT32_MAX)
        return ggl_fail(err, GGL_FORMAT,
                        "%s: \"%s\" is %s, but a whole number of at least 1 is expected", path,
                        name, v ? llm_arch_json_text(v, said, sizeof said) : "missing");
    *n = (int64_t)v->number;
    return GGL_OK;
}

/* Checks that a value, if there is one, is true or false: others would count as the default. */
static ggl_status check_flag(const json_value *config, const char *name, const char *path,
                             ggl_error *err) {
    const json_value *v = llm_json_get(config, name);
    char said[100];
    return !v || v->kind == JSON_BOOL
               ? GGL_OK
               : ggl_fail(err, GGL_FORMAT, "%s: \"%s\" is %s, but true or false is expected", path,
                          name, llm_arch_json_text(v, said, sizeof said));
}

/* Checks that a module takes what the one before makes. name: of its value that says how many numbers it takes. */
static ggl_status check_chain(const llm_converter *c, const st_module *m, const char *name,
                              const char *path, ggl_error *err) {
    const st_module *before = NULL;
    for (int k = 0; &c->after[k] < m; k++)
        if (c->after[k].n_out > 0)
            before = &c->after[k];
    if (!before || before->n_out == m->n_in)
        return GGL_OK;
    return ggl_fail(err, GGL_FORMAT, "%s: %s = %" PRId64 ", but %s in %.*s/config.json is %" PRId64,
                    path, name, m->n_in,
                    strcmp(before->kind, "dense") == 0 ? "out_features" : "dimension",
                    (int)before->folder.n, before->folder.s, before->n_out);
}

static ggl_status read_norm(const llm_converter *c, st_module *m, const json_value *config,
                            const char *path, ggl_error *err) {
    const ggl_status s = read_features(config, "dimension", path, &m->n_in, err);
    m->n_out = m->n_in;
    return s == GGL_OK ? check_chain(c, m, "dimension", path, err) : s;
}

static ggl_status read_dense(llm_converter *c, st_module *m, const json_value *config,
                             const char *path, ggl_error *err) {
    ggl_status s = find_activation(m, config, path, err);
    m->adds_input = flag_of(config, "use_residual", false);
    m->biased = flag_of(config, "bias", true);
    if (s == GGL_OK)
        s = check_names(c, config, path, err);
    if (s == GGL_OK)
        s = read_features(config, "in_features", path, &m->n_in, err);
    if (s == GGL_OK)
        s = read_features(config, "out_features", path, &m->n_out, err);
    if (s == GGL_OK)
        s = check_flag(config, "use_residual", path, err);
    if (s == GGL_OK)
        s = check_flag(config, "bias", path, err);
    if (s == GGL_OK)
        s = check_chain(c, m, "in_features", path, err);
    return s == GGL_OK ? note_members(c, config, path, err) : s;
}

/* --- what the model makes --------------------------------------------------------------------- */

/* Returns a number that the section has made for the key {arch}.NAME; 0: there is none. line: set to what makes it. */
static int64_t converted_number(const llm_converter *c, const char *name, const arch_expr **line) {
    char key[2 * ARCH_MAX_NAME];
    snprintf(key, sizeof key, "%s.%s", c->conv.family, name);
    const converted_key *k = llm_arch_converted_key(&c->conv, key);
    const llm_arch_item *item =
        k && k->key.type == LLM_ARCH_NUMBER && !k->key.is_list ? k->key.handle : NULL;
    *line = k && k->line ? k->line->expr : NULL;
    return item && item->number >= 1 && item->number <= INT32_MAX ? (int64_t)item->number : 0;
}

ggl_status llm_converter_check_width(const llm_converter *c, ggl_error *err) {
    static const char *const widths[] = {"embedding_length", "embedding_length_out",
                                         "word_embedding_length"};
    const st_module *m = NULL;
    const arch_expr *line = NULL, *of;
    const int64_t n_parts = c->n_poolings > 1 ? c->n_poolings : 1;
    int64_t width = 0, n;
    for (int k = 0; k < c->n_after && !m; k++)
        m = c->after[k].n_in > 0 ? &c->after[k] : NULL;
    for (int k = 0; m && k < 3; k++) { /* a few models make rows of the latter */
        if ((n = converted_number(c, widths[k], &of)) * n_parts == m->n_in)
            return GGL_OK;
        line = k == 0 ? of : line;
        width = k == 0 ? n : width;
    }
    if (!m || width == 0)
        return GGL_OK;
    char said[300], otherwise[64];
    snprintf(otherwise, sizeof otherwise, "%s = %" PRId64, widths[0], width);
    const char *from =
        line ? llm_arch_convert_cause(&c->conv, line, (double)width, said, sizeof said) : "";
    char parts[40] = "";
    if (n_parts > 1)
        snprintf(parts, sizeof parts, ", of %" PRId64 " poolings", n_parts);
    return ggl_fail(err, GGL_FORMAT,
                    "%s/%.*s/config.json: %s = %" PRId64 ", but the model's vectors have %" PRId64
                    " numbers%s (%s in config.json)",
                    c->folder, (int)m->folder.n, m->folder.s,
                    strcmp(m->kind, "dense") == 0 ? "in_features" : "dimension", m->n_in,
                    width * n_parts, parts, from[0] ? from : otherwise);
}

/* The chain after the pooling. The last module, if it only makes vectors of length 1, is said by a key of its own. */
static const st_module *last_module(const llm_converter *c) {
    return c->n_after > 0 ? &c->after[c->n_after - 1] : NULL;
}

bool llm_converter_normalizes(const llm_converter *c) {
    const st_module *m = last_module(c);
    return m && strcmp(m->kind, "normalize") == 0;
}

int llm_converter_n_after(const llm_converter *c) {
    return c->n_after - llm_converter_normalizes(c);
}

/* --- the text of config.modules --------------------------------------------------------------- */

typedef struct text {
    char *s;
    size_t n, cap;
} text;

static bool put(text *t, ggl_str s) {
    if (!ggl_grow(&t->s, &t->cap, t->n + s.n + 1, 1))
        return false;
    memcpy(t->s + t->n, s.s, s.n);
    t->n += s.n;
    return true;
}

static bool put_word(text *t, const char *s) {
    return put(t, (ggl_str){s, strlen(s)});
}

/* The modules of sentence-transformers that are obeyed, by the last word of their class. kind: that of the key
 * sentence_transformers.modules; "": it changes no vector. */
static const struct {
    const char *class, *kind;
    bool has_config;
} classes[] = {{"Dense", "dense", true},
               {"LayerNorm", "layer_norm", true},
               {"Normalize", "normalize", false},
               {"Dropout", "", false}};
enum { N_CLASSES = sizeof classes / sizeof *classes };

/* Refuses a module whose path is not the name of a folder beside modules.json. */
static ggl_status refuse_path(const llm_converter *c, const json_value *module, ggl_error *err) {
    const json_value *path = llm_json_get(module, "path");
    const ggl_str kind = kind_of(module);
    char said[100];
    return ggl_fail(
        err, GGL_FORMAT,
        "%s/modules.json: \"path\" of a %.*s is %s, but the name of a folder beside this "
        "file is expected",
        c->folder, (int)ggl_utf8_cut(kind.s, kind.n, 60), kind.s,
        path ? llm_arch_json_text(path, said, sizeof said) : "missing");
}

/* Refuses a folder because it lacks a config.json that modules.json speaks of. */
static ggl_status refuse_missing(ggl_str folder, const char *path, ggl_error *err) {
    return ggl_fail(err, GGL_IO,
                    "%s: no such file: modules.json names the folder %.*s, which is a part of the "
                    "model: download it beside the other files",
                    path, (int)folder.n, folder.s);
}

/* Reads config.json of a module's folder; *out stays NULL if it may be absent, and is. */
static ggl_status read_own_config(llm_converter *c, const json_value *module, bool is_needed,
                                  const char **path, llm_json **out, ggl_error *err) {
    *out = NULL;
    *path = path_of(c, folder_of(module), "config.json");
    if (!*path)
        return llm_converter_no_memory(err);
    const ggl_str folder = folder_of(module);
    const bool exists = folder.n > 0 && ggl_file_exists(*path);
    if (is_needed && folder.n == 0)
        return refuse_path(c, module, err);
    if (is_needed && !exists)
        return refuse_missing(folder, *path, err);
    return exists ? llm_json_read(out, *path, MAX_FILE, err) : GGL_OK;
}

/* Reads a module that is neither the model nor the pooling. */
static ggl_status read_after(llm_converter *c, const json_value *module, ggl_error *err) {
    int k = 0;
    llm_json *config;
    const char *path;
    while (k < N_CLASSES && !ggl_str_is(kind_of(module), classes[k].class))
        k++;
    if (k == N_CLASSES || classes[k].kind[0] == 0)
        return GGL_OK; /* check_kinds refuses unknown ones */
    if (c->n_after == ST_MOST_MODULES)
        return ggl_fail(err, GGL_LIMIT, "%s/modules.json has more than %d modules", c->folder,
                        ST_MOST_MODULES);
    st_module *m = &c->after[c->n_after++];
    *m =
        (st_module){.folder = folder_of(module), .kind = classes[k].kind, .activation = "identity"};
    ggl_status s = read_own_config(c, module, classes[k].has_config, &path, &config, err);
    if (s == GGL_OK && strcmp(m->kind, "dense") == 0)
        s = read_dense(c, m, &config->root, path, err);
    else if (s == GGL_OK && config)
        s = check_names(c, &config->root, path, err);
    if (s == GGL_OK && strcmp(m->kind, "layer_norm") == 0)
        s = read_norm(c, m, &config->root, path, err);
    llm_json_free(config);
    return s;
}

/* Reads the pooling, or another module after the model. */
static ggl_status read_module(llm_converter *c, const json_value *module, ggl_error *err) {
    llm_json *config;
    const char *path;
    if (!ggl_str_is(kind_of(module), "Pooling"))
        return read_after(c, module, err);
    if (c->n_after > 0)
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "%s/modules.json: a module of the kind '%s' before the pooling is not "
                        "supported",
                        c->folder, c->after[0].kind);
    ggl_status s = read_own_config(c, module, true, &path, &config, err);
    if (s == GGL_OK)
        s = read_pooling(c, &config->root, path, err);
    llm_json_free(config);
    return s;
}

/* Refuses a module that sends each text to one of several models. Asym is the name that Router had before. */
static ggl_status refuse_router(const llm_converter *c, size_t i, ggl_str kind, ggl_error *err) {
    return ggl_fail(err, GGL_UNSUPPORTED,
                    "%s/modules.json: module %zu is a %.*s, which holds a model for each kind of "
                    "text, such as \"query\" and \"document\"; a folder with one model is "
                    "supported. Python makes one: s = SentenceTransformer(\"FOLDER\"); "
                    "SentenceTransformer(modules=[*s[0].sub_modules[\"query\"], *list(s)[1:]])"
                    ".save(\"QUERY_FOLDER\")",
                    c->folder, i, (int)kind.n, kind.s);
}

static ggl_status check_kinds(const llm_converter *c, ggl_error *err) {
    const json_value *list = &c->modules->root;
    if (list->kind != JSON_ARRAY)
        return ggl_fail(err, GGL_FORMAT, "%s/modules.json is no list of modules", c->folder);
    for (size_t i = 0; i < list->n; i++) {
        const ggl_str kind = kind_of(&list->item[i]);
        bool found = i == 0 ? ggl_str_is(kind, "Transformer") || ggl_str_is(kind, "StaticEmbedding")
                            : ggl_str_is(kind, "Pooling");
        for (int k = 0; k < N_CLASSES && i > 0; k++)
            found = found || ggl_str_is(kind, classes[k].class);
        if (ggl_str_is(kind, "Router") || ggl_str_is(kind, "Asym"))
            return refuse_router(c, i, kind, err);
        if (!found)
            return ggl_fail(err, GGL_UNSUPPORTED,
                            "%s/modules.json: module %zu is of the kind '%.*s'; Transformer or "
                            "StaticEmbedding at first, then Pooling, Dense, LayerNorm, Normalize "
                            "and Dropout are supported",
                            c->folder, i, (int)ggl_utf8_cut(kind.s, kind.n, 60), kind.s);
    }
    return GGL_OK;
}

/* Appends the config.json of a Dense module to the text of config.modules. */
static ggl_status put_dense(llm_converter *c, text *t, ggl_str folder, int k, ggl_error *err) {
    const char *path = path_of(c, folder, "config.json");
    llm_json *own = NULL;
    llm_json_out out = {0};
    ggl_status s = path ? llm_json_read(&own, path, MAX_FILE, err) : llm_converter_no_memory(err);
    if (s != GGL_OK)
        return s;
    llm_json_format(&out, "%s'Dense_%d': {", k > 0 ? ", " : "", k);
    bool any = false;
    for (int i = 0; i < N_DENSE_MEMBERS; i++) {
        const json_value *v = llm_json_get(&own->root, dense_members[i].name);
        if (!v || !dense_members[i].shown)
            continue;
        llm_json_format(&out, "%s'%s': ", any ? ", " : "", dense_members[i].name);
        llm_json_put_value(&out, v);
        any = true;
    }
    llm_json_put_text(&out, "}"); /* on one line: the lines of config.json keep their numbers */
    if (out.failed || !put(t, (ggl_str){out.s, out.n}))
        s = llm_converter_no_memory(err);
    ggl_free(out.s);
    llm_json_free(own);
    return s;
}

/* Appends the config.json of a folder that a line of the section names. */
static ggl_status put_folder(llm_converter *c, text *t, const char *name, ggl_error *err) {
    const char *path = path_of(c, (ggl_str){name, strlen(name)}, "config.json");
    if (!path)
        return llm_converter_no_memory(err);
    if (!ggl_file_exists(path))
        return ggl_fail(err, GGL_NOT_FOUND,
                        "%s: no such file: the folder %s of the model, with config.json and "
                        "model.safetensors, is needed, too; download it beside the other files",
                        path, name);
    llm_json *own = NULL;
    llm_json_out out = {0};
    ggl_status s = llm_json_read(&own, path, MAX_FILE, err);
    if (s == GGL_OK && own->root.kind != JSON_OBJECT)
        s = ggl_fail(err, GGL_FORMAT, "%s: an object is expected", path);
    if (s == GGL_OK) {
        llm_json_format(&out, "%s'%s': ", t->n > 0 ? ", " : "", name);
        llm_json_put_value(&out, &own->root);
        if (out.failed || !put(t, (ggl_str){out.s, out.n}))
            s = llm_converter_no_memory(err);
    }
    ggl_free(out.s);
    llm_json_free(own);
    return s;
}

/* Puts "modules": {"Dense_0": {..}, ..} into the text of config.json, as its first value, and parses it anew. */
static ggl_status extend_config(llm_converter *c, const char *path, const text *dense,
                                ggl_error *err) {
    text t = {0};
    char *own = NULL;
    size_t n = 0;
    if (llm_json_get(&c->config->root, "modules"))
        return ggl_fail(err, GGL_FORMAT,
                        "%s has a value 'modules', which is where the values of other folders of "
                        "the model are put: remove it",
                        path);
    ggl_status s = llm_read_text_file(path, (size_t)16 << 20, &own, &n, err);
    const char *brace = s == GGL_OK ? memchr(own, '{', n) : NULL;
    if (!brace) {
        ggl_free(own);
        return s;
    }
    const size_t head = (size_t)(brace - own) + 1;
    const bool ok = put(&t, (ggl_str){own, head}) && put_word(&t, "\"modules\": {") &&
                    put(&t, (ggl_str){dense->s, dense->n}) &&
                    put_word(&t, c->config->root.n > 0 ? "}, " : "}") &&
                    put(&t, (ggl_str){own + head, n - head});
    ggl_free(own);
    llm_json *config = NULL;
    s = ok ? llm_json_parse(&config, t.s, t.n, path, err) : llm_converter_no_memory(err);
    if (s != GGL_OK) {
        ggl_free(t.s);
        return s;
    }
    c->bare_config = c->config; /* whose texts may be in use */
    c->config = config;
    c->config->text = t.s; /* which it borrows */
    return GGL_OK;
}

/* Reads a file of the folder that may be missing. */
static ggl_status read_optional(llm_converter *c, const char *name, llm_json **out,
                                ggl_error *err) {
    const char *path = path_of(c, (ggl_str){"", 0}, name);
    if (!path)
        return llm_converter_no_memory(err);
    return ggl_file_exists(path) ? llm_json_read(out, path, MAX_FILE, err) : GGL_OK;
}

/* --- the longest text ------------------------------------------------------------------------- */

/* Sets the least of a number that a configuration has and *most, if it is a length; 0: there is none. */
static void take_length(const llm_json *config, const char *name, int64_t *most) {
    const json_value *v = config ? llm_json_get_kind(&config->root, name, JSON_NUMBER) : NULL;
    if (v && v->number >= 1 && v->number <= INT32_MAX && (*most == 0 || v->number < (double)*most))
        *most = (int64_t)v->number;
}

/* Reads a file of the model's own folder that may be missing. */
static ggl_status read_of_model(llm_converter *c, const char *name, llm_json **out,
                                ggl_error *err) {
    const char *path = ggl_arena_printf(&c->arena, "%s/%s", c->model_folder, name);
    if (!path)
        return llm_converter_no_memory(err);
    return ggl_file_exists(path) ? llm_json_read(out, path, MAX_FILE, err) : GGL_OK;
}

/* Finds where texts are cut: by the settings of the Transformer module, whose file older programs named after its class, or by what model and
 * tokenizer can take. */
static ggl_status read_longest(llm_converter *c, ggl_error *err) {
    static const char *const files[] = {
        "sentence_bert_config.json",       "sentence_roberta_config.json",
        "sentence_distilbert_config.json", "sentence_camembert_config.json",
        "sentence_albert_config.json",     "sentence_xlm-roberta_config.json",
        "sentence_xlnet_config.json"};
    llm_json *own = NULL, *tokenizer = NULL;
    ggl_status s = GGL_OK;
    for (size_t k = 0; k < sizeof files / sizeof *files && !own && s == GGL_OK; k++)
        s = read_of_model(c, files[k], &own, err);
    if (s == GGL_OK)
        s = read_of_model(c, "tokenizer_config.json", &tokenizer, err);
    take_length(own, "max_seq_length", &c->longest);
    if (c->longest == 0)
        take_length(tokenizer, "model_max_length", &c->longest);
    if (s == GGL_OK && own && flag_of(&own->root, "do_lower_case", false) &&
        !llm_converter_note(c, "texts are not made lower case before they become tokens, which the "
                               "model's own program does (do_lower_case)"))
        s = llm_converter_no_memory(err);
    llm_json_free(own);
    llm_json_free(tokenizer);
    return s;
}

/* Reads how many numbers of each vector are kept. */
static ggl_status read_truncation(llm_converter *c, ggl_error *err) {
    const json_value *v = llm_json_get(&c->prompts->root, "truncate_dim");
    char said[100];
    if (!v || v->kind == JSON_NULL)
        return GGL_OK;
    if (v->kind != JSON_NUMBER || !v->whole || v->number < 1 || v->number > INT32_MAX)
        return ggl_fail(err, GGL_FORMAT,
                        "%s/config_sentence_transformers.json: \"truncate_dim\" is %s, but a whole "
                        "number of at least 1, or null, is expected",
                        c->folder, llm_arch_json_text(v, said, sizeof said));
    c->n_dims = (int64_t)v->number;
    return GGL_OK;
}

/* --- reading ---------------------------------------------------------------------------------- */

/* The first module is the model. */
static const json_value *first_module(const llm_converter *c) {
    const json_value *list = c->modules ? &c->modules->root : NULL;
    return list && list->kind == JSON_ARRAY && list->n > 0 ? &list->item[0] : NULL;
}

/* A table of vectors has no config.json, or one without a class. */
static ggl_status name_class(llm_converter *c, ggl_error *err) {
    static const char alone[] = "{\"architectures\": [\"StaticEmbedding\"]}";
    const json_value *m = first_module(c);
    if (!m || !ggl_str_is(kind_of(m), "StaticEmbedding"))
        return GGL_OK;
    c->pooling = 1;
    c->n_poolings = 1;
    c->poolings = "mean";
    c->usual_class = "StaticModel";
    return ggl_file_exists(c->config_path)
               ? GGL_OK
               : llm_json_parse(&c->config, alone, sizeof alone - 1, c->config_path, err);
}

/* True if the module has a path that is neither this folder nor one in it: its files are not those that would be read. */
static bool is_elsewhere(const json_value *module) {
    const json_value *path = llm_json_get(module, "path");
    return path && path->kind != JSON_NULL && !llm_json_is(path, "") && !llm_json_is(path, ".");
}

ggl_status llm_converter_find_model(llm_converter *c, ggl_error *err) {
    ggl_status s = read_optional(c, "modules.json", &c->modules, err);
    const json_value *m = s == GGL_OK ? first_module(c) : NULL;
    const ggl_str folder = m ? folder_of(m) : (ggl_str){"", 0};
    c->model_folder =
        folder.n > 0 ? ggl_arena_printf(&c->arena, "%s/%.*s", c->folder, (int)folder.n, folder.s)
                     : c->folder;
    c->config_path =
        c->model_folder ? ggl_arena_printf(&c->arena, "%s/config.json", c->model_folder) : NULL;
    if (s == GGL_OK && c->modules)
        s = check_kinds(c, err);
    if (s == GGL_OK && m && folder.n == 0 && is_elsewhere(m))
        s = refuse_path(c, m, err);
    if (s == GGL_OK && folder.n > 0 && c->config_path && ggl_str_is(kind_of(m), "Transformer") &&
        !ggl_file_exists(c->config_path))
        s = refuse_missing(folder, c->config_path, err);
    if (s != GGL_OK)
        return s;
    return c->config_path ? name_class(c, err) : llm_converter_no_memory(err);
}

ggl_status llm_converter_each_module(llm_converter *c, llm_convert_on_folder *each, void *user,
                                     ggl_error *err) {
    const json_value *list = c->modules ? &c->modules->root : NULL;
    const size_t n = list && list->kind == JSON_ARRAY ? list->n : 0;
    ggl_str *seen = ggl_arena_alloc(&c->arena, n + 1, sizeof *seen); /* names end in NUL */
    size_t n_seen = 0;
    ggl_index names = {0};
    ggl_status s = seen ? ggl_index_init(&names, n, sizeof *seen, GGL_INDEX_STRINGS, err)
                        : llm_converter_no_memory(err);
    for (size_t i = 0; i < n && s == GGL_OK; i++) {
        const ggl_str folder = folder_of(&list->item[i]), kind = kind_of(&list->item[i]);
        const bool has_weights =
            i == 0 || ggl_str_is(kind, "Dense") || ggl_str_is(kind, "LayerNorm");
        if (folder.n == 0 || ggl_index_find(&names, seen, folder) != SIZE_MAX)
            continue; /* a list may have a name many thousand times */
        const char *name = ggl_arena_strndup(&c->arena, folder.s, folder.n);
        seen[n_seen] = (ggl_str){name, folder.n};
        if (name)
            ggl_index_put(&names, seen, n_seen++);
        s = name ? each(user, name, has_weights, err) : llm_converter_no_memory(err);
    }
    ggl_index_fini(&names);
    return s;
}

ggl_status llm_converter_read_modules(llm_converter *c, ggl_error *err) {
    ggl_status s = read_optional(c, "config_sentence_transformers.json", &c->prompts, err);
    if (s == GGL_OK && c->prompts)
        s = read_truncation(c, err);
    if (s == GGL_OK)
        s = read_optional(c, "artifact.metadata", &c->artifact, err);
    if (s != GGL_OK || !c->modules)
        return s;
    for (size_t i = 0; i < c->modules->root.n && s == GGL_OK; i++)
        s = read_module(c, &c->modules->root.item[i], err);
    return s == GGL_OK && !c->usual_class ? read_longest(c, err) : s;
}

/* How many Dense modules the descriptor computes itself, as it says. */
static int n_taken(const llm_converter *c) {
    static const char *const lines[] = {"modules.Dense_1.linear", "modules.Dense_0.linear",
                                        "use sentence_dense"};
    static const int n[] = {2, 1, 1};
    for (int k = 0; k < 3; k++)
        if (ggl_find_bytes(c->arch->text.s, c->arch->text.n, lines[k], strlen(lines[k])))
            return n[k];
    return 0;
}

/* True if the descriptor computes what comes after the pooling: Dense modules of a kind that it knows. */
static bool is_of_descriptor(const llm_converter *c) {
    const int n = llm_converter_n_after(c);
    bool fits = n <= n_taken(c) && (c->pooling >= 0 || c->n_poolings == 0) && !c->skips_prompt;
    for (int k = 0; k < n && fits; k++) {
        const st_module *m = &c->after[k];
        const bool plain = strcmp(m->activation, "identity") == 0;
        fits = strcmp(m->kind, "dense") == 0 && !m->adds_input &&
               (n == 1 ? plain || strcmp(m->activation, "tanh") == 0 : plain && !m->biased);
    }
    /* of two products without anything between them, a descriptor takes both */
    return fits && (n == 0 || n == n_taken(c));
}

ggl_status llm_converter_place_modules(llm_converter *c, ggl_error *err) {
    text t = {0};
    ggl_status s = GGL_OK;
    c->has_head = c->modules && llm_converter_n_after(c) > 0 && !is_of_descriptor(c);
    if (c->has_head && c->n_poolings == 0)
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "%s/modules.json: modules for the vector of each token, which this class's "
                        "descriptor does not compute",
                        c->folder);
    const int n = c->has_head ? 0 : llm_converter_n_after(c);
    const char **file = ggl_arena_alloc(&c->arena, (size_t)n + 1, sizeof *file);
    c->conv.dense_file = file;
    if (!file)
        return llm_converter_no_memory(err);
    for (int k = 0; k < n && s == GGL_OK; k++) {
        const ggl_str folder = c->after[k].folder;
        file[k] = ggl_arena_printf(&c->arena, "%.*s/config.json", (int)folder.n, folder.s);
        c->conv.n_dense = k + 1;
        s = file[k] ? put_dense(c, &t, folder, k, err) : llm_converter_no_memory(err);
    }
    for (const arch_mapping *m = c->conv.section->map; m && s == GGL_OK; m = m->next)
        if (m->kind == MAP_FOLDER)
            s = put_folder(c, &t, m->name, err);
    if (s == GGL_OK && t.n > 0)
        s = extend_config(c, c->config_path, &t, err);
    ggl_free(t.s);
    return s;
}
