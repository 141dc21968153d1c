/* The descriptor compiler's own header. The way of a text:
 *
 *     arch_lex.c         text -> tokens: indentation, names, keys, numbers, strings
 *     arch_parse.c       tokens -> statements
 *     arch_parse_expr.c  tokens -> expressions
 *     arch_parse_convert.c  tokens -> the lines of convert sections
 *     arch_resolve.c     names get slots, calls their function; what needs no model is checked
 *     arch_eval.c        statements, layer by layer
 *     arch_expr.c        expressions -> values
 *     arch_teach.c       what a made-up model's keys must be for a `require` to hold
 *     arch_call.c        functions and bodies
 *     arch_ops.c         primitives -> nodes of the graph
 *     arch_weight.c      declared tensors
 *     arch_fused.c       a tensor of the source that holds several of them
 *     arch_missing.c     one that the source lacks, and which may be meant
 *     arch_check.c       is all that is declared and computed of use?
 *     arch_judge.c       what becomes of each key of the file
 *     arch_unread.c      keys and tensors of the file that nothing reads
 *     arch_known.c       the table of keys that need not be read (known_keys.arch)
 *     arch_build.c       the whole of it
 *     arch_convert.c     convert sections: what config.json's keys and tensors become
 *     arch_convert_config.c  config.x, rope.x
 *     arch_convert_unread.c  what no line reads of config.json
 *     arch_convert_ignore.c  patterns of source tensors that no line has to read
 *     arch_convert_expr.c  source tensors -> recipes
 *
 * Around it: arch_error.c (places, carets, nearest names), arch_words.c (words of other languages), arch_source.c (GGUF), arch_toy.c and
 * arch_survey.c (made-up models), arch_builtin.c (the embedded descriptors). */
#ifndef LLM_ARCH_IMPL_H
#define LLM_ARCH_IMPL_H

#include "ggl/alloc.h"
#include "ggl/index.h"
#include "ggl/show.h"
#include "llm/arch.h"

/* The language's limits (docs/architectures.md, Limits). */
#define ARCH_MAX_TEXT    (256 * 1024)
#define ARCH_MAX_NAME    64
#define ARCH_MAX_NESTING 100
#define ARCH_MAX_ARGS    64
#define ARCH_MAX_CALLS   16
#define ARCH_MAX_DEPTH   400 /* of expressions, through all calls */
#define ARCH_MAX_NAMES   4096 /* of a text, of a function; keys; functions */
#define ARCH_MAX_STEPS   10000000
#define ARCH_MAX_LAYERS  4096
#define ARCH_MAX_DIM     2147483647.0
#define ARCH_MAX_K       1024
#define ARCH_MAX_CONST   (64 << 20)  /* bytes of computed constants, as f32 */
#define ARCH_MAX_MEMORY  (256 << 20) /* of one build, beside the graph */

/* --- texts, places, errors: arch_error.c ------------------------------------------------------ */

typedef struct arch_text {
    const char *name; /* "llama.arch" */
    const char *s;
    size_t n;
    bool prelude;
} arch_text;

typedef struct arch_place { /* a stretch of a text */
    const arch_text *text;
    uint32_t at, n;
} arch_place;

/* Line and column from 1; columns count characters, not bytes. */
void arch_line_col(arch_place p, int *line, int *col);
/* "name:line:col: error: message", the line and a caret with the hint (may be NULL); `chain` ends
 * the first line. */
ggl_status arch_fail(ggl_error *err, ggl_status s, arch_place p, const char *chain,
                     const char *hint, const char *fmt, ...) GGL_PRINTF(6, 7);
ggl_status arch_failv(ggl_error *err, ggl_status s, arch_place p, const char *chain,
                      const char *hint, const char *fmt, va_list args);
/* The text of a place in one line, at most `size`-1 bytes; returns buf. */
const char *arch_quote(arch_place p, char *buf, size_t size);

/* Collects the candidate nearest to a name that was not found. */
typedef struct arch_nearest {
    const char *wanted, *best;
    size_t distance;
} arch_nearest;
arch_nearest arch_nearest_to(const char *wanted);
/* len SIZE_MAX: up to the NUL. */
void arch_nearest_try(arch_nearest *n, const char *candidate, size_t len);

