/* llm-arch init: writes a descriptor's declarations from a model's keys and tensors, as stages where it has parts. The author adds what
 * happens to a token. */
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "common/load.h"
#include "ggl/internal/show.h"
#include "init.h"
#include "tool.h"

#define TOOL "llm-arch init"

/* True if the file says that its tokens see later ones, too. */
static bool sees_all(const init *in) {
    char key[128];
    bool causal = true;
    snprintf(key, sizeof key, "%s.attention.causal", in->arch);
    return ggl_gguf_get_bool(in->f, key, &causal, NULL) == 1 && !causal;
}

/* Returns the part that has one token after the other; NULL: all are stages. */
static const init *causal_part(const init *part) {
    for (int k = 1; k < part->n_parts; k++)
        if (strcmp(part[k].prefix, "dec.") == 0)
            return &part[k];
    return part->n_parts == 1 ? (sees_all(part) ? NULL : part) : part->n_layer > 0 ? part : NULL;
}

/* True if the part's rows are not of tokens: no embedding is there for them. */
static bool is_over_rows(const init *in) {
    return in != in->part && !in->whole && in != causal_part(in->part);
}

static bool is_eye(const init *in) {
    const ggl_gguf_tensor *t = init_find_own(in, "patch_embd.weight");
    return is_over_rows(in) && t && t->n_dims == 4 && t->ne[2] == 3 && t->ne[0] == t->ne[1];
}

/* Writes the name of the part's stage into buf, and returns it. */
static const char *stage_name(const init *in, char *buf, size_t size) {
    const char *name = is_eye(in) ? "eye" : "text";
    if (is_eye(in) || in == in->part)
        snprintf(buf, size, "%s", name);
    else
        (void)init_word_of(in->prefix, "", buf, size);
    for (size_t n = strlen(buf); n > 1 && buf[n - 1] == '_'; n--)
        buf[n - 1] = '\0';
    return buf;
}

/* Writes an argument of picture(..): the key, or what stands for it if the file lacks it. */
static void print_argument(const init *in, const char *name, const char *key, const char *missing) {
    char full[192];
    snprintf(full, sizeof full, "%s.%s", in->arch, key);
    if (ggl_gguf_find(in->f, full))
        printf(", %s = .%s", name, key);
    else
        printf(", %s = %s", name, missing);
}

/* Writes the input that a stage over rows reads. */
static void print_input(init *in) {
    const ggl_gguf_tensor *patch = init_find_own(in, "patch_embd.weight");
    if (!is_eye(in)) {
        printf("# The rows that enter %s are no tokens. Say what they are, and how a tool prepares "
               "them: "
               "floats(), sound(..) or picture(..), and write\n# in the stage how a row becomes "
               "x.\ninput seen [n_embd] from floats()\n\n",
               in->prefix);
        return;
    }
    char side[64];
    const arch_name *a = arch_names_find(in->names, "patch_size");
    double x = 0;
    snprintf(side, sizeof side, "%" PRId64, patch->ne[0]);
    if (a && arch_names_value(in->names, a->name, -1, &x) && x == (double)patch->ne[0])
        snprintf(side, sizeof side, "%s", a->name);
    printf("# How is a picture fitted to what the eye sees (fit, resize), in which order are its "
           "patches (block), and what stands around it in a\n# text (begin, end)? "
           "docs/architectures.md#pictures\n"
           "input patch [%s, %s, 3] from picture(patch = %s",
           side, side, side);
    if (a && arch_names_value(in->names, "image_size", -1, &x) &&
        fmod(x, (double)patch->ne[0]) != 0)
        printf(", size = %s * floor(.vision.image_size / %s)", side, side);
    else
        print_argument(in, "size", "vision.image_size", side);
    print_argument(in, "mean", "vision.image_mean", "0.5");
    print_argument(in, "std", "vision.image_std", "0.5");
    printf(")\n\n");
}

/* Writes the line `layer`, with the name of the number of layers. */
static void print_layer_line(const init *in) {
    const arch_name *n = arch_names_find(in->names, "n_layer");
    double x = 0;
    if (in->n_parts > 1 && n && !(arch_names_value(in->names, n->name, -1, &x) && x == in->n_layer))
        n = NULL;
    const char *name = n ? n->name : NULL;
    for (int i = 0; in->n_parts > 1 && !name && i < in->names->n; i++) {
        const arch_name *a = &in->names->at[i];
        if (a->used && a->value && !a->varies && arch_names_value(in->names, a->name, -1, &x) &&
            x == in->n_layer && strstr(a->name, "block"))
            name = a->name;
    }
    if (name)
        printf("%*slayer l < %s:\n", in->indent, "", name);
    else
        printf("%*slayer l < %d:\n", in->indent, "", in->n_layer);
}

