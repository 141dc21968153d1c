/* A run of llm-quantize, and the parts of the program. */
#ifndef LLM_QUANTIZE_JOB_H
#define LLM_QUANTIZE_JOB_H

#include "budget.h"
#include "common/args.h"
#include "measure/imatrix.h"
#include "quant/encode.h"
#include "quant/keys.h"
#include "quant/type_plan.h"

#define TOOL "llm-quantize"

typedef struct options {
    const char *in, *out, *output_type, *embedding_type, *imatrix, *prune, *tensor_type_file,
        *report;
    arg_list args, tensor_types, include, exclude, override_kv;
    bool pure, requantize, merge_experts, dry_run, verbose, leave_output, keep_split;
    int64_t n_threads;
    budget_options budget;
} options;

typedef struct job {
    options o;
    quant_choice choice;
    quant_prune prune;
    quant_key *key;  /* [o.override_kv.n]: --override-kv */
    char *type_file; /* the text of --tensor-type-file */
    ggl_gguf *file;
    quant_plan plan;
    budget *budget;                   /* NULL: TYPE says what the tensors get */
    imatrix *matrix;                  /* NULL: none */
    const imatrix_entry **importance; /* [plan.n]: of each tensor; NULL: it has none */
    size_t n_used;                    /* entries of the matrix that --include-weights and
                                      * --exclude-weights leave */
    quant_encoder *encoder;
    quant_error *error;            /* [plan.n] */
    struct tensor_job *tensor_job; /* [plan.n]: contexts of the writer's callbacks */
    size_t done;                   /* bytes of the source */
    ggl_error bad_input;           /* what is wrong with a tensor of IN; "": nothing */
} job;

/* types.c: names of types. Returns -1, or an exit code after a message. */
int read_type(const char *flag, const char *name, const ggl_type_info **out);
/* Returns -1 for GGL_OK, else prints the error of reading a type, and returns the exit code. */
int type_error(const char *flag, ggl_status s, const ggl_error *err);
void list_types(void);
/* The name of the mix with that number, which llama.cpp's llama-quantize takes for a name, too (15 is
 * Q4_K_M: general.file_type); any other text is returned as it is. */
const char *type_name(const char *text);
bool is_type_name(const char *text); /* TYPE can be this */
const char *const *all_types(void);  /* names of mixes and types, for completion; ends with NULL */

/* override.c: what the flags change. Return -1, or an exit code after a message. */
int read_tensor_types(job *j);
int read_key_overrides(job *j);
void note_key_overrides(const job *j); /* on what they do to the keys of the file */

/* importance.c: opens --imatrix, and finds the entry of each tensor of the plan. Returns -1, or an
 * exit code after a message. */
int open_importance(job *j);
int find_importance(job *j);
/* own_importance.c: runs IN, and sets j->matrix to what is collected over a text that it writes. Returns -1, or an exit
 * code after a message. */
int collect_importance(job *j);
/* Sets *out to the importance of part k of tensor i, for llm_quant_importance_fini; mean is NULL
 * with GGL_OK if it is not known. */
ggl_status importance_of(const job *j, size_t i, size_t k, quant_importance *out, ggl_error *err);

/* show.c: what is printed. */
void print_tensors(const job *j);
void print_summary(const job *j);
int draw_report(const job *j); /* --report; returns -1, or an exit code after a message */

/* write.c: writes OUT, or the parts of it. */
ggl_status write_model(job *j, ggl_error *err);
/* Sets *head to the bytes of all files of OUT besides their tensors, and *alignment to the tensors'. */
ggl_status measure_head(job *j, uint64_t *head, uint64_t *alignment, ggl_error *err);
int out_parts(const job *j); /* how many files it writes */
/* Sets to[size] to the path of a part of OUT, from 0: OUT-00001-of-00003.gguf, where OUT is without
 * .gguf at its end. */
void out_part_path(char *to, size_t size, const char *out, int part, int n_parts);

#endif
