/* The descriptor compiler: a tree (language/language.h) and a source of keys and tensors become a graph.
 *
 *     build.c    the whole of it: family, vocabulary, inputs, statements, checks
 *     eval.c     statements, layer by layer
 *     expr.c     expressions -> values
 *     value.c    what a value may serve as, and what messages call it
 *     call.c     functions and bodies
 *     ops.c      operators -> nodes of the graph
 *     weight.c   declared tensors
 *     fused.c    declared tensors that are rows of one tensor of the source
 *     missing.c  a declared tensor that the source lacks, and which one may be meant
 *     use.c      checks that all that is declared and computed is of use
 *     judge.c    what becomes of each key of the file
 *     unread.c   keys and tensors of the file that nothing reads
 *     known.c    the table of keys that need not be read (known_keys.arch)
 *     source.c   a GGUF file as a source
 *     teach.c    what a made-up model's keys must be for a `require` to hold */
#ifndef LLM_ARCH_COMPILE_H
#define LLM_ARCH_COMPILE_H

#include "ggl/index.h"
#include "language/language.h"

/* --- values ----------------------------------------------------------------------------------- */

typedef enum arch_value_kind {
    VAL_FAIL, /* an error was reported */
    VAL_NONE,
    VAL_NUMBER,
    VAL_BOOL,
    VAL_STRING,
    VAL_LIST,
    VAL_TENSOR,
    VAL_CACHE
} arch_value_kind;

typedef struct arch_value {
    arch_value_kind kind;
    double num;
    bool flag;       /* BOOL */
    bool absent_key; /* NONE: a key without a default, not the literal */
    /* NUMBER: the expression it came from, NULL: it is just a number. NONE: what is missing. LIST
     * of a key: which elements differ, once that was looked at */
    const char *text;
    const char *key; /* the key it was read from, for messages */
    ggl_str str;
    const struct arch_value *item; /* LIST made by [..]; NULL: list_key */
    llm_arch_key list_key;
    size_t n;
    ggl_tensor *t, *bias; /* TENSOR; CACHE: t is the node */
    int64_t range;        /* TENSOR: an index into so many; 0: no index */
    bool exact_range;     /* picks from exactly that many (topk), not at least (token, pos) */
    bool number_too;      /* pos */
} arch_value;

/* --- evaluating ------------------------------------------------------------------------------- */

typedef struct arch_slot {
    arch_value v;
    bool bound, in_layer; /* in_layer: born in this turn of the loop */
    ggl_tensor *state;    /* bound by `s = state(..)` */
    bool kept;
    arch_place place;
} arch_slot;

typedef struct arch_frame { /* a function that runs */
    const arch_fn *fn;
    arch_slot *local;
    arch_place call;
    struct arch_frame *up;
    arch_value *result;
    int n_result;
} arch_frame;

typedef struct arch_weight { /* a tensor of the source that was declared */
    const char *name;
    ggl_tensor *t;
    arch_place place;
    const char *chain;
    bool is_bias;
    struct arch_whole *whole; /* its parts are declared, and t is NULL; else NULL */
} arch_weight;

typedef struct arch_part { /* a declared tensor that is some rows of one of the source */
    ggl_tensor *t;
    struct arch_whole *whole;
    int k; /* which part of it */
} arch_part;

typedef struct arch_made { /* a node, for the check that it is of use */
    ggl_tensor *t;
    arch_place place;
    int32_t siblings;   /* nodes of one call with several results share a number > 0 */
    const char *target; /* the name it was assigned to, or NULL */
} arch_made;

typedef struct arch_edge { /* `to` is of use if `from` is; from NULL: in any case */
    const ggl_tensor *from;
    ggl_tensor *to;
} arch_edge;

typedef struct arch_eval arch_eval;
typedef struct arch_converter arch_converter;