/* --- words of other languages: arch_words.c; NULL: none that is known ------------------------- */

/* "did you mean silu(x)?", or another advice; in buf, perhaps. */
const char *arch_meant_function(const struct llm_arch *arch, const arch_text *text,
                                const char *written, char *buf, size_t size);
const char *arch_meant_name(const char *written);      /* "true" for True */
const char *arch_meant_statement(const char *written); /* a sentence about its first word */
/* A sentence about the symbol that s begins with, and its length. */
const char *arch_meant_symbol(const char *s, size_t n, size_t *length);
/* The signature of a function or primitive that may be called in this text: "rms_norm(x, w, eps)". */
const char *arch_signature(const struct llm_arch *arch, const arch_text *text, const char *name,
                           char *buf, size_t size);

/* --- tokens: arch_lex.c ----------------------------------------------------------------------- */

typedef enum arch_token_kind {
    TOK_END,
    TOK_NEWLINE,
    TOK_INDENT,
    TOK_DEDENT,
    TOK_NAME,
    TOK_KEY,
    TOK_NUMBER,
    TOK_STRING,
    TOK_SYMBOL
} arch_token_kind;

typedef struct arch_token {
    arch_token_kind kind;
    uint32_t at, n;
    int line;
    const char *str; /* NAME, KEY (without its dot), STRING (without quotes), SYMBOL */
    double num;
} arch_token;

/* Ends with TOK_END. Tokens and their strings live in the arena. */
ggl_status arch_lex(const arch_text *text, ggl_arena *arena, arch_token **out, ggl_error *err);

/* --- syntax tree ------------------------------------------------------------------------------ */

typedef struct arch_expr arch_expr;
typedef struct arch_stmt arch_stmt;
typedef struct arch_fn arch_fn;

typedef enum arch_expr_kind {
    EX_NUMBER,
    EX_STRING,
    EX_BOOL,
    EX_NONE,
    EX_LIST,
    EX_NAME,
    EX_KEY,
    EX_CALL,
    EX_HAS,
    EX_READS, /* in the table of known keys: whether the descriptor reads key a */
    EX_INDEX, /* a[b] */
    EX_BIAS,  /* a.bias */
    EX_FIELD, /* a.name: of `config` and `rope`, in convert */
    EX_NEG,
    EX_NOT,
    EX_BINARY, /* a op b */
    EX_AND,
    EX_OR,
    EX_IN,
    EX_OR_ELSE, /* a ?? b */
    EX_IF       /* a if c else b */
} arch_expr_kind;

typedef enum arch_callee { CALL_FN, CALL_OP, CALL_BUILTIN } arch_callee;

typedef struct arch_arg {
    const char *name; /* NULL: positional */
    arch_place place; /* of the name */
    arch_expr *value;
} arch_arg;

struct arch_expr {
    arch_expr_kind kind;
    arch_place place; /* of all of it */
    arch_place mark;  /* of its operator or name: where a caret goes */
    int depth;
    double num;       /* NUMBER; BOOL: 0 or 1 */
    const char *name; /* STRING NAME KEY CALL FIELD */
    bool whole;       /* KEY: key("..") names it in full, without {arch}. */
    bool lazy;        /* KEY: stands where absence is provided for: `?? ..` or has(..) */
    bool in_brackets; /* ( ) stand around it */
    ggl_op op;        /* BINARY, CALL of an operator */
    arch_expr *a, *b, *c;
    arch_arg *arg; /* CALL; LIST */
    int n_arg;
    arch_callee callee;
    const arch_fn *fn; /* CALL_FN */
    int builtin;       /* CALL_BUILTIN: an arch_builtin_fn */
    int local, global; /* NAME: slots; -1: none */
};

typedef enum arch_stmt_kind {
    ST_ASSIGN,
    ST_WEIGHT,
    ST_IF,
    ST_LAYER,
    ST_FOR,
    ST_KEEP,
    ST_RETURN,
    ST_REQUIRE,
    ST_IGNORE,
    ST_ABSENT /* in the table of known keys only */
} arch_stmt_kind;

