/* The contents of a quantized file: the tensors of a model with their new types, from a mix or a
 * type, and from the user's other choices. */
#ifndef LLM_QUANT_TYPE_PLAN_H
#define LLM_QUANT_TYPE_PLAN_H

#include "common/pattern.h"
#include "ggl/internal/alloc.h"
#include "ggl/gguf.h"
#include "prune.h"
#include "quant_mix.h"

/* --tensor-type PATTERN=TYPE: for tensors whose name matches the expression. */
typedef struct quant_override {
    const char *text; /* as given */
    llm_pattern *pattern;
    const ggl_type_info *type;
    size_t n_tensors; /* how many it matched */
} quant_override;

struct quant_tensor;

typedef struct quant_choice {
    const quant_mix *mix; /* NULL: `type` for every tensor that is quantized */
    /* Without a mix, or with `pure` if the mix has the name of a type (which need not be its base).
     * NULL, and no mix: tensors keep their types, except for the choices below. */
    const char *type;
    bool merge_experts;             /* join tensors of single experts */
    bool pure;                      /* use the mix's base type for every tensor that is quantized */
    const char *output, *embedding; /* types of output.weight and token_embd.weight; or NULL */
    quant_override *override;       /* the first one that matches applies */
    size_t n_override;
    bool requantize; /* quantized tensors may be quantized again */
    /* Instead of a mix or a type: returns the name of the type for a tensor that may be quantized and
     * that no other choice names; only its name and `from` are set. NULL: it keeps its type. */
    const char *(*pick)(void *ctx, const struct quant_tensor *t);
    void *pick_ctx;
    bool leave_output;  /* output.weight keeps its type */
    bool has_matrix;    /* there is an importance matrix, which some rules of mixes ask for */
    quant_prune *prune; /* layers to remove; NULL: none */
} quant_choice;

typedef struct quant_tensor {
    const ggl_gguf_tensor *from;        /* if joined: the result, with the data of the first part */
    const ggl_gguf_tensor *const *part; /* [n_part]: the parts in order, if joined */
    size_t n_part;
    char name[128];
    char shown[300];           /* the name, with unprintable bytes as \\xHH */
    const ggl_type_info *type; /* from->type's if it is copied */
    const char *wanted;        /* the intended type, if its blocks do not fit the rows; or NULL */
    size_t size;               /* size of the result in bytes */
} quant_tensor;

typedef struct quant_plan {
    quant_tensor *tensor; /* in the file's order */
    size_t n;
    size_t size_before, size_after; /* of all tensors */
    double n_elements;
    int64_t n_layer; /* of the model, before any are removed; 0: the file does not tell */
    ggl_arena made;  /* memory for joined tensors */
} quant_plan;

/* Sets *out to the type of that name, in any case. GGL_NOT_FOUND if none; GGL_UNSUPPORTED: it
 * cannot be encoded. On failure *out is NULL, and the message names the nearest type. */
ggl_status llm_quant_type_read(const ggl_type_info **out, const char *name, ggl_error *err);
/* Sets *c to the mix or type of that name, in any case, and no other choices. Fails in the same way. */
ggl_status llm_quant_choice_read(quant_choice *c, const char *name, ggl_error *err);
/* Plans the file. GGL_UNSUPPORTED: a tensor's type is not in this build, or cannot be written;
 * GGL_USAGE: a tensor is quantized already; GGL_NOT_FOUND: an override matches nothing, or there
 * are no experts to join, or a layer to remove is not there; GGL_FORMAT: the experts cannot be
 * joined; GGL_LIMIT, GGL_NOMEM. The message names the tensor or the override. */
ggl_status llm_quant_plan_make(quant_plan *p, const ggl_gguf *f, quant_choice *c, ggl_error *err);
void llm_quant_plan_fini(quant_plan *p);
/* Joins tensors of single experts in a plan that has only names and `from` (experts.c).
 * GGL_NOT_FOUND if none; GGL_FORMAT: one is missing or they differ; GGL_LIMIT,
 * GGL_NOMEM. */
ggl_status llm_quant_merge_experts(quant_plan *p, ggl_error *err);

#endif