struct arch_eval {
    const llm_arch *arch;
    const llm_arch_source *src;
    ggl_graph *g;
    ggl_error *err;
    ggl_status status; /* sticky */
    bool refused;      /* the error is a `require`'s */
    ggl_arena arena;
    const char *family;
    int64_t n_ctx, n_vocab;
    arch_slot *global;
    arch_frame *frame; /* NULL: the file's statements */
    int n_frames, in_recurrent, depth;
    const arch_stmt *at;     /* the descriptor's statement that runs */
    const arch_stmt *origin; /* the one that the graph was told of */
    int64_t layer;           /* -1: outside */
    int64_t n_layer;
    const char *layer_name;
    int64_t steps;
    size_t const_bytes;
    arch_value one;        /* where a call with one result leaves it */
    const char *vary_name; /* has vary_value for a moment: for hints, see weight.c */
    arch_value vary_value;

    arch_weight **weight; /* declared tensors, in order */
    ggl_str *weight_name; /* their names */
    ggl_index weight_index;
    size_t n_weight, cap_weight, cap_weight_name;
    arch_part *part; /* whose places are not known before all of them are declared */
    size_t n_part, cap_part;
    arch_made *made; /* by the tensor's id; t NULL: none */
    size_t cap_made;
    ggl_tensor **keep; /* KEEP nodes */
    size_t n_keep, cap_keep;
    ggl_tensor **call; /* CALL nodes */
    size_t n_call, cap_call;
    arch_edge *read; /* what an arm not taken mentions counts as read */
    size_t n_read, cap_read;
    const char **ignore; /* patterns of tensors (and of foreign keys) */
    size_t n_ignore, cap_ignore;
    int32_t n_siblings;
    ggl_str *word; /* interned texts of numbers */
    ggl_index word_index;
    uint8_t *line_ran;
    char *notes;
    const arch_converter *convert;  /* NULL: the model comes from `src` */
    struct arch_conversion *conv;   /* the data of `convert` */
    const llm_arch_ignore *request; /* what is ignored at the user's risk; may be NULL */
    const llm_arch_params *params;  /* for `unread`; may be NULL */
    struct arch_known *known;       /* the table of known keys, once it was asked */
    const llm_arch *reader; /* of the table's own evaluator: the descriptor it judges keys for */
};

/* The other origin of a model: a Hugging Face folder, through the descriptor's convert section (models/convert/section.c). The
 * compiler asks these where it would otherwise ask the source. */
struct arch_converter {
    arch_value (*field)(arch_eval *ev, const arch_expr *e); /* config.a.b, rope.a */
    /* of these, objects too; of a source tensor's name */
    arch_value (*has)(arch_eval *ev, const arch_expr *e);
    /* a function of convert sections whose value is no tensor */
    arch_value (*call)(arch_eval *ev, const arch_expr *e);
    bool (*number)(const arch_eval *ev, const char *name, double *out); /* e, "{e}" */
    /* *t names and has the shape of a declared weight, or its bias. False: the conversion makes none, or ev has an error. */
    bool (*weight)(arch_eval *ev, const arch_stmt *s, bool is_bias, llm_arch_tensor *t);
    /* Whether the conversion goes on after this error, which it keeps: a list of all of them was asked for. */
    bool (*forgive)(arch_eval *ev);
    /* what to do about a key (in full) that no line made */
    const char *(*absent_hint)(const arch_eval *ev, const char *key);
    /* A name without a value in a key line: reports what to write. False: it is another case. */
    bool (*unbound)(arch_eval *ev, const arch_expr *e);
    /* When the descriptor has run: the patterns of `ignore` get their numbers. False: reported. */
    bool (*expand_ignored)(arch_eval *ev);
};

#define ARCH_FAIL ((arch_value){.kind = VAL_FAIL})
/* Reports at a place, with the chain of calls; returns a VAL_FAIL. The first error stays. */
arch_value llm_arch_error(arch_eval *ev, arch_place p, const char *fmt, ...) GGL_PRINTF(3, 4);
arch_value llm_arch_error_hint(arch_eval *ev, ggl_status s, arch_place p, const char *hint,
                               const char *fmt, ...) GGL_PRINTF(5, 6);