typedef struct arch_target { /* a name that a statement binds */
    const char *name;
    arch_place place;
    int slot; /* in a function: of its locals; else a global */
} arch_target;

typedef struct arch_arm { /* of an if; the else has no condition */
    arch_expr *cond;
    arch_stmt *body;
    arch_place place;
} arch_arm;

struct arch_stmt {
    arch_stmt_kind kind;
    arch_place place; /* its first token */
    int line;
    arch_stmt *next;
    arch_target *target; /* ASSIGN, WEIGHT, LAYER, FOR, KEEP */
    int n_target;
    arch_expr **expr; /* ASSIGN: 1, RETURN: results, WEIGHT: the shape, LAYER FOR REQUIRE KEEP: 1,
                         IGNORE: keys and strings, ABSENT: keys */
    int n_expr;
    arch_arm *arm; /* IF; LAYER, FOR: one */
    int n_arm;
    const char *string; /* WEIGHT: from; REQUIRE: message; IGNORE: what it is, or does where the
                           condition does not hold */
    const char *second; /* WEIGHT: the name to look for where there is no `string` */
    arch_place string_place;
    bool optional; /* WEIGHT: '?' */
    bool bias, bias_optional;
    arch_expr *other; /* WEIGHT: ?? other; IGNORE, ABSENT: the condition, or NULL */
};

typedef struct arch_param {
    const char *name;
    arch_place place;
    arch_expr *fallback; /* NULL: must be given */
} arch_param;

struct arch_fn {
    const char *name;
    arch_place place;
    const arch_text *text;
    bool op;        /* `op`: the prelude's stay one node */
    bool recurrent; /* has a state */
    arch_param *param;
    int n_param;
    arch_stmt *body;
    const char **local; /* names of the local slots; the parameters come first */
    int n_local;
    arch_fn *next; /* the one before it in the text */
    bool used;     /* by what the descriptor calls, directly or not */
};

typedef enum arch_map_kind {
    MAP_KEY,    /* .name <- expr */
    MAP_WEIGHT, /* name <- expr */
    MAP_ARCH,   /* arch <- expr: which of the header's names */
    MAP_REQUIRE,
    MAP_NOTE,   /* as REQUIRE, but a note where the condition holds */
    MAP_WITHIN, /* expr: the object of config.json that is looked at first */
    MAP_PREFIX, /* a tensor whose name begins with `name` may begin with `other` */
    MAP_IGNORE  /* name is a pattern of source tensors; NULL: expr is a value of config.json */
} arch_map_kind;

typedef struct arch_mapping { /* a line of a convert section */
    arch_map_kind kind;
    arch_place place;
    const char *name;
    const char *other; /* PREFIX */
    bool whole;        /* KEY: key("..") names it in full */
    bool bias;         /* WEIGHT: name.bias <- */
    arch_expr *expr;   /* NULL: IGNORE of tensors, PREFIX */
    arch_stmt *require;
    struct arch_mapping *next;
} arch_mapping;

typedef struct arch_convert {
    arch_place place;
    const char **name; /* values of "architectures" */
    int n_name;
    arch_mapping *map;
    struct arch_convert *next;
} arch_convert;

typedef struct arch_fused { /* attn_q, attn_k, attn_v from "attn_qkv" */
    const char **part, *whole;
    arch_place place, *part_place;
    int n_part;
    bool own; /* the line is the prelude's, and the descriptor declares `whole`: it is for others */
    struct arch_fused *next;
} arch_fused;

typedef struct arch_known_key { /* a key that the descriptor names somewhere */
    const char *name;
    arch_place place; /* the first of them */
    bool whole;       /* in full */
    bool required; /* somewhere without a default */
    bool ignored;
    const arch_stmt *condition; /* the `ignore .. if` that names it; NULL: none */
    bool in_branch;             /* that one stands in a branch, a layer or a function */
    int n_reads; /* how often it is named other than by `ignore` and its condition */
    struct arch_known_key *next;
} arch_known_key;

