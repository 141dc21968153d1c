/* The descriptor language: a text becomes a tree, and what needs no model is checked.
 *
 *     lex.c            text -> tokens: indentation, names, keys, numbers, strings
 *     parse.c          tokens -> statements
 *     parse_expr.c     tokens -> expressions
 *     parse_convert.c  tokens -> the lines of convert sections
 *     parse_fused.c    tokens -> the line `a, b from "ab"`
 *     resolve.c        gives names their slots and calls their functions
 *     signature.c      the operators and built-in functions that may be called
 *     unused.c         finds names that nothing reads
 *     error.c          places in a text; error messages with their line and a caret
 *     words.c          words of other languages, for error messages
 *     builtin.c        the descriptors that are compiled in */
#ifndef LLM_ARCH_LANGUAGE_H
#define LLM_ARCH_LANGUAGE_H

#include "common/nearest.h"
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
#define ARCH_MAX_DEPTH   400  /* of expressions, through all calls */
#define ARCH_MAX_NAMES   4096 /* of a text, of a function; keys; functions */
#define ARCH_MAX_STEPS   10000000
#define ARCH_MAX_LAYERS  4096
#define ARCH_MAX_DIM     2147483647.0
#define ARCH_MAX_K       1024
#define ARCH_MAX_CONST   (64 << 20)  /* bytes of computed constants, as f32 */
#define ARCH_MAX_MEMORY  (256 << 20) /* of one build, beside the graph */

/* --- texts, places, errors: error.c ------------------------------------------------------ */

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
void llm_arch_line_col(arch_place p, int *line, int *col);
/* "name:line:col: error: message", the line and a caret with the hint (may be NULL); `chain` ends
 * the first line. */
ggl_status llm_arch_fail(ggl_error *err, ggl_status s, arch_place p, const char *chain,
                         const char *hint, const char *fmt, ...) GGL_PRINTF(6, 7);
ggl_status llm_arch_failv(ggl_error *err, ggl_status s, arch_place p, const char *chain,
                          const char *hint, const char *fmt, va_list args);
/* The text of a place in one line, at most `size`-1 bytes; returns buf. */
const char *llm_arch_quote(arch_place p, char *buf, size_t size);

/* --- words of other languages: words.c; NULL: none that is known ------------------------- */

/* "did you mean silu(x)?", or another advice; in buf, perhaps. */
const char *llm_arch_meant_function(const struct llm_arch *arch, const arch_text *text,
                                    const char *written, char *buf, size_t size);
const char *llm_arch_meant_name(const char *written);      /* "true" for True */
const char *llm_arch_meant_statement(const char *written); /* a sentence about its first word */
/* A sentence about the symbol that s begins with, and its length. */
const char *llm_arch_meant_symbol(const char *s, size_t n, size_t *length);
/* The signature of a function or primitive that may be called in this text: "rms_norm(x, w, eps)". */
const char *llm_arch_signature(const struct llm_arch *arch, const arch_text *text, const char *name,
                               char *buf, size_t size);

/* --- tokens: lex.c ----------------------------------------------------------------------- */

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
ggl_status llm_arch_lex(const arch_text *text, ggl_arena *arena, arch_token **out, ggl_error *err);

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
    bool required;    /* somewhere without a default */
    bool ignored;
    const arch_stmt *condition; /* the `ignore .. if` that names it; NULL: none */
    bool in_branch;             /* that one stands in a branch, a layer or a function */
    int n_reads;                /* how often it is named other than by `ignore` and its condition */
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
extern const char *const llm_arch_predefined[SLOT_FIRST_FREE];

struct llm_arch {
    ggl_arena arena;
    arch_text text, prelude;
    int n_lines;
    const char **family;
    arch_place *family_place;
    int n_family;
    arch_stmt *body;
    arch_fn *fn, *prelude_fn; /* the last of each text */
    /* the last of each text; the prelude's are taken over by `use` */
    arch_convert *convert, *prelude_convert;
    arch_fused *fused;   /* the descriptor's, then the prelude's */
    const char **global; /* names of the global slots */
    int n_global;
    size_t cap_global;
    int logits; /* its slot */
    /* the first name of the file's statements that nothing reads; NULL: there is none */
    const arch_target *unused;
    arch_known_key *key;
    arch_known_key *key_pattern; /* `ignore ".x.*"`: its name has no dot before it */
};