/* "model.gguf: error: .."; returns false. */
bool llm_arch_source_error(arch_eval *ev, const char *fmt, ...) GGL_PRINTF(2, 3);
arch_value llm_arch_nomem(arch_eval *ev);
/* The descriptor's place: of what happens within the prelude, the descriptor's call of it. */
arch_place llm_arch_users_place(const arch_eval *ev, arch_place p);
/* How p was reached: "  (in f, called from x.arch:3:4)", or ""; within the prelude, whose calls are shown at
 * llm_arch_users_place, "  (in conv at prelude.arch:3:4)". */
const char *llm_arch_chain(arch_eval *ev, arch_place p);
const char *llm_arch_strdup(arch_eval *ev, const char *s);  /* in the arena */
bool llm_arch_step(arch_eval *ev, arch_place p, int64_t n); /* false: too many steps */
/* The same for matching a name with so many patterns. */
bool llm_arch_step_patterns(arch_eval *ev, size_t n, ggl_str name);
bool llm_arch_push(arch_eval *ev, void *array, size_t *cap, size_t n, size_t size);
/* Room for n elements in all, in a table of names that may not have been made yet. */
static inline ggl_status arch_index_room(ggl_index *x, const void *array, size_t n, size_t stride,
                                         ggl_error *err) {
    return x->slots ? ggl_index_reserve(x, array, n, err)
                    : ggl_index_init(x, n < 32 ? 64 : 2 * n, stride, GGL_INDEX_STRINGS, err);
}

/* value.c */
arch_value llm_arch_number(double x);
arch_value llm_arch_bool(bool b);
arch_value llm_arch_tensor_value(ggl_tensor *t);
arch_value llm_arch_none(const char *missing);
const char *llm_arch_kind_text(const arch_value *v); /* "a number", .. */
/* "key llama.x is a list" or "'x' is a string": what a value is, for messages; returns buf. */
const char *llm_arch_value_text(const arch_value *v, char *buf, size_t size);
const char *llm_arch_intern(arch_eval *ev, const char *s); /* NULL: too many, too long */
/* A number's expression: `a op b`. Products divided by a factor lose it: n_head*d / n_head is d. */
const char *llm_arch_join_text(arch_eval *ev, const char *op, const arch_value *a,
                               const arch_value *b);
/* Advice about a value that is none because a key is absent; NULL: it is none of these. */
const char *llm_arch_absent_hint(const arch_eval *ev, const arch_value *v);
/* Where one value is wanted: a key's list of equal numbers, or truth values, as one of them. Of
 * unequal ones the list, its `text` naming two that differ. VAL_FAIL: too many steps. */
arch_value llm_arch_one_of(arch_eval *ev, const arch_expr *e, const arch_value *v);
/* Advice where `a ?? b == c`, or `in`, was read as (a ?? b) == c; NULL: it is something else. */
const char *llm_arch_binding_hint(arch_eval *ev, const arch_expr *e);
bool llm_arch_want_number(arch_eval *ev, const arch_expr *e, const arch_value *v, double *out);
bool llm_arch_want_bool(arch_eval *ev, const arch_expr *e, const arch_value *v, bool *out);
/* A whole number min .. max. */
bool llm_arch_want_whole(arch_eval *ev, const arch_expr *e, const arch_value *v, double min,
                         double max, int64_t *out);
/* A tensor, or a number as one. NULL: reported. */
ggl_tensor *llm_arch_want_tensor(arch_eval *ev, arch_place p, const arch_value *v,
                                 const char *what);
bool llm_arch_equal(const arch_value *a, const arch_value *b);
/* Whether `==` and `in` compare them: numbers, strings and truth values with their like, and a key's 0 and 1
 * with truth values. */
bool llm_arch_comparable(const arch_value *a, const arch_value *b);
arch_value llm_arch_list_item(arch_eval *ev, const arch_expr *e, const arch_value *list, int64_t i);
arch_value llm_arch_key_value(arch_eval *ev, const char *key, const llm_arch_key *k, uint64_t i);