/* The predefined names have the first slots of the globals, in prelude and descriptor. */
enum {
    SLOT_TOKEN,
    SLOT_POS,
    SLOT_N_CTX,
    SLOT_N_VOCAB,
    SLOT_ARCH,
    SLOT_PI,
    SLOT_INF,
    SLOT_FIRST_FREE
};
extern const char *const arch_predefined[SLOT_FIRST_FREE];

struct llm_arch {
    ggl_arena arena;
    arch_text text, prelude;
    int n_lines;
    const char **family;
    arch_place *family_place;
    int n_family;
    arch_stmt *body;
    arch_fn *fn, *prelude_fn; /* the last of each text */
    arch_convert *convert, *prelude_convert; /* the last of each text; the prelude's are taken over by `use` */
    arch_fused *fused; /* the descriptor's, then the prelude's */
    const char **global; /* names of the global slots */
    int n_global;
    size_t cap_global;
    int logits; /* its slot */
    const arch_target *unused; /* the first name of the file's statements that nothing reads; NULL: there is none */
    arch_known_key *key;
    arch_known_key *key_pattern; /* `ignore ".x.*"`: its name has no dot before it */
};

/* --- parsing: arch_parse.c, arch_parse_expr.c ------------------------------------------------- */

typedef struct arch_parser {
    llm_arch *arch;
    const arch_text *text;
    ggl_arena *arena;
    const arch_token *tok; /* the next one */
    int depth, n_blocks;
    int64_t work; /* of resolving, bounded like the steps of a build */
    int n_fns;
    bool in_convert;
    const char *in_fn; /* the function whose text is being read, or NULL */
    bool saw_state;    /* in it */
    ggl_status status; /* sticky */
    ggl_error *err;
} arch_parser;

/* Fails at the next token, or at a place; both return NULL for `return parse_..`. */
void *arch_parse_fail(arch_parser *p, const char *fmt, ...) GGL_PRINTF(2, 3);
void *arch_parse_fail_at(arch_parser *p, ggl_status s, arch_place place, const char *fmt, ...)
    GGL_PRINTF(4, 5);
void *arch_parse_alloc(arch_parser *p, size_t n, size_t size);
arch_place arch_token_place(const arch_parser *p, const arch_token *t);
bool arch_is(const arch_parser *p, const char *word); /* the next token is this symbol or word */
bool arch_accept(arch_parser *p, const char *word);
bool arch_expect(arch_parser *p, const char *symbol, const char *where);
bool arch_is_reserved(const char *word);
const char *arch_describe(const arch_token *t, char *buf, size_t size);
bool arch_next_is(const arch_parser *p, arch_token_kind kind); /* the one after the next token */
bool arch_next_is_symbol(const arch_parser *p, const char *symbol);
bool arch_end_of_line(arch_parser *p); /* takes the NEWLINE; false: there is something else */
arch_stmt *arch_parse_require(arch_parser *p);
/* Words or strings, with commas between; their places if `place` is not NULL, ARCH_MAX_ARGS of them. */
const char **arch_parse_names(arch_parser *p, int *n, arch_place *place);
bool arch_parse_convert(arch_parser *p); /* arch_parse_convert.c */
arch_expr *arch_parse_expr(arch_parser *p);
arch_expr *arch_parse_atom(arch_parser *p); /* without operators */
/* Comma-separated, up to (not including) what ends the list. */
arch_expr **arch_parse_exprs(arch_parser *p, int *n);
/* Parses all of one text into arch->body or, for the prelude, arch->prelude_fn; calls resolve. */
ggl_status arch_parse_text(llm_arch *arch, const arch_text *text, ggl_error *err);
/* Reads the line `arch NAME, ..` alone, for llm_arch_family; text and name must outlive the result. This is how the right one of
 * all built-in descriptors is found without reading the others. */
ggl_status arch_parse_header(llm_arch **out, const char *text, size_t n, const char *name, ggl_error *err);

/* --- resolving: arch_resolve.c ---------------------------------------------------------------- */

/* A call, as soon as it is parsed: it sees what stands above it. Checks the arguments' names and
 * number. */