/* Writes the graph of a part as far as it is known: what enters the layers, and these. */
static void print_part(init *in, const char *n_rot) {
    const arch_name *of = n_rot ? arch_names_find(in->names, n_rot) : NULL;
    const int by = in->indent;
    if (is_eye(in))
        printf("%*sx = linear(flat(patch), reshape(patch_embd, count(patch), size(patch_embd, "
               "3)))\n\n",
               by, "");
    else if (is_over_rows(in))
        printf("%*sx = seen\n\n", by, "");
    else
        printf("%*s%sx = %s[token]\n\n", by, "", in->whole ? "" : "# ", in->embedding);
    print_layer_line(in);
    init_print_names(in, true);
    init_print_groups(in, false);
    init_print_kinds(in, NONE, by + 2);
    if (of && of->varies)
        printf("%*s  freq, mag = rope_scaled(%s, .rope.freq_base ?? 10000)\n", by, "", n_rot);
    printf("\n%*s  # h = %s(x, attn_norm, eps)\n%*s  # x = x + ..\n\n", by, "", init_norm_of(in),
           by, "");
}

/* Writes a stage, and what it returns. */
static void print_stage(init *in, const char *n_rot) {
    char name[64], prefix[64] = "", over[16] = "";
    if (is_over_rows(in)) {
        print_input(in);
        snprintf(over, sizeof over, " over %s", is_eye(in) ? "patch" : "seen");
    }
    if (in->prefix[0])
        snprintf(prefix, sizeof prefix, " \"%s\"", in->prefix);
    printf("stage %s%s%s:\n", stage_name(in, name, sizeof name), over, prefix);
    if (in != in->part)
        init_print_groups(in, true);
    print_part(in, n_rot);
    printf("%*sreturn ", in->indent, "");
    if (in->normed)
        printf("%s(x, output_norm, eps)\n\n", init_norm_of(in));
    else
        printf("x\n\n");
}

/* Writes what a model of stages alone gives, or what is read of one beside its tokens. */
static void print_results(const init *part, const init *causal) {
    char name[64];
    for (int k = part->n_parts > 1 ? 1 : 0; k < part->n_parts; k++)
        if (&part[k] != causal) {
            stage_name(&part[k], name, sizeof name);
            if (is_over_rows(&part[k]) && !causal)
                printf("rows = %-53s # a projector that follows it: a stage over %s\n", name, name);
            else if (!causal && init_find_own(part, "output.weight"))
                init_print_logits(part, name, false);
            else if (!is_over_rows(&part[k]))
                printf("embedding = %-48s # of each token; a reranker or classifier: score = "
                       "linear(%s[0], ..)\n",
                       name, name);
        }
}

/* Writes the part with one token after the other. */
static void print_causal(init *in, const char *n_rot) {
    char name[64];
    if (in->prefix[0]) {
        printf("prefix \"%s\"\n", in->prefix);
        init_print_groups(in, true);
    }
    for (int k = 1; k < in->n_parts; k++)
        if (&in->part[k] != in)
            printf("# its attention to %s: attend(.., cache(.., ..)), whose keys and values are "
                   "made of the rows %s\n",
                   in->part[k].prefix, stage_name(&in->part[k], name, sizeof name));
    print_part(in, n_rot);
    init_print_logits(init_find_own(in, "output.weight") ? in : in->part, "x", in->normed);
}

/* Writes the head: what this is, its name, and the number of the language. */
static void print_head(const init *in, const char *name) {
    char key[128];
    ggl_str kind = {"", 0};
    bool word = isalpha((unsigned char)name[0]) || name[0] == '_';
    for (const char *c = name; *c; c++)
        word = word && (isalnum((unsigned char)*c) || *c == '_');
    snprintf(key, sizeof key, "%s.projector_type", in->arch);
    if (strcmp(name, in->arch) == 0) /* which a descriptor has for each kind of projector */
        (void)ggl_gguf_get_string(in->f, key, &kind, NULL);
    if (kind.n > 48 || !init_is_plain(kind.s, kind.n))
        kind.n = 0;
    word = word && kind.n == 0;
    ggl_fprint(stdout,
               "# %s: started by llm-arch init. The contents of a layer are left to write. A '?' "
               "in a comment marks a shape that this model leaves open: another of\n# its numbers "
               "is equal, or none is. `if l ..` lists this model's layers: replace it by the rule "
               "that decides.\narch %s%s%s%.*s%s\nlanguage 2\n\n",
               name, word ? "" : "\"", name, kind.n ? ":" : "", (int)kind.n, kind.s,
               word ? "" : "\"");
}

