/* A rendering in progress: variables and output. eval.c evaluates expressions, run.c statements. */
#ifndef LLM_TEMPLATE_RUN_H
#define LLM_TEMPLATE_RUN_H

#include "builtins.h"
#include "node.h"
#include "origin.h"

/* A variable of a scope. Scopes are numbered from 1 on as they are nested; 0 is the template's. */
typedef struct binding {
    tv value;
    int scope; /* 0: the variable is in no scope but the template's */
} binding;

/* What a variable was before its scope set it. */
typedef struct undo {
    int id;
    binding was;
} undo;

typedef struct run {
    tv_heap h;
    const llm_template *t;
    binding *local; /* by index of name: the innermost scope's */
    tv *global;     /* by index of name: the template's own; kind UNDEFINED: none */
    undo *undo;
    size_t n_undo, cap_undo;
    int scope;   /* the current one */
    int outside; /* scopes up to this one belong to callers of the current macro */
    tv_text *out;
    struct tv_loop *looping; /* the innermost loop in progress; NULL: none */
} run;

typedef struct tv_captured {
    int id;
    tv value;
} tv_captured;

typedef struct tv_macro {
    const tn *node; /* MACRO or CALLER: parameters a, body c */
    /* The variables of the scopes around it, such as a loop's; those of the template are not here. */
    tv_captured *around;
    size_t n_around;
} tv_macro;

tv llm_run_eval(run *r, const tn *t);
tv llm_run_variable(run *r, int id);
void llm_run_set(run *r, int id, tv value);
/* Begins a scope and returns what llm_run_leave needs to end it. */
size_t llm_run_enter(run *r);
void llm_run_leave(run *r, size_t mark);

/* How a template is rendered: what the callers differ in. */
typedef struct llm_tn_rendering {
    void (*set)(run *r, void *ctx);          /* sets the template's variables */
    void (*failed)(const run *r, void *ctx); /* it has failed; NULL: nobody asks */
    void *ctx;
    llm_spans
        *given; /* gets the stretches of the text that stem from messages; NULL: nobody asks */
    size_t max_steps, max_memory; /* as those of llm_template_params */
    bool refuses_bare;
} llm_tn_rendering;

GGL_NODISCARD ggl_status llm_tn_render(const llm_template *t, const llm_tn_rendering *how,
                                       char **text, size_t *size, ggl_error *err);
/* Set variables of the template, if it mentions them: one, one of JSON, all of an object. The variable "now" is also the time. */
void llm_run_set_global(run *r, ggl_str name, tv value);
void llm_run_set_value(run *r, ggl_str name, const json_value *value);
void llm_run_set_json(run *r, const json_value *object);

/* Evaluates the ARGs of a call. */
tv_given llm_run_args(run *r, const tn *args);
/* Applies a list of filters, whose innermost has no source, to a value. */
tv llm_run_filters(run *r, const tn *filters, tv value);
tv llm_run_call(run *r, tv fn, const tv_given *g, tv caller);
/* Calls a macro; caller: the macro of a call block, or none. */
tv llm_run_macro(run *r, const tv_macro *m, const tv_given *g, tv caller);

#endif