bool arch_resolve_call(arch_parser *p, arch_expr *e);
/* All names of a text that has been parsed get their slots; collects the keys. */
bool arch_resolve_text(arch_parser *p);
/* The function of that name that stands above, in the descriptor or else the prelude. */
const arch_fn *arch_find_fn(const llm_arch *arch, const arch_text *text, const char *name);
/* Calls visit(ctx, e) for e and all below it. */
void arch_walk_expr(arch_expr *e, void (*visit)(void *, arch_expr *), void *ctx);
void arch_walk_stmts(arch_stmt *s, void (*visit)(void *, arch_expr *), void *ctx);
/* "rms_norm(x, w, eps)"; returns buf. */
const char *arch_fn_signature(const arch_fn *fn, char *buf, size_t size);

/* Finds the first name of the file's statements that nothing reads, when all names are resolved. arch_unused.c */
void arch_find_unused(llm_arch *arch);

/* --- what may be called besides functions: arch_ops.c ----------------------------------------- */

typedef enum arch_builtin_fn {
    FN_SPLIT,
    FN_CONCAT,
    FN_SIZE,
    FN_COUNT,
    FN_CEIL,
    FN_LOG2,
    FN_BUILTIN_COUNT
} arch_builtin_fn;

typedef struct arch_sig_param {
    char name[16];
    bool number, optional, variadic;
    double fallback;
} arch_sig_param;

#define ARCH_MAX_SIG 8
typedef struct arch_sig { /* of an operator or builtin, what the engine supplies left out */
    const char *name;
    arch_sig_param param[ARCH_MAX_SIG];
    int n_param;
} arch_sig;

arch_sig arch_sig_of_op(ggl_op op);
arch_sig arch_sig_of_builtin(int builtin);
int arch_find_builtin(const char *name); /* FN_BUILTIN_COUNT: none */
const char *arch_sig_text(const arch_sig *s, char *buf, size_t size);
/* Callable names for suggestions: the k-th, NULL past the end. */
const char *arch_primitive_name(int k);

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
    bool flag;        /* BOOL */
    bool absent_key;  /* NONE: a key without a default, not the literal */
    const char *text; /* NUMBER: the expression it came from, NULL: it is just a number. NONE: what
                         is missing. LIST of a key: which elements differ, once that was looked at */
    const char *key;  /* the key it was read from, for messages */
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

typedef struct arch_eval {
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
    const char *vary_name; /* has vary_value for a moment: for hints, see arch_weight.c */
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
    struct arch_conversion *conv; /* NULL: no conversion; see arch_convert.h */
    const llm_arch_ignore *request; /* what is ignored at the user's risk; may be NULL */
    const llm_arch_params *params;  /* for `unread`; may be NULL */
    struct arch_known *known;       /* the table of known keys, once it was asked */
    const llm_arch *reader; /* of the table's own evaluator: the descriptor it judges keys for */
} arch_eval;

#define ARCH_FAIL ((arch_value){.kind = VAL_FAIL})
/* Reports at a place, with the chain of calls; returns a VAL_FAIL. The first error stays. */
arch_value arch_error(arch_eval *ev, arch_place p, const char *fmt, ...) GGL_PRINTF(3, 4);
arch_value arch_error_hint(arch_eval *ev, ggl_status s, arch_place p, const char *hint,
                           const char *fmt, ...) GGL_PRINTF(5, 6);
/* "model.gguf: error: .."; returns false. */
bool arch_source_error(arch_eval *ev, const char *fmt, ...) GGL_PRINTF(2, 3);
arch_value arch_nomem(arch_eval *ev);
/* The descriptor's place: of what happens within the prelude, the descriptor's call of it. */
arch_place arch_users_place(const arch_eval *ev, arch_place p);
/* How p was reached: "  (in f, called from x.arch:3:4)", or ""; within the prelude, whose calls are shown at
 * arch_users_place, "  (in conv at prelude.arch:3:4)". */
