/* A descriptor's convert section, put to work. First the keys:
 *
 *     c.section = llm_arch_find_convert(arch, "LlamaForCausalLM");
 *     llm_arch_convert_keys(&c, &err);
 *
 * then the descriptor is built with them, and each declared weight asks for its mapping, which becomes a recipe:
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
    const char *name; /* in full */
    llm_arch_key key; /* handle: the items */
    const arch_mapping *line;
} converted_key;

typedef struct converted_tensor {
    const char *name;
    int n_dims; /* as declared */
    int64_t ne[GGL_MAX_DIMS];
    recipe *recipe;
    /* read otherwise than as a matrix or by rows: a norm's weight, a convolution's taps; or it
     * picks experts */
    bool only_f32;
} converted_tensor;

typedef struct arch_ignored {
    const char *pattern;
    const arch_mapping *line;
} arch_ignored;

typedef struct arch_conversion {
    const llm_arch *arch;
    const arch_convert *section;
    const json_value *config;
    llm_safetensors *source;
    const char *no_source; /* why `source` is NULL */
    ggl_backend *backend;  /* computes constants, in double; NULL: there may be none */
    const llm_arch_ignore
        *ignore; /* at the user's risk: `key` of config.json's values, `tensor`; NULL: nothing */
    size_t *key_hits,
        *tensor_hits; /* of each pattern of `ignore`: how often something unread fitted; NULL: not wanted */
    bool collect; /* go on after errors, as far as that makes sense, and keep them in `fault` */
    /* what comes out */
    ggl_arena arena;
    const char *family;
    llm_arch_item family_item; /* the same, as the key general.architecture */
    converted_key *key;
    size_t n_key, cap_key;
    converted_tensor *tensor;
    size_t n_tensor, cap_tensor;
    arch_ignored *ignored; /* patterns of source tensors */
    size_t n_ignored, cap_ignored;
    const char **fault; /* of `collect`: the messages */
    size_t n_fault, cap_fault;
    const char **note; /* those of `note` lines whose condition holds */
    size_t n_note, cap_note;
    /* it was asked of each unread tensor whether a pattern of `ignore` fits it */
    bool tensors_known;
    bool no_keys; /* of `collect`: a key line failed, so that the descriptor cannot be built */
    /* while it runs */
    const arch_mapping
        *making; /* the line that asks for source tensors, and the weight that it makes */
    const char *made;
    char source_name[300]; /* "the convert section in llama.arch:56" */
    bool keys_done;
    bool stacking, in_constant, whole_numbers; /* whole_numbers: in whole(..) */
    bool own_bias;                             /* the line is that of a bias */
    int64_t e;                                 /* `e` and "{e}", in a stack or list */
    const json_value *inner; /* the object that a `within` line names; NULL: there is none */
} arch_conversion;

const arch_convert *llm_arch_find_convert(const llm_arch *arch,
                                          ggl_str name); /* NULL: it has none for that */
GGL_NODISCARD ggl_status llm_arch_convert_keys(arch_conversion *c, ggl_error *err);
GGL_NODISCARD ggl_status llm_arch_convert_tensors(arch_conversion *c, ggl_error *err);
void llm_arch_conversion_fini(arch_conversion *c);
const converted_key *llm_arch_converted_key(const arch_conversion *c,
                                            const char *name); /* in full */

/* section_config.c: the names of a field, config.a.b: a, b; at most `most` of them. Returns how many there are; *root: config or
 * rope, or "" if it is neither. */
int llm_arch_field_path(const arch_expr *e, const char **name, int most, const char **root);
#define ARCH_ROPE_NAMES 3
/* What `rope.NAME` is called in config.json; *outside: its names beside rope_parameters and rope_scaling, NULL after the last. */
const char *llm_arch_rope_key(const char *name, const char *const **outside);

/* What the compiler asks of a conversion (arch_converter in compile/compile.h), where it is not in section.c. */
arch_value llm_arch_convert_field(arch_eval *ev, const arch_expr *e);
arch_value llm_arch_convert_has(arch_eval *ev, const arch_expr *e);
arch_value llm_arch_convert_call(arch_eval *ev, const arch_expr *e);
bool llm_arch_convert_expand_ignored(arch_eval *ev);

/* A `within` line. */
bool llm_arch_convert_within(arch_eval *ev, const arch_mapping *m);
/* Where the rotation's values stand: the object of a `within` line, else config.json itself. */
const json_value *llm_arch_convert_root(const arch_conversion *c);

/* section_unread.c: values of config.json that no line of the section reads, in their order. */
typedef struct arch_unread {
    const char *path;
    const json_value *value;
    ggl_str refused; /* for this reason; s NULL: just unread */
    bool on_request; /* the user wants it to be ignored */
} arch_unread;
/* The path for messages: "" in quotes, if the value's name is empty. */
static inline const char *arch_unread_text(const arch_unread *u) {
    return u->path[0] ? u->path : "\"\"";
}
typedef void (*arch_unread_fn)(void *ctx, const arch_unread *x);
GGL_NODISCARD ggl_status llm_arch_convert_each_unread(const arch_conversion *c,
                                                      arch_unread_fn found, void *ctx,
                                                      ggl_error *err);
/* GGL_UNSUPPORTED: there are some; the message names them. */
GGL_NODISCARD ggl_status llm_arch_convert_check_config(const arch_conversion *c, ggl_error *err);
/* A value for messages: 0.5, "silu", a list of 3; returns buf. */
const char *llm_arch_json_text(const json_value *v, char *buf, size_t size);

/* Keeps a message, each once; false: out of memory. */
bool llm_arch_convert_add_fault(arch_conversion *c, const char *msg);
/* Keys that nothing in the descriptor reads, by their lines. GGL_FORMAT */
GGL_NODISCARD ggl_status llm_arch_convert_check_keys(arch_conversion *c, ggl_error *err);

/* section_ignore.c: the line whose `ignore` names the tensor, or NULL. */
const arch_mapping *llm_arch_convert_ignored(const arch_conversion *c, ggl_str name);
bool llm_arch_convert_tensor_on_request(const arch_conversion *c, const st_tensor *t);
/* section_leftovers.c. GGL_FORMAT: there are tensors that no line reads or ignores. */
GGL_NODISCARD ggl_status llm_arch_convert_check_leftovers(arch_conversion *c, ggl_error *err);

/* section_expr.c: the tensor stem.weight, or of a bias stem.bias, or `stem` itself; NULL: the folder has none. */
st_tensor *llm_arch_convert_find_source(const arch_conversion *c, const char *stem, bool is_bias);
/* A line reads the tensor. */
void llm_arch_convert_use(arch_conversion *c, st_tensor *t);
/* The first tensor that an expression is made of, by its name in the folder; NULL: of none. In a stack that of {e}, outside of one the
 * first. */
const char *llm_arch_convert_source_name(arch_eval *ev, const arch_expr *e, bool is_bias);
/* What a mapping makes; *out NULL: nothing, as it may be. false: ev has the error. */
bool llm_arch_convert_make(arch_eval *ev, const arch_expr *e, bool is_bias, recipe **out);

#endif
