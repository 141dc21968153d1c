/* What llm-arch init writes of the rows that enter a stage: patches of a picture, a sound, or rows of which nothing is known. The tensor that
 * reads them tells which. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "init.h"

/* Returns a number of the file that is the same in all layers; NULL: it has none of that name. */
static const arch_name *single(const init *in, const char *name) {
    const arch_name *a = arch_names_find(in->names, name);
    return a && a->value && !a->varies ? a : NULL;
}

/* --- patches ---------------------------------------------------------------------------------- */

/* Writes an argument of picture(..): the key, or what stands for it if the file lacks it. */
static void print_argument(const init *in, const char *name, const char *key, const char *missing) {
    char full[192];
    snprintf(full, sizeof full, "%s.%s", in->arch, key);
    if (ggl_gguf_find(in->f, full))
        printf(", %s = .%s", name, key);
    else
        printf(", %s = %s", name, missing);
}

static void print_picture(const init *in, const decl *patch) {
    char side[ARCH_EXPR];
    double x = 0;
    init_dim_text(in, patch, 0, side, sizeof side);
    printf("# How is a picture fitted to what the eye sees (fit, resize), in which order are its "
           "patches (block), and what stands around it in a\n# text (begin, end)? "
           "docs/architectures.md#pictures\n"
           "input %s [%s, %s, 3] from picture(patch = %s",
           in->rows, side, side, side);
    if (arch_names_find(in->names, "patch_size") &&
        arch_names_value(in->names, "image_size", -1, &x) && fmod(x, (double)patch->key.ne[0]) != 0)
        printf(", size = %s * floor(.vision.image_size / %s)", side, side);
    else
        print_argument(in, "size", "vision.image_size", side);
    print_argument(in, "mean", "vision.image_mean", "0.5");
    print_argument(in, "std", "vision.image_std", "0.5");
    printf(")\n\n");
}

static void print_from_patches(const init *in, const char *w) {
    printf("x = linear(flat(%s), reshape(%s, count(%s), size(%s, 3)))", in->rows, w, in->rows, w);
}

/* --- sounds ----------------------------------------------------------------------------------- */

static void print_sound(const init *in, const decl *conv) {
    char bands[ARCH_EXPR];
    const arch_name *n_sound = single(in, "n_sound");
    const named *filters = init_find_named(in->part, "mel_filters");
    const ggl_gguf_tensor *pos = init_find_own(in, "position_embd.weight");
    init_dim_text(in, conv, 1, bands, sizeof bands);
    printf("# Is a sound made into rows so (rate, window, step, range), of how many seconds, and "
           "what stands around it in a text (begin, end)?\n# docs/architectures.md#stages\n"
           "input %s [%s] from sound(rate = 16000, window = 400, step = 160, seconds = ",
           in->rows, bands);
    /* a second convolution takes every other row: 50 are left of a second */
    if (n_sound)
        printf("n_sound / 50");
    else
        printf("%" PRId64, pos && pos->ne[1] >= 50 ? pos->ne[1] / 50 : 30);
    if (filters)
        printf(", filters = %s", filters->as);
    printf(")\n\n");
}

static void print_from_sound(const init *in, const char *w) {
    printf("x = conv_rows(%s, %s)  # a convolution that takes every other row begins another "
           "stage: over %s(every = 2)",
           in->rows, w, in->stage);
}

/* --- others ----------------------------------------------------------------------------------- */

static void print_unknown(const init *in, const decl *none) {
    const arch_name *width = single(in, "n_embd");
    (void)none;
    printf("# The rows that enter %s are no tokens. Say what they are, and how a tool prepares "
           "them: "
           "floats(), sound(..) or picture(..), and write\n# in the stage how a row becomes "
           "x.\ninput %s [%s] from floats()\n\n",
           in->prefix[0] ? in->prefix : in->stage, in->rows, width ? width->name : "1");
}

static void print_from_unknown(const init *in, const char *none) {
    (void)none;
    printf("x = %s", in->rows);
}

/* The kinds of rows; the last one is of all others. */
static const struct {
    const char *stage; /* NULL: called by its prefix */
    const char *rows;
    const char *number; /* that print_input names, if the file has it */
    const named *(*reader)(const init *in);
    void (*print_input)(const init *in, const decl *reader);
    void (*print_x)(const init *in, const char *reader);
} kind[] = {{"eye", "patch", "patch_size", init_find_patches, print_picture, print_from_patches},
            {"ear", "mel", "n_sound", init_find_convolution, print_sound, print_from_sound},
            {NULL, "seen", "n_embd", NULL, print_unknown, print_from_unknown}};
enum { OTHERS = sizeof kind / sizeof *kind - 1 };

static size_t kind_of(const init *in) {
    size_t k = 0;
    while (k < OTHERS && !kind[k].reader(in))
        k++;
    return k;
}

void init_name_stage(init *in) {
    const size_t k = in->over_rows ? kind_of(in) : OTHERS;
    char word[64];
    if (kind[k].stage || !in->prefix[0])
        snprintf(word, sizeof word, "%s", kind[k].stage ? kind[k].stage : "text");
    else
        (void)init_word_of(in->prefix, "", word, sizeof word);
    for (size_t n = strlen(word); n > 1 && word[n - 1] == '_'; n--)
        word[n - 1] = '\0';
    init_own_word(in, word, in->stage, sizeof in->stage);
    if (!in->over_rows)
        return;
    init_own_word(in, kind[k].rows, in->rows, sizeof in->rows);
    arch_names_use(in->names, kind[k].number);
}

void init_print_input(const init *in) {
    const size_t k = kind_of(in);
    kind[k].print_input(in, k == OTHERS ? NULL : &in->decl[kind[k].reader(in)->first]);
}

void init_print_x(const init *in) {
    const size_t k = kind_of(in);
    kind[k].print_x(in, k == OTHERS ? NULL : kind[k].reader(in)->as);
}