const char *arch_chain(arch_eval *ev, arch_place p);
const char *arch_strdup(arch_eval *ev, const char *s);  /* in the arena */
bool arch_step(arch_eval *ev, arch_place p, int64_t n); /* false: too many steps */
/* The same for matching a name with so many patterns. */
bool arch_step_patterns(arch_eval *ev, size_t n, ggl_str name);
bool arch_push(arch_eval *ev, void *array, size_t *cap, size_t n, size_t size);
/* Room for n elements in all, in a table of names that may not have been made yet. */
static inline ggl_status arch_index_room(ggl_index *x, const void *array, size_t n, size_t stride,
                                         ggl_error *err) {
    return x->slots ? ggl_index_reserve(x, array, n, err)
                    : ggl_index_init(x, n < 32 ? 64 : 2 * n, stride, GGL_INDEX_STRINGS, err);
}

/* arch_value.c */
arch_value arch_number(double x);
arch_value arch_bool(bool b);
arch_value arch_tensor(ggl_tensor *t);
arch_value arch_none(const char *missing);
const char *arch_kind_text(const arch_value *v); /* "a number", .. */
/* "key llama.x is a list" or "'x' is a string": what a value is, for messages; returns buf. */
const char *arch_value_text(const arch_value *v, char *buf, size_t size);
const char *arch_intern(arch_eval *ev, const char *s); /* NULL: too many, too long */
/* A number's expression: `a op b`. Products divided by a factor lose it: n_head*d / n_head is d. */
const char *arch_join_text(arch_eval *ev, const char *op, const arch_value *a, const arch_value *b);
/* Advice about a value that is none because a key is absent; NULL: it is none of these. */
const char *arch_absent_hint(const arch_eval *ev, const arch_value *v);
/* Where one value is wanted: a key's list of equal numbers, or truth values, as one of them. Of
 * unequal ones the list, its `text` naming two that differ. VAL_FAIL: too many steps. */
arch_value arch_one_of(arch_eval *ev, const arch_expr *e, const arch_value *v);
/* Advice where `a ?? b == c`, or `in`, was read as (a ?? b) == c; NULL: it is something else. */
const char *arch_binding_hint(arch_eval *ev, const arch_expr *e);
bool arch_want_number(arch_eval *ev, const arch_expr *e, const arch_value *v, double *out);
bool arch_want_bool(arch_eval *ev, const arch_expr *e, const arch_value *v, bool *out);
/* A whole number min .. max. */
bool arch_want_whole(arch_eval *ev, const arch_expr *e, const arch_value *v, double min, double max,
                     int64_t *out);
/* A tensor, or a number as one. NULL: reported. */
ggl_tensor *arch_want_tensor(arch_eval *ev, arch_place p, const arch_value *v, const char *what);
bool arch_equal(const arch_value *a, const arch_value *b);
/* Whether `==` and `in` compare them: numbers, strings and truth values with their like, and a key's 0 and 1
 * with truth values. */
bool arch_comparable(const arch_value *a, const arch_value *b);
arch_value arch_list_item(arch_eval *ev, const arch_expr *e, const arch_value *list, int64_t i);
arch_value arch_key_value(arch_eval *ev, const char *key, const llm_arch_key *k, uint64_t i);

/* arch_expr.c */
arch_value arch_eval_expr(arch_eval *ev, const arch_expr *e);
arch_slot *arch_lookup(arch_eval *ev, const arch_expr *name);
/* An arm not taken counts as read where the value of the one taken does. */
void arch_mark_read(arch_eval *ev, const arch_expr *e, const arch_value *taken);
/* The next of the terms between '+' and '-', without spaces around it; *s moves to the sign after it, from where the caller
 * goes one on, or to the end. False: there are no more. */
bool arch_next_term(const char **s, const char *end, ggl_str *term);
/* "blk.{l}.x", "blk.{n_layer + i}.x" with whole numbers put in; NULL: reported. In the arena. */
const char *arch_expand(arch_eval *ev, const char *s, arch_place p);

/* arch_teach.c: for made-up models, when the condition of a `require` is not `want`; no error is reported. */
void arch_teach(arch_eval *ev, const arch_expr *e, bool want);