/* --- parsing: parse.c, parse_expr.c ------------------------------------------------- */

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
void *llm_arch_parse_fail(arch_parser *p, const char *fmt, ...) GGL_PRINTF(2, 3);
void *llm_arch_parse_fail_at(arch_parser *p, ggl_status s, arch_place place, const char *fmt, ...)
    GGL_PRINTF(4, 5);
void *llm_arch_parse_alloc(arch_parser *p, size_t n, size_t size);
arch_place llm_arch_token_place(const arch_parser *p, const arch_token *t);
bool llm_arch_is(const arch_parser *p,
                 const char *word); /* the next token is this symbol or word */
bool llm_arch_accept(arch_parser *p, const char *word);
bool llm_arch_expect(arch_parser *p, const char *symbol, const char *where);
bool llm_arch_is_reserved(const char *word);
const char *llm_arch_describe(const arch_token *t, char *buf, size_t size);
bool llm_arch_next_is(const arch_parser *p,
                      arch_token_kind kind); /* the one after the next token */
bool llm_arch_next_is_symbol(const arch_parser *p, const char *symbol);
bool llm_arch_end_of_line(arch_parser *p); /* takes the NEWLINE; false: there is something else */
arch_stmt *llm_arch_parse_require(arch_parser *p);
/* Words or strings, with commas between; their places if `place` is not NULL, ARCH_MAX_ARGS of them. */
const char **llm_arch_parse_names(arch_parser *p, int *n, arch_place *place);
bool llm_arch_parse_convert(arch_parser *p); /* parse_convert.c */
bool llm_arch_at_fused(
    const arch_parser *p); /* parse_fused.c: whether `a, b from "ab"` begins here */
bool llm_arch_parse_fused(arch_parser *p);
arch_expr *llm_arch_parse_expr(arch_parser *p);
arch_expr *llm_arch_parse_atom(arch_parser *p); /* without operators */
/* Comma-separated, up to (not including) what ends the list. */
arch_expr **llm_arch_parse_exprs(arch_parser *p, int *n);
/* Parses all of one text into arch->body or, for the prelude, arch->prelude_fn; calls resolve. */
ggl_status llm_arch_parse_text(llm_arch *arch, const arch_text *text, ggl_error *err);
/* Reads the line `arch NAME, ..` alone, for llm_arch_family; text and name must outlive the result. This is how the right one of
 * all built-in descriptors is found without reading the others. */
ggl_status llm_arch_parse_header(llm_arch **out, const char *text, size_t n, const char *name,
                                 ggl_error *err);

/* --- resolving: resolve.c ---------------------------------------------------------------- */

/* A call, as soon as it is parsed: it sees what stands above it. Checks the arguments' names and
 * number. */
bool llm_arch_resolve_call(arch_parser *p, arch_expr *e);
/* All names of a text that has been parsed get their slots; collects the keys. */
bool llm_arch_resolve_text(arch_parser *p);
/* The function of that name that stands above, in the descriptor or else the prelude. */
const arch_fn *llm_arch_find_fn(const llm_arch *arch, const arch_text *text, const char *name);
/* Calls visit(ctx, e) for e and all below it. */
void llm_arch_walk_expr(arch_expr *e, void (*visit)(void *, arch_expr *), void *ctx);
void llm_arch_walk_stmts(arch_stmt *s, void (*visit)(void *, arch_expr *), void *ctx);
/* "rms_norm(x, w, eps)"; returns buf. */
const char *llm_arch_fn_signature(const arch_fn *fn, char *buf, size_t size);

/* Finds the first name of the file's statements that nothing reads, when all names are resolved. unused.c */
void llm_arch_find_unused(llm_arch *arch);

/* --- what may be called besides functions: signature.c ----------------------------------------- */

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

arch_sig llm_arch_sig_of_op(ggl_op op);
arch_sig llm_arch_sig_of_builtin(int builtin);
int llm_arch_find_builtin(const char *name); /* FN_BUILTIN_COUNT: none */
const char *llm_arch_sig_text(const arch_sig *s, char *buf, size_t size);
/* Callable names for suggestions: the k-th, NULL past the end. */
const char *llm_arch_primitive_name(int k);

/* The next of the terms between '+' and '-', without spaces around it; *s moves to the sign after it, from where the caller
 * goes one on, or to the end. False: there are no more. */
bool llm_arch_next_term(const char **s, const char *end, ggl_str *term);

/* builtin.c */
const char *llm_arch_prelude_text(size_t *n);

#endif