/* expr.c */
arch_value llm_arch_eval_expr(arch_eval *ev, const arch_expr *e);
arch_slot *llm_arch_lookup(arch_eval *ev, const arch_expr *name);
/* An arm not taken counts as read where the value of the one taken does. */
void llm_arch_mark_read(arch_eval *ev, const arch_expr *e, const arch_value *taken);
/* "blk.{l}.x", "blk.{n_layer + i}.x" with whole numbers put in; NULL: reported. In the arena. */
const char *llm_arch_expand(arch_eval *ev, const char *s, arch_place p);

/* teach.c: for made-up models, when the condition of a `require` is not `want`; no error is reported. */
void llm_arch_teach(arch_eval *ev, const arch_expr *e, bool want);

/* eval.c */
bool llm_arch_run(arch_eval *ev, const arch_stmt *s); /* false: failed, or a return was met */
bool llm_arch_bind(arch_eval *ev, const arch_target *t, const arch_value *v);
arch_slot *llm_arch_target_slot(arch_eval *ev, const arch_target *t);

/* call.c */
/* Its results, *n of them; valid until the next call. NULL: reported. */
arch_value *llm_arch_call_fn(arch_eval *ev, const arch_expr *e, int *n);
arch_value *llm_arch_call(arch_eval *ev, const arch_expr *e,
                          int *n); /* a function or a primitive */

/* ops.c */
arch_value *llm_arch_call_primitive(arch_eval *ev, const arch_expr *e, int *n);
arch_value llm_arch_infix(arch_eval *ev, const arch_expr *e, const arch_value *a,
                          const arch_value *b);
arch_value llm_arch_pick(arch_eval *ev, const arch_expr *e, const arch_value *t,
                         const arch_value *i);
/* Any node: checks the graph's error, notes it for the use check. NULL: reported. */
ggl_tensor *llm_arch_node(arch_eval *ev, arch_place p, ggl_op op, ggl_tensor *const *src, int n_src,
                          const double *num, int n_num);
ggl_tensor *llm_arch_reshape(arch_eval *ev, arch_place p, ggl_tensor *x, int n, const int64_t *ne,
                             const char *const *dim_name);
ggl_tensor *llm_arch_split_one(arch_eval *ev, arch_place p, ggl_tensor *x, int dim, int64_t first,
                               int64_t size, const char *dim_name);
bool llm_arch_graph_ok(arch_eval *ev, arch_place p); /* wraps the graph's error */
void llm_arch_note_made(arch_eval *ev, arch_place p, ggl_tensor *t);

/* weight.c */
bool llm_arch_run_weight(arch_eval *ev, const arch_stmt *s);
bool llm_arch_run_ignore(arch_eval *ev, const arch_stmt *s);
arch_weight *llm_arch_find_weight(arch_eval *ev, const char *name);
arch_weight *llm_arch_add_weight(arch_eval *ev, const char *name, ggl_tensor *t, arch_place p,
                                 bool is_bias);
/* '*' stands for anything, `number` (0: none) for a number, all of its digits. */
bool llm_arch_match_number(const char *pattern, char number, const char *s, size_t n);
static inline bool arch_match(const char *pattern, const char *s, size_t n) {
    return llm_arch_match_number(pattern, 0, s, n);
}
/* The first of n patterns that fits the name; n: none does. hits[k], if `hits` is not NULL, counts the names that
 * pattern k fits. */
size_t llm_arch_match_first(const char *const *pattern, size_t n, ggl_str name, size_t *hits);
static inline bool arch_match_any(const char *const *pattern, size_t n, ggl_str name) {
    return llm_arch_match_first(pattern, n, name, NULL) < n;
}

/* fused.c */
/* Whether *t, which the source lacks, is a part of one that it has: *t then has the type, and the name and the shape of that one
 * if its rows have another length. False: it is none, or ev has an error. */
bool llm_arch_find_part(arch_eval *ev, arch_place p, bool is_bias, llm_arch_tensor *t,
                        arch_part *out);