/* arch_eval.c */
bool arch_run(arch_eval *ev, const arch_stmt *s); /* false: failed, or a return was met */
bool arch_bind(arch_eval *ev, const arch_target *t, const arch_value *v);
arch_slot *arch_target_slot(arch_eval *ev, const arch_target *t);

/* arch_call.c */
/* Its results, *n of them; valid until the next call. NULL: reported. */
arch_value *arch_call_fn(arch_eval *ev, const arch_expr *e, int *n);
arch_value *arch_call(arch_eval *ev, const arch_expr *e, int *n); /* a function or a primitive */

/* arch_ops.c */
arch_value *arch_call_primitive(arch_eval *ev, const arch_expr *e, int *n);
arch_value arch_infix(arch_eval *ev, const arch_expr *e, const arch_value *a, const arch_value *b);
arch_value arch_pick(arch_eval *ev, const arch_expr *e, const arch_value *t, const arch_value *i);
/* Any node: checks the graph's error, notes it for the use check. NULL: reported. */
ggl_tensor *arch_node(arch_eval *ev, arch_place p, ggl_op op, ggl_tensor *const *src, int n_src,
                      const double *num, int n_num);
ggl_tensor *arch_reshape(arch_eval *ev, arch_place p, ggl_tensor *x, int n, const int64_t *ne,
                         const char *const *dim_name);
ggl_tensor *arch_split_one(arch_eval *ev, arch_place p, ggl_tensor *x, int dim, int64_t first,
                           int64_t size, const char *dim_name);
bool arch_graph_ok(arch_eval *ev, arch_place p); /* wraps the graph's error */
void arch_note_made(arch_eval *ev, arch_place p, ggl_tensor *t);

/* arch_weight.c */
bool arch_run_weight(arch_eval *ev, const arch_stmt *s);
bool arch_run_ignore(arch_eval *ev, const arch_stmt *s);
arch_weight *arch_find_weight(arch_eval *ev, const char *name);
arch_weight *arch_add_weight(arch_eval *ev, const char *name, ggl_tensor *t, arch_place p, bool is_bias);
/* '*' stands for anything, `number` (0: none) for a number, all of its digits. */
bool arch_match_number(const char *pattern, char number, const char *s, size_t n);
static inline bool arch_match(const char *pattern, const char *s, size_t n) {
    return arch_match_number(pattern, 0, s, n);
}
/* The first of n patterns that fits the name; n: none does. hits[k], if `hits` is not NULL, counts the names that
 * pattern k fits. */
size_t arch_match_first(const char *const *pattern, size_t n, ggl_str name, size_t *hits);
static inline bool arch_match_any(const char *const *pattern, size_t n, ggl_str name) {
    return arch_match_first(pattern, n, name, NULL) < n;
}

/* arch_fused.c */
bool arch_at_fused(const arch_parser *p); /* whether such a line begins here */
bool arch_parse_fused(arch_parser *p);
/* Whether *t, which the source lacks, is a part of one that it has: *t then has the type, and the name and the shape of that one
 * if its rows have another length. False: it is none, or ev has an error. */
bool arch_find_part(arch_eval *ev, arch_place p, bool is_bias, llm_arch_tensor *t, arch_part *out);
bool arch_take_part(arch_eval *ev, arch_place p, arch_part part, ggl_tensor *t); /* false: reported */
/* When all is declared: the parts get their data. False: they are not all the rows that there are, which is reported. */
bool arch_place_parts(arch_eval *ev);

/* arch_missing.c */
/* Reports that the source lacks the tensor, and which of its others may be meant; `want` has the shape. */
void arch_missing_tensor(arch_eval *ev, arch_place p, const char *name,
                         const llm_arch_tensor *want);

/* arch_check.c */
/* All that is computed and declared reaches the logits. */
/* Whether a name of a file can be pasted into a shell, within quotes, and means itself there: messages advise no other. */
bool arch_is_pasteable(const char *s, size_t n);
/* The name with '*' for its numbers between dots, which go to `number`; returns how many. Further ones stay. */
int arch_number_pattern(ggl_str name, char *buf, size_t size, int64_t number[4]);
bool arch_check_unused(arch_eval *ev); /* arch_unused.c: fails if there is such a name, at the end of a build */
bool arch_check_use(arch_eval *ev, ggl_tensor *logits);

