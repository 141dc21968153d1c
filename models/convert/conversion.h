/* Runs a descriptor's convert section. First the keys:
 *
 *     c.section = llm_arch_find_convert(arch, "LlamaForCausalLM");
 *     llm_arch_convert_keys(&c, &err);
 *
 * Then the descriptor is built with these keys, and each declared weight looks up its mapping,
 * which becomes a recipe:
 *
 *     llm_arch_convert_tensors(&c, &err);
 *     for (i < c.n_tensor) .. llm_recipe_read(c.tensor[i].recipe, ..) */
#ifndef LLM_ARCH_CONVERT_H
#define LLM_ARCH_CONVERT_H

#include "common/json.h"
#include "compile/compile.h"
#include "recipe.h"

#include "ggl/backend.h"

typedef struct converted_key {
    const char *name; /* the full name */
    llm_arch_key key; /* key.handle: the items */
    const arch_mapping *line;
} converted_key;

typedef struct converted_tensor {
    const char *name;
    int n_dims; /* as declared */
    int64_t ne[GGL_MAX_DIMS];
    recipe *recipe;
    const arch_mapping *line; /* that made it */
    /* must be f32: not used as a matrix or by rows (a norm's weight, a convolution's taps), or
     * decides which experts are used */
    bool only_f32;
    bool by_rows, by_product; /* some node looks its rows up; some node multiplies with it */
    int block_type; /* the one that has the sources' codes (packed.h); -1: none, or not looked for */
} converted_tensor;

typedef struct arch_ignored { /* a line of `ignore`, `only` or `copy` */
    const char *pattern;
    const arch_mapping *line;
} arch_ignored;

/* Objects in which `processor.x` is searched: of two files, the object for pictures, and all. */
#define ARCH_PROCESSORS 4
#define ARCH_PICTURES   "image_processor"
extern const char *const llm_arch_processor_files[ARCH_PROCESSORS / 2];

typedef struct arch_conversion {
    const llm_arch *arch;
    const arch_convert *section;
    const json_value *config;
    const json_value *generation; /* of generation_config.json; NULL: the folder has none */
    const json_value *processor[ARCH_PROCESSORS]; /* the first one counts; may be NULL */
    /* keys of the model for which this one guesses, without the family's name; NULL: it was not given */
    const json_value *target;
    const char *target_name;          /* its file, for messages */
    const char *folder, *config_path; /* of these files, for messages; NULL: their names alone */
    /* which of the folder's tokens are alike: llm_hf_tokens_alike; NULL: nobody knows */
    ggl_status (*alike)(const char *folder, const json_value *config, int64_t n, int32_t *kind,
                        int64_t *n_kinds, ggl_error *err);
    const char *const *dense_file; /* [n_dense]: that of config.modules.Dense_0, .. */
    int n_dense;
    llm_safetensors *source;
    const char *no_source; /* why `source` is NULL */
    bool needs_source;     /* a line failed because it is */
    ggl_backend *backend;  /* computes constants in double; NULL: a constant is an error */
    /* ignored at the user's risk: `key`: values of config.json, `tensor`; NULL: nothing */
    const llm_arch_ignore *ignore;
    /* per pattern of `ignore`: unread names that it matched; NULL: not counted */
    size_t *key_hits, *tensor_hits;
    /* the sources are only some of the model's: a weight without one counts as it is declared */
    bool partial;
    bool only_some; /* only some of the weights are wanted: sources that no line reads are fine */
    bool collect;   /* go on after errors where possible, and collect them in `fault` */
    /* results */
    ggl_arena arena;
    const char *family;
    llm_arch_item family_item; /* `family` as the value of the key general.architecture */
    converted_key *key;
    size_t n_key, cap_key;
    converted_tensor *tensor;
    size_t n_tensor, cap_tensor;
    size_t n_declared;     /* the first ones of `tensor`, which the descriptor reads */
    arch_ignored *ignored; /* patterns of source tensors, also those of `only` and `copy` */
    size_t n_ignored, cap_ignored;
    const char **fault; /* messages, if `collect` */
    size_t n_fault, cap_fault;
    const char **note; /* texts of `note` lines whose condition holds */
    size_t n_note, cap_note;
    const char *
        layers; /* the values that say how many layers there are, for messages; NULL: not known so far */
    /* tensor_hits are complete: each unread tensor was matched */
    bool tensors_known;
    bool no_keys; /* with `collect`: a key line failed, so the descriptor cannot be built */
    /* state while it runs */
    /* the line being evaluated, and the key or weight that it makes */
    const arch_mapping *making;
    const char *made;
    char source_name[300]; /* "the convert section in llama.arch:56" */
    bool keys_done;
    bool stacking, in_constant, whole_numbers, bytes; /* inside whole(..), inside numbers(..) */
    bool applies;                                     /* the section's condition holds */
    bool sizing;             /* inside size("..") of a tensor that a line makes */
    bool own_bias;           /* the line makes a bias: NAME.bias <- .. */
    int64_t e;               /* value of `e` and "{e}" in a stack or list */
    const json_value *inner; /* the object that a `within` line names, or NULL */
    /* section_packed.c: config.json's "quantization" of MLX, or NULL; valid if mlx_read */
    const json_value *mlx;
    bool mlx_read;
    bool has_packed; /* a source of a packed type was read */
} arch_conversion;

