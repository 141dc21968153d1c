/* What a quantized file will hold: each tensor of a model with the type it gets, from a mix or a
 * type, and from what the user chose otherwise. */
#ifndef TOOLS_QUANT_PLAN_H
#define TOOLS_QUANT_PLAN_H

#include <regex.h>

#include "common/quant_mix.h"
#include "ggl/alloc.h"
#include "ggl/gguf.h"

/* --tensor-type PATTERN=TYPE: tensors whose name the (extended POSIX) expression matches. */
typedef struct quant_override {
    const char *text; /* as given */
    regex_t pattern;
    const ggl_type_info *type;
    size_t n_tensors; /* that it spoke for */
} quant_override;

typedef struct quant_choice {
    const quant_mix *mix; /* NULL: `type` for every tensor that is quantized */
    const char *type;     /* NULL, too: each keeps its type, but for what is chosen below */
    bool merge_experts;   /* one tensor for each expert becomes one for all */
    bool pure;            /* the mix's base type for every tensor that is quantized */
    const char *output, *embedding; /* types of output.weight and token_embd.weight; or NULL */
    quant_override *override;       /* the first that matches counts */
    size_t n_override;
    bool requantize; /* what is quantized already may be quantized again */
} quant_choice;

typedef struct quant_tensor {
    const ggl_gguf_tensor *from;        /* merged: as a whole, with the data of the first part */
    const ggl_gguf_tensor *const *part; /* [n_part]: what it is made of, one after the other */
    size_t n_part;
    char name[128];
    char shown[300];           /* the name, what cannot be printed as \xHH */
    const ggl_type_info *type; /* from->type's: it is copied */
    const char *wanted;        /* the type it was to get, if its rows do not fit that; or NULL */
    size_t size;               /* bytes of the result */
} quant_tensor;

typedef struct quant_plan {
    quant_tensor *tensor; /* in the file's order */
    size_t n;
    size_t size_before, size_after; /* of all tensors */
    double n_elements;
    ggl_arena made; /* what merged tensors need */
} quant_plan;

/* GGL_UNSUPPORTED: a tensor's type is not in this build, or is only read; GGL_USAGE: a tensor is
 * quantized already; GGL_NOT_FOUND: an override matches nothing, or there are no experts to merge;
 * GGL_FORMAT: they cannot be; GGL_LIMIT, GGL_NOMEM. The message
 * names the tensor, or the override. */
ggl_status quant_plan_make(quant_plan *p, const ggl_gguf *f, quant_choice *c, ggl_error *err);
void quant_plan_fini(quant_plan *p);
/* experts.c: joins tensors of single experts, of a plan that has names and `from` only. GGL_NOT_FOUND: there are none;
 * GGL_FORMAT: they are no stack, as one is missing or they differ; GGL_LIMIT, GGL_NOMEM. */
ggl_status quant_merge_experts(quant_plan *p, ggl_error *err);

#endif