/* arch_judge.c */
typedef struct arch_judge arch_judge;
/* For the keys of ev->src, which may change between calls of arch_judge_key. NULL: out of memory, in
 * ev->status. It borrows ev. */
arch_judge *arch_judge_new(arch_eval *ev);
void arch_judge_free(arch_judge *j);
/* About a key by its full name; file and line are not set. After an error, in ev->status, the answer
 * means nothing. */
llm_arch_judged arch_judge_key(arch_judge *j, ggl_str key);

/* arch_unread.c */
/* Adds a line to what is noted about the model. */
void arch_note(arch_eval *ev, const char *fmt, ...) GGL_PRINTF(2, 3);
/* All keys and tensors of the source are read, harmless, or ignored. */
bool arch_check_source(arch_eval *ev);
/* After another error: puts the keys that nothing reads before it. */
void arch_report_keys_before(arch_eval *ev);
/* " = 16", ' = "yarn"', " = [0, 0, 2, ..] of 28": the value of a key, for messages. */
const char *arch_value_of_key(arch_eval *ev, ggl_str key, char *buf, size_t size);

/* arch_known.c: the table of keys that files have and descriptors need not read */
typedef struct arch_known arch_known;
typedef struct arch_verdict {
    bool harmless;
    const char *reason;    /* what the key is or does; NULL: the table says nothing */
    const arch_expr *cond; /* of the row; NULL: there is none */
} arch_verdict;
/* About {arch}.name, which the descriptor does not name. An empty verdict: no row, or ev->status. */
arch_verdict arch_judge_known(arch_eval *ev, ggl_str name);
/* The part of a model that a tensor belongs to, if text does not need that part; NULL: none. */
const char *arch_part_of_tensor(arch_eval *ev, ggl_str name);
/* Whether 0 or false in the key of this full name means that it is absent. */
bool arch_means_absent(arch_eval *ev, const char *name);
/* Whether the descriptor computes with {arch}.name, not only ignores it. */
bool arch_reads_key(const llm_arch *arch, const char *name);
void arch_known_free(arch_known *k);

/* arch_build.c: llm_arch_build, with a conversion to say what tensors there will be. */
ggl_status arch_build_with(const llm_arch *arch, const llm_arch_source *source,
                      const llm_arch_params *params, ggl_graph *graph, llm_arch_result *result,
                      struct arch_conversion *conv, ggl_error *err);
void arch_eval_fini(arch_eval *ev);
/* Sets ev->family from general.architecture; false: reported. */
bool arch_find_family(arch_eval *ev);
/* The names' slots, and the values of those that no model is needed for. */
bool arch_eval_init(arch_eval *ev);

/* arch_convert.c: for other files */
arch_value arch_convert_field(arch_eval *ev, const arch_expr *e); /* config.a.b, rope.a */
arch_value arch_convert_has(arch_eval *ev, const arch_expr *e);   /* of these, objects too; of a source tensor's name */
/* *t names and has the shape of a declared weight, or its bias; false: the conversion makes none, or ev has an error. */
bool arch_convert_weight(arch_eval *ev, const arch_stmt *s, bool is_bias, llm_arch_tensor *t);
/* Whether a conversion goes on after this error, which it keeps: a list of all of them was asked for. */
bool arch_convert_forgive(arch_eval *ev);
/* What to do about a key (in full) that no line made. */
const char *arch_convert_absent_hint(const arch_eval *ev, const char *key);
/* A name without a value in a key line: reports what to write; false: it is another case. */
bool arch_convert_unbound(arch_eval *ev, const arch_expr *e);
/* When the descriptor has run: the patterns of `ignore` get their numbers. False: reported. */
bool arch_convert_expand_ignored(arch_eval *ev);
bool arch_convert_number(const arch_eval *ev, const char *name, double *out); /* e, "{e}" */
arch_value arch_convert_call(arch_eval *ev, const arch_expr *e); /* one whose value is no tensor */

/* arch_builtin.c */
const char *arch_prelude_text(size_t *n);

#endif