/* Returns the section for an architecture of Hugging Face; NULL: the descriptor has none. */
const arch_convert *llm_arch_find_convert(const llm_arch *arch, ggl_str name);
/* Evaluates the condition of c->section: *applies: it holds for the folder, or there is none. */
GGL_NODISCARD ggl_status llm_arch_convert_applies(arch_conversion *c, bool *applies,
                                                  ggl_error *err);
GGL_NODISCARD ggl_status llm_arch_convert_keys(arch_conversion *c, ggl_error *err);
GGL_NODISCARD ggl_status llm_arch_convert_tensors(arch_conversion *c, ggl_error *err);
void llm_arch_conversion_fini(arch_conversion *c);
/* Finds a key by its full name; NULL: the conversion makes none. */
const converted_key *llm_arch_converted_key(const arch_conversion *c, const char *name);

/* section_config.c: stores the names of config.a.b ("a", "b") in name[], at most `most`, and
 * returns how many it has. *root: "config", "generation", "target", "rope", or "" for anything else. */
int llm_arch_field_path(const arch_expr *e, const char **name, int most, const char **root);
#define ARCH_ROPE_NAMES 3
/* Returns the name of `rope.NAME` in config.json's rope objects. *outside: its names outside of
 * rope_parameters and rope_scaling; NULL ends the list. */
const char *llm_arch_rope_key(const char *name, const char *const **outside);

/* section_blame.c: writes "a.b = 3", the value of config.json that is x and that the line reads, to text; "" if there is none. */
const char *llm_arch_convert_cause(const arch_conversion *c, const arch_expr *e, double x,
                                   char *text, size_t size);

/* The hooks of a conversion (arch_converter in compile/compile.h) that are not in section.c. */
arch_value llm_arch_convert_field(arch_eval *ev, const arch_expr *e);
bool llm_arch_convert_numbered(arch_eval *ev, const arch_expr *e);
arch_value llm_arch_convert_has(arch_eval *ev, const arch_expr *e);
arch_value llm_arch_convert_call(arch_eval *ev, const arch_expr *e);
bool llm_arch_convert_expand_ignored(arch_eval *ev);

/* Finds config.a.b, generation.a, target.a, processor.a or rope.a; NULL: it is absent. False: reported. */
bool llm_arch_convert_find(arch_eval *ev, const arch_expr *e, const json_value **out);
/* section_blame.c: hooks, too. file, text: of `size` bytes. */
bool llm_arch_convert_value(arch_eval *ev, const arch_expr *e, bool absent, char *file, char *text,
                            size_t size);
void llm_arch_convert_walk(const arch_eval *ev, void (*visit)(void *ctx, arch_expr *e), void *ctx);
/* Returns the file in a folder within the folder that has the values config.modules.NAME, "2_Dense/config.json"; NULL: there is none. */
const char *llm_arch_convert_module_file(const arch_conversion *c, ggl_str name);
/* The same of a value; NULL: another file has it. */
const char *llm_arch_convert_folder(const arch_conversion *c, const arch_expr *e);
/* Writes the name of a tensor that is looked for, as the folder's files have it, for messages: "linear.weight of the folder 2_Dense". */
void llm_arch_convert_tensor_text(const arch_conversion *c, const char *name, char *buf,
                                  size_t size);
/* Returns the name of the file that a value is looked up in, for messages. */
const char *llm_arch_convert_file(const arch_conversion *c, const arch_expr *e);
/* Runs the `agree` lines, at the end of the descriptor. False: reported. */
bool llm_arch_convert_agree(arch_eval *ev);
/* Runs a `within` line. False: reported. */
bool llm_arch_convert_within(arch_eval *ev, const arch_mapping *m);
/* Checks that config.json has the object, or the value, of an `only` line. False: reported. */
bool llm_arch_convert_has_value(arch_eval *ev, const arch_mapping *m);
/* True if e is processor.x, and the folder has none of the files that say how pictures are prepared. */
bool llm_arch_convert_lacks_file(const arch_eval *ev, const arch_expr *e);
/* Returns the object that has the rope values: that of a `within` line, else config.json itself. */
const json_value *llm_arch_convert_root(const arch_conversion *c);
/* Replaces all {"__float__": "Infinity"} in config.json, which is how transformers 5.24 writes numbers that JSON lacks. */
void llm_arch_convert_plain_numbers(json_value *config);