static void start(init *in, const char *name) {
    print_head(in, name);
    const char *n_rot = init_has_rope(in) ? init_rotated(in) : NULL;
    arch_names_use(in->names, n_rot);
    for (int k = 0; k < in->n_parts; k++)
        init_find_ends(&in[k]);
    const init *causal = causal_part(in);
    for (int k = 0; k < in->n_parts; k++) {
        in[k].indent = &in[k] == causal ? 0 : in == &in[k] && in->n_parts > 1 ? 0 : 2;
        in[k].has_stages = causal != in;
        if (is_eye(&in[k]))
            arch_names_use(in->names, "patch_size");
        init_name_weights(&in[k]);
    }
    init_print_names(in, false);
    for (int k = 0; k < in->n_parts; k++)
        if (in[k].order[0])
            printf("require %s\n", in[k].order);
    if (init_n_scores(in) > 0)
        printf("require n_vocab > %" PRId64 "\n", init_n_scores(in));
    init_print_rest(in, n_rot != NULL);
    putchar('\n');
    const int indent = in->indent;
    in->indent = 0; /* what is outside of layers is outside of stages, too */
    init_print_groups(in, true);
    in->indent = indent;
    if (causal)
        init_print_tied(in);
    const arch_name *of = n_rot ? arch_names_find(in->names, n_rot) : NULL;
    if (of && !of->varies)
        init_print_rope(in, n_rot);
    else if (!init_has_rope(in) && arch_names_find(in->names, "n_head"))
        printf("# freq, mag = rope_scaled(d, .rope.freq_base ?? 10000), should it rotate without a "
               "key\n");
    putchar('\n');
    for (int k = in->n_parts > 1 ? 1 : 0; k < in->n_parts; k++)
        if (&in[k] != causal)
            print_stage(&in[k], n_rot);
    print_results(in, causal);
    if (causal && in->n_parts > 1)
        putchar('\n');
    if (causal)
        print_causal(&in[causal - in], n_rot);
}

int arch_init(int argc, char **argv) {
    static init in[MOST_PARTS];
    static arch_names names;
    char arch[65] = "";
    memset(in, 0, sizeof in);
    arg_list files = {0};
    static const args_example examples[] = {
        {"llm-arch init - model.gguf", "starts a descriptor for a model of a new family"}, {0}};
    const args_spec spec = {TOOL,
                            "NAME MODEL",
                            "Prints the beginning of a descriptor: NAME is its architecture's name "
                            "(\"-\": the model's own); the\nmodel's keys become names, its tensors "
                            "declarations. The graph is left to write.",
                            NULL,
                            &files,
                            NULL,
                            .examples = examples};
    int code = arch_args(&spec, 2, 2, argc, argv);
    if (code >= 0)
        return code;
    ggl_error err = {0};
    ggl_gguf *f = NULL;
    ggl_str family = {"", 0};
    ggl_gguf_params p = {.size = sizeof p, .meta_only = true};
    if (tool_open_gguf(&f, files.s[1], &p, &err) != GGL_OK ||
        ggl_gguf_get_string(f, "general.architecture", &family, &err) < 0) {
        code = tool_error(TOOL, 1, "%s", err.msg);
    } else {
        snprintf(arch, sizeof arch, "%.*s", (int)(family.n < 64 ? family.n : 64), family.s);
        arch_names_init(&names, f, arch);
        in[0] = (init){.f = f, .arch = arch, .names = &names, .part = in, .n_parts = 1};
        init_find_parts(in);
        for (int k = 0; k < in->n_parts && code < 0; k++)
            code = init_collect(&in[k]) ? -1 : tool_error(TOOL, 1, "out of memory");
        for (int k = 0; k < in->n_parts && code < 0; k++)
            init_name_shapes(&in[k]);
        if (code < 0) {
            start(in, strcmp(files.s[0], "-") == 0 ? arch : files.s[0]);
            code = 0;
        }
    }
    for (int k = 0; k < MOST_PARTS; k++)
        init_finish(&in[k]);
    ggl_gguf_close(f);
    args_list_fini(&files);
    return code;
}