bool llm_arch_take_part(arch_eval *ev, arch_place p, arch_part part,
                        ggl_tensor *t); /* false: reported */
/* When all is declared: the parts get their data. False: they are not all the rows that there are, which is reported. */
bool llm_arch_place_parts(arch_eval *ev);

/* missing.c */
/* Reports that the source lacks the tensor, and which of its others may be meant; `want` has the shape. */
void llm_arch_missing_tensor(arch_eval *ev, arch_place p, const char *name,
                             const llm_arch_tensor *want);

/* use.c */
/* All that is computed and declared reaches the logits. */
/* Whether a name of a file can be pasted into a shell, within quotes, and means itself there: messages advise no other. */
bool llm_arch_is_pasteable(const char *s, size_t n);
/* The name with '*' for its numbers between dots, which go to `number`; returns how many. Further ones stay. */
int llm_arch_number_pattern(ggl_str name, char *buf, size_t size, int64_t number[4]);
bool llm_arch_check_unused(
    arch_eval *ev); /* fails if there is a name that nothing reads, at the end of a build */
bool llm_arch_check_use(arch_eval *ev, ggl_tensor *logits);

/* judge.c */
typedef struct arch_judge arch_judge;
/* For the keys of ev->src, which may change between calls of llm_arch_judge_key. NULL: out of memory, in
 * ev->status. It borrows ev. */
arch_judge *llm_arch_judge_new(arch_eval *ev);
void llm_arch_judge_free(arch_judge *j);
/* About a key by its full name; file and line are not set. After an error, in ev->status, the answer
 * means nothing. */
llm_arch_judged llm_arch_judge_key(arch_judge *j, ggl_str key);

/* unread.c */
/* Adds a line to what is noted about the model. */
void llm_arch_note(arch_eval *ev, const char *fmt, ...) GGL_PRINTF(2, 3);
/* All keys and tensors of the source are read, harmless, or ignored. */
bool llm_arch_check_source(arch_eval *ev);
/* After another error: puts the keys that nothing reads before it. */
void llm_arch_report_keys_before(arch_eval *ev);
/* " = 16", ' = "yarn"', " = [0, 0, 2, ..] of 28": the value of a key, for messages. */
const char *llm_arch_value_of_key(arch_eval *ev, ggl_str key, char *buf, size_t size);

/* known.c: the table of keys that files have and descriptors need not read */
typedef struct arch_known arch_known;
typedef struct arch_verdict {
    bool harmless;
    const char *reason;    /* what the key is or does; NULL: the table says nothing */
    const arch_expr *cond; /* of the row; NULL: there is none */
} arch_verdict;
/* About {arch}.name, which the descriptor does not name. An empty verdict: no row, or ev->status. */
arch_verdict llm_arch_judge_known(arch_eval *ev, ggl_str name);
/* The part of a model that a tensor belongs to, if text does not need that part; NULL: none. */
const char *llm_arch_part_of_tensor(arch_eval *ev, ggl_str name);
/* Whether 0 or false in the key of this full name means that it is absent. */
bool llm_arch_means_absent(arch_eval *ev, const char *name);
/* Whether the descriptor computes with {arch}.name, not only ignores it. */
bool llm_arch_reads_key(const llm_arch *arch, const char *name);
void llm_arch_known_free(arch_known *k);

/* build.c: llm_arch_build, with a conversion to say what tensors there will be. */
ggl_status llm_arch_build_with(const llm_arch *arch, const llm_arch_source *source,
                               const llm_arch_params *params, ggl_graph *graph,
                               llm_arch_result *result, const arch_converter *convert,
                               struct arch_conversion *conv, ggl_error *err);
void llm_arch_eval_fini(arch_eval *ev);
/* Sets ev->family from general.architecture; false: reported. */
bool llm_arch_find_family(arch_eval *ev);
/* The names' slots, and the values of those that no model is needed for. */
bool llm_arch_eval_init(arch_eval *ev);

#endif