/* section_unread.c: a value of config.json that no line of the section reads. */
typedef struct arch_unread {
    const char *path;
    const json_value *value;
    ggl_str refused; /* the reason for refusing it; s NULL: only unread */
    ggl_str known;   /* values that are read, with spaces between them; n 0: any, or none */
    bool on_request; /* the user asked to ignore it */
} arch_unread;
/* Returns the path for messages: two quotes if the value's name is empty. */
static inline const char *arch_unread_text(const arch_unread *u) {
    return u->path[0] ? u->path : "\"\"";
}
/* Calls found(ctx, x) for each unread value, in the order of config.json. */
typedef void (*arch_unread_fn)(void *ctx, const arch_unread *x);
GGL_NODISCARD ggl_status llm_arch_convert_each_unread(const arch_conversion *c,
                                                      arch_unread_fn found, void *ctx,
                                                      ggl_error *err);
/* Fails with GGL_UNSUPPORTED if there are unread values, which the message names. */
GGL_NODISCARD ggl_status llm_arch_convert_check_config(const arch_conversion *c, ggl_error *err);
/* Writes a value for messages: 0.5, "silu", [1, 2, 3, ..] of 48; returns buf. */
const char *llm_arch_json_text(const json_value *v, char *buf, size_t size);

/* Adds a message to c->fault, unless it is there already. False: out of memory. */
bool llm_arch_convert_add_fault(arch_conversion *c, const char *msg);
/* Checks that the descriptor reads all keys that the section makes. GGL_FORMAT: it does not. */
GGL_NODISCARD ggl_status llm_arch_convert_check_keys(arch_conversion *c, ggl_error *err);

/* section_ignore.c: returns the `ignore` line that matches the tensor, the `copy` line unless the user asked to ignore the
 * tensor, or the first `only` line if none of these lines does; NULL: a line should read the tensor. */
const arch_mapping *llm_arch_convert_ignored(const arch_conversion *c, const st_tensor *t);
bool llm_arch_convert_tensor_on_request(const arch_conversion *c, const st_tensor *t);
/* section_copies.c: at the end of the descriptor: checks that unread tensors of `copy` lines are copies. False: reported. */
bool llm_arch_convert_check_copies(arch_eval *ev);
/* Returns the folder's tensor of which an unread one is a copy by a `copy` line; NULL: it is none. */
const st_tensor *llm_arch_convert_original(const arch_conversion *c, const st_tensor *t);
/* section_leftovers.c: GGL_FORMAT if no line reads or ignores some source tensor. */
GGL_NODISCARD ggl_status llm_arch_convert_check_leftovers(arch_conversion *c, ggl_error *err);

/* section_source.c: finds the source tensor stem.weight (or stem.bias for a bias), or `stem`
 * itself, also under other prefixes. NULL: the folder has none. */
st_tensor *llm_arch_convert_find_source(const arch_conversion *c, const char *stem, bool is_bias);
/* True if the name of a tensor of the folder begins with the first n bytes of `name`, also under other prefixes. */
bool llm_arch_convert_has_sources(const arch_conversion *c, const char *name, size_t n);
/* Writes a value of a file; of objects and longer lists, what they are. */
void llm_arch_convert_value_text(const json_value *v, char *buf, size_t size);
/* Records that the current line reads the tensor. */
void llm_arch_convert_use(arch_conversion *c, st_tensor *t);
/* section_expr.c: returns the name in the folder of the first source tensor in an expression, or NULL. {e} is
 * the current index, or 0 outside of a stack. */
const char *llm_arch_convert_source_name(arch_eval *ev, const arch_expr *e, bool is_bias);
/* Makes the recipe for a mapping. *out NULL: its source tensors are absent, which may be
 * allowed. False: ev has an error. */
bool llm_arch_convert_make(arch_eval *ev, const arch_expr *e, bool is_bias, recipe **out);
/* section_packed.c: sets kind, shape and factors of *r, whose shape is t's, for a source t of a type
 * that needs unpacking. False: ev has an error. */
bool llm_arch_convert_unpack(arch_eval *ev, const arch_expr *e, recipe *r, st_tensor *t);
/* True for a tensor that folders of packed types have beside the weights, without effect on these. */
bool llm_arch_convert_is_beside(const arch_conversion *c, const st_tensor *t);

/* section_ngrams.c: values for tables whose rows hashes of tokens choose. */
arch_value llm_arch_convert_alike(arch_eval *ev, const arch_expr *e);
arch_value llm_arch_convert_primes(arch_eval *ev, const arch_expr *e);
arch_value llm_arch_convert_drawn(arch_eval *ev, const arch_expr *e);

#endif
