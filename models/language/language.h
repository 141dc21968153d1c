/* The descriptor language: turns a text into a tree and checks everything that needs no model.
 *
 *     lex.c            text -> tokens: indentation, names, keys, numbers, strings
 *     parse_text.c     a text: its header, functions and statements
 *     parse.c          tokens -> statements
 *     parse_expr.c     tokens -> expressions
 *     parse_convert.c  tokens -> the lines of convert sections
 *     parse_speech.c   tokens -> speech sections
 *     parse_fused.c    tokens -> the line `a, b from "ab"`
 *     resolve.c        gives each name its slot and each call its function
 *     signature.c      signatures of the operators and built-in functions
 *     unused.c         finds names that nothing reads
 *     error.c          places in a text; error messages with line and caret
 *     words.c          hints for words and symbols of other languages, e.g. "True" or "&&"
 *     arch.c           what a parsed text says about itself
 *     builtin.c        the descriptors that are compiled in */
#ifndef LLM_ARCH_LANGUAGE_H
#define LLM_ARCH_LANGUAGE_H

#include "ggl/internal/nearest.h"
#include "ggl/internal/alloc.h"
#include "ggl/internal/index.h"
#include "ggl/internal/show.h"
#include "llm/internal/arch.h"

/* The language's limits (docs/architectures.md, Limits). */
#define ARCH_MAX_TEXT     (256 * 1024)
#define ARCH_MAX_NAME     64
#define ARCH_MAX_NESTING  100
#define ARCH_MAX_ARGS     64
#define ARCH_MAX_CALLS    16
#define ARCH_MAX_DEPTH    400  /* depth of nested expressions, summed over all calls */
#define ARCH_MAX_NAMES    4096 /* names in a text or in a function; keys; functions */
#define ARCH_MAX_STEPS    10000000
#define ARCH_MAX_LAYERS   4096
#define ARCH_MAX_DIM      2147483647.0
#define ARCH_MAX_K        1024
#define ARCH_MAX_CONST    (64 << 20)  /* bytes of computed constants, as f32 */
#define ARCH_MAX_PRODUCTS (1 << 30)   /* of large products among them (ggl_is_large_product) */
#define ARCH_MAX_MEMORY   (256 << 20) /* of one build, not counting the graph */

/* --- texts, places, errors: error.c ----------------------------------------------------------- */

typedef struct arch_text {
    const char *name; /* "llama.arch" */
    const char *s;
    size_t n;
    bool prelude;
} arch_text;

typedef struct arch_place { /* a range of a text: n bytes from offset `at` */
    const arch_text *text;
    uint32_t at, n;
} arch_place;

/* Computes line and column of a place, both from 1; columns count characters, not bytes. */
void llm_arch_line_col(arch_place p, int *line, int *col);
/* Writes "name:line:col: error: message", then the source line, a caret and the hint to err. `hint`
 * may be NULL; `chain` (see llm_arch_chain) is appended to the first line and may be NULL. Returns
 * s. */
ggl_status llm_arch_fail(ggl_error *err, ggl_status s, arch_place p, const char *chain,
                         const char *hint, const char *fmt, ...) GGL_PRINTF(6, 7);
ggl_status llm_arch_failv(ggl_error *err, ggl_status s, arch_place p, const char *chain,
                          const char *hint, const char *fmt, va_list args);
/* Copies the text of a place to buf as one line, cut to size - 1 bytes. Returns buf. */
const char *llm_arch_quote(arch_place p, char *buf, size_t size);

/* --- words of other languages: words.c (each function returns NULL if it has no hint) --------- */

/* Returns a hint for an unknown function, e.g. "did you mean silu(x)?". The result may point
 * into buf. */
const char *llm_arch_meant_function(const struct llm_arch *arch, const arch_text *text,
                                    const char *written, char *buf, size_t size);
const char *llm_arch_meant_name(const char *written); /* "true" for True */
/* a sentence about a line's first word */
const char *llm_arch_meant_statement(const char *written);
/* Returns a sentence about the symbol at the start of s, e.g. "&&", and sets its length. */
const char *llm_arch_meant_symbol(const char *s, size_t n, size_t *length);
/* Returns the signature of a function or primitive callable in this text: "rms_norm(x, w, eps)". */
const char *llm_arch_signature(const struct llm_arch *arch, const arch_text *text, const char *name,
                               char *buf, size_t size);

/* --- tokens: lex.c ---------------------------------------------------------------------------- */

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

/* Splits a text into tokens, the last of which is TOK_END. Tokens and strings live in the arena. */
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
    EX_READS,    /* reads(.key), in known_keys.arch: true if the descriptor reads key a */
    EX_NAMES,    /* names(.key), in the prelude: true if the descriptor's own text names key a */
    EX_LANGUAGE, /* in the prelude: the number of the language that the descriptor is written in */
    EX_INDEX,    /* a[b] */
    EX_PART,     /* a.bias, or a place: a.x */
    EX_FIELD,    /* a.name, where a is `config` or `rope` (convert sections only) */
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
    arch_place place; /* the whole expression */
    arch_place mark;  /* its operator or name, where a caret points */
    int depth;
    double num;       /* NUMBER; BOOL: 0 or 1 */
    const char *name; /* STRING NAME KEY CALL FIELD */
    bool whole;       /* KEY: written key(".."), a full name without the prefix {arch}. */
    bool lazy;        /* KEY: may be absent here, as in `?? ..` or has(..) */
    bool in_brackets; /* is enclosed in ( ) */
    ggl_op op;        /* BINARY, CALL of an operator */
    arch_expr *a, *b, *c;
    arch_arg *arg; /* CALL; LIST */
    int n_arg;
    arch_callee callee;
    const arch_fn *fn; /* CALL_FN */
    int builtin;       /* CALL_BUILTIN: an arch_builtin_fn */
    int local, global; /* NAME: its slots; -1: none */
};

typedef enum arch_stmt_kind {
    ST_ASSIGN,
    ST_WEIGHT,
    ST_IF,
    ST_LAYER,
    ST_FOR,
    ST_STAGE,
    ST_INPUT,
    ST_PREFIX,
    ST_KEEP,
    ST_RETURN,
    ST_REQUIRE,
    ST_IGNORE,
    ST_ABSENT /* known_keys.arch only */
} arch_stmt_kind;

typedef struct arch_target { /* a name to which a statement assigns */
    const char *name;
    arch_place place;
    int slot; /* index of a local in a function, else of a global */
} arch_target;

typedef struct arch_arm { /* a branch of an if; the else has cond NULL */
    arch_expr *cond;
    arch_stmt *body;
    arch_place place;
} arch_arm;

struct arch_stmt {
    arch_stmt_kind kind;
    arch_place place; /* the statement's first token */
    int line;
    arch_stmt *next;
    arch_target *target; /* ASSIGN, WEIGHT, LAYER, FOR, STAGE, KEEP */
    int n_target;
    /* ASSIGN: 1 value. RETURN: the results. WEIGHT: the shape. LAYER, FOR, REQUIRE, KEEP: 1.
     * IGNORE: keys and strings. ABSENT: keys. INPUT: the shape of a row. STAGE: none, or the value that it is over and, if given, the number of its
     * layers, whose name is the second target. */
    arch_expr **expr;
    int n_expr;
    arch_arm *arm; /* IF; LAYER, FOR, STAGE: one */
    int n_arm;
    /* WEIGHT: the name after `from`. REQUIRE: the message. IGNORE: the text that explains the
     * key. STAGE, PREFIX: what the names of tensors begin with, or NULL. */
    const char *string;
    const char *second; /* WEIGHT: the name to use if `string` is not in the source */
    arch_place string_place;
    /* STAGE: over rows; expr is the name of their source, every, from. INPUT: `other` says how they are prepared */
    bool of_rows;
    bool optional; /* WEIGHT: '?'; STAGE: `from = 1` */
    bool apart;    /* STAGE of several layers: `ahead = NAME + 1` */
    bool stays;    /* STAGE: `stay = 1` */
    bool
        in_block; /* STAGE: `block NAME < n`; the name is the second target, and `other` is `first` or NULL */
    bool bias, bias_optional;
    /* WEIGHT: the value after `??`; IGNORE, ABSENT: the condition or NULL; INPUT: what it is from */
    arch_expr *other;
};

/* True for a stage over a value of each token, which guesses the tokens after the next. */
static inline bool arch_guesses(const arch_stmt *s) {
    return s->kind == ST_STAGE && s->n_expr > 0 && !s->of_rows;
}

typedef struct arch_param {
    const char *name;
    arch_place place;
    arch_expr *fallback; /* the default; NULL: the argument is required */
} arch_param;

struct arch_fn {
    const char *name;
    arch_place place;
    const arch_text *text;
    bool op;        /* declared by `op`: a call of one of the prelude's ops stays one node */
    bool recurrent; /* has a `state` */
    arch_param *param;
    int n_param;
    arch_stmt *body;
    const char **local; /* names of the local slots; the parameters come first */
    int n_local;
    arch_fn *next; /* the function declared before this one */
    bool used;     /* the descriptor calls it, directly or through other functions */
};

typedef enum arch_map_kind {
    MAP_KEY,    /* .name <- expr */
    MAP_WEIGHT, /* name <- expr */
    MAP_TENSOR, /* tensor("name") <- expr: one that the descriptor does not read */
    MAP_ARCH,   /* arch <- expr: chooses one of the header's names */
    MAP_REQUIRE,
    MAP_NOTE,   /* like REQUIRE, but prints a note if the condition holds */
    MAP_WITHIN, /* expr: the object of config.json that is searched first */
    MAP_PREFIX, /* tensor names that start with `name` may start with `other` */
    MAP_AGREE,  /* expr: a value that is that of the input's argument `argument` */
    MAP_FOLDER, /* name: a folder in the folder, with a config.json and tensors of its own */
    MAP_IGNORE, /* name: a pattern of source tensors; if NULL, expr is a config.json value */
    MAP_ONLY,   /* the same: the section is about these alone */
    MAP_COPY /* name: a pattern of source tensors that are read, or copies of that of weight `other` */
} arch_map_kind;

/* What a folder may say of how sound becomes the rows of an input, and whose value there is the descriptor's. */
typedef enum arch_sound_argument {
    SOUND_RATE,
    SOUND_STEP,
    SOUND_WINDOW,
    SOUND_FFT,
    SOUND_SECONDS,
    SOUND_EMPHASIS,
    SOUND_BANDS,
    SOUND_ARGUMENTS
} arch_sound_argument;
extern const char *const llm_arch_sound_arguments[SOUND_ARGUMENTS];

typedef struct arch_mapping { /* a line of a convert section */
    arch_map_kind kind;
    arch_place place;
    const char *name;
    /* PREFIX; COPY; FOLDER: the file of its values, for messages; WEIGHT: the line is for weights below this prefix only, "enc." */
    const char *other;
    bool whole;      /* KEY: written key(".."), a full name */
    bool bias;       /* WEIGHT: name.bias <- */
    int argument;    /* AGREE: the index in llm_arch_sound_arguments */
    arch_expr *expr; /* NULL: IGNORE of tensors, COPY, PREFIX */
    arch_stmt *require;
    struct arch_mapping *next;
} arch_mapping;

typedef struct arch_convert {
    arch_place place;
    const char **name; /* values of "architectures" */
    int n_name;
    arch_expr *cond; /* `if`: of these classes, only folders where it holds; NULL: all */
    arch_mapping *map;
    struct arch_convert *next;
} arch_convert;

/* a line `attn_q, attn_k, attn_v from "attn_qkv"`: `part` are rows of `whole` */
typedef struct arch_fused {
    const char **part, *whole;
    arch_place place, *part_place;
    int n_part;
    /* the prelude's line, but the descriptor itself declares `whole`: the line is not used */
    bool own;
    struct arch_fused *next;
} arch_fused;

typedef struct arch_known_key { /* a key that the descriptor mentions */
    const char *name;
    arch_place place; /* its first mention */
    bool whole;       /* written as a full name */
    bool required;    /* read at least once without a default */
    bool ignored;
    bool own; /* the descriptor's own text names it, not only a function of the prelude */
    const arch_stmt *condition; /* of the `ignore .. if` that mentions it, or NULL */
    bool in_branch;             /* that `ignore` is in a branch, a layer or a function */
    int n_reads;                /* mentions, not counting `ignore` and its condition */
    struct arch_known_key *next;
} arch_known_key;

/* Slots of the predefined names: the first globals of the prelude and of every descriptor. */
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

/* What a descriptor may compute: top-level names of llm_arch_output_names. */
typedef enum arch_output {
    OUT_LOGITS,
    OUT_EMBEDDING,
    OUT_SCORE,
    OUT_GUESS,
    OUT_ROWS,
    OUT_ALIGNMENT,
    OUT_COUNT
} arch_output;
extern const char *const llm_arch_output_names[OUT_COUNT];

struct llm_arch {
    ggl_arena arena;
    arch_text text, prelude;
    int n_lines, language, n_stages;
    const arch_stmt *last_stage; /* of texts or rows: the one that tokens and outputs read */
    bool
        has_tokens; /* `token` is read outside of the stages: tokens that read what the stage has stored */
    const char **family;     /* as written: "llama", or "clip:mlp" */
    const char **key_family; /* without what stands behind ':' */
    arch_place *family_place;
    int n_family;
    arch_stmt *body;
    arch_fn *fn, *prelude_fn; /* the last of each text; linked by `next` */
    /* the last of each text; `use` copies the prelude's into the descriptor's list */
    arch_convert *convert, *prelude_convert;
    llm_arch_speech *speech, *prelude_speech; /* in their order */
    arch_fused *fused;                        /* the descriptor's lines, then the prelude's */
    const char **global;                      /* names of the global slots */
    int n_global;
    size_t cap_global;
    int guess_token;       /* the global slot of the tokens that guesses are; -1: none */
    int guess_chance;      /* and of the chance that the best of them is right */
    int output[OUT_COUNT]; /* the global slots of the outputs; -1: the text does not assign it */
    /* the first top-level name that nothing reads, or NULL */
    const arch_target *unused;
    arch_known_key *key;
    arch_known_key *key_pattern; /* patterns of `ignore ".x.*"`, without the leading dot */
};

/* --- parsing: parse_tools.c, parse_expr.c, parse.c, parse_text.c ------------------------------- */

typedef struct arch_parser {
    llm_arch *arch;
    const arch_text *text;
    ggl_arena *arena;
    const arch_token *tok; /* the next token */
    int depth, n_blocks;
    int64_t work; /* steps of name resolution, limited like those of a build */
    int n_fns;
    bool in_convert;
    const char *in_fn; /* name of the function being parsed, or NULL */
    bool in_stage;     /* in the block of a stage */
    bool saw_state;    /* that function has a `state` */
    ggl_status status; /* the first failure; parsing stops */
    ggl_error *err;
} arch_parser;

/* Report an error at the next token or at a place. Both return NULL, for `return
 * llm_arch_parse_fail(..)`. */
void *llm_arch_parse_fail(arch_parser *p, const char *fmt, ...) GGL_PRINTF(2, 3);
void *llm_arch_parse_fail_at(arch_parser *p, ggl_status s, arch_place place, const char *fmt, ...)
    GGL_PRINTF(4, 5);
void *llm_arch_parse_alloc(arch_parser *p, size_t n, size_t size);
void *llm_arch_parse_copy(arch_parser *p, const void *from, int n, size_t size); /* of n elements */
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
/* Returns a statement that begins at the next token; NULL: out of memory. */
arch_stmt *llm_arch_new_stmt(arch_parser *p, arch_stmt_kind kind);
/* Parses words or strings separated by commas, at most ARCH_MAX_ARGS; NULL: reported. Writes their
 * places to place[], if it is not NULL. */
const char **llm_arch_parse_names(arch_parser *p, int *n, arch_place *place);
bool llm_arch_parse_convert(arch_parser *p); /* parse_convert.c */
bool llm_arch_parse_speech(arch_parser *p);  /* parse_speech.c */
bool llm_arch_at_fused(
    const arch_parser *p); /* parse_fused.c: whether `a, b from "ab"` begins here */
bool llm_arch_parse_fused(arch_parser *p);
arch_expr *llm_arch_parse_expr(arch_parser *p);
arch_expr *llm_arch_parse_atom(arch_parser *p); /* without operators */
arch_expr *llm_arch_parse_name(arch_parser *p); /* the name at the current token */
/* Parses expressions separated by commas, up to the token that ends the list, which is not
 * consumed. */
arch_expr **llm_arch_parse_exprs(arch_parser *p, int *n);
/* Parses the only expression of a statement. */
bool llm_arch_one_expr(arch_parser *p, arch_stmt *s);
arch_stmt *llm_arch_parse_require(arch_parser *p);
/* A statement or a block of them, at top level or not. NULL: reported. */
arch_stmt *llm_arch_parse_stmt(arch_parser *p, bool top);
arch_stmt *llm_arch_parse_block(arch_parser *p, bool top);
/* A name that gets a value. False: reported. */
bool llm_arch_parse_target(arch_parser *p, arch_target *t);
/* Parses a whole text into arch->body or, for the prelude, arch->prelude_fn, and resolves its
 * names. */
ggl_status llm_arch_parse_text(llm_arch *arch, const arch_text *text, ggl_error *err);
/* Parses only the line `arch NAME, ..`, so that llm_arch_family can find a built-in descriptor
 * without parsing all of them. `text` and `name` must outlive *out. */
ggl_status llm_arch_parse_header(llm_arch **out, const char *text, size_t n, const char *name,
                                 ggl_error *err);

/* --- resolving: resolve.c --------------------------------------------------------------------- */

/* Resolves a call right after it is parsed: finds the function, which must be declared above it,
 * and checks the number and names of the arguments. False: an error was reported. */
bool llm_arch_resolve_call(arch_parser *p, arch_expr *e);
/* Gives all names of a parsed text their slots and collects its keys. False: an error was
 * reported. */
bool llm_arch_resolve_text(arch_parser *p);
/* visit.c: calls visit(ctx, x) for e and each of its subexpressions x. */
void llm_arch_walk_expr(arch_expr *e, void (*visit)(void *, arch_expr *), void *ctx);
void llm_arch_walk_stmts(arch_stmt *s, void (*visit)(void *, arch_expr *), void *ctx);

/* Sets arch->unused to the first top-level name that nothing reads, or NULL. Call after
 * resolving. In unused.c. */
void llm_arch_find_unused(llm_arch *arch);

/* --- what may be called: signature.c ---------------------------------------------------------- */

typedef enum arch_builtin_fn {
    FN_SPLIT,
    FN_CONCAT,
    FN_SIZE,
    FN_COUNT,
    FN_CEIL,
    FN_LOG2,
    FN_AROUND,
    FN_PLANE_AROUND,
    FN_GIVEN,
    FN_GIVEN_MORE,
    FN_IS_GIVEN,
    FN_FLOATS,
    FN_SOUND,
    FN_SAMPLES,
    FN_PICTURE,
    FN_TILES,
    FN_PLACE,
    FN_ASKED,
    FN_TOKEN_TYPE,
    FN_IN_TURN,
    FN_GUESS_BEFORE,
    FN_VECTOR,
    FN_BUILTIN_COUNT
} arch_builtin_fn;

/* The functions of convert sections. A call of one has the builtin FN_BUILTIN_COUNT + this. */
typedef enum arch_conversion_fn {
#define CONVERSION(name, ...) CONVERSION_##name,
#include "conversions.def"
    CONVERSION_COUNT
} arch_conversion_fn;

typedef struct arch_sig_param {
    char name[16];
    bool number, optional, variadic;
    double fallback;
} arch_sig_param;

#define ARCH_MAX_SIG     32
#define ARCH_ROW_OPTIONS 11 /* of a stage over rows, as parse_row_options names them */
/* The signature of an operator or builtin, without the arguments that the engine supplies (pos,
 * slot). */
typedef struct arch_sig {
    const char *name;
    arch_sig_param param[ARCH_MAX_SIG];
    int n_param;
} arch_sig;

arch_sig llm_arch_sig_of_op(ggl_op op);
arch_sig llm_arch_sig_of_builtin(int builtin);
int llm_arch_find_builtin(const char *name); /* FN_BUILTIN_COUNT: no such builtin */
/* Returns the function of this name declared so far, in the descriptor or else in the prelude;
 * NULL: none. */
const arch_fn *llm_arch_find_fn(const llm_arch *arch, const arch_text *text, const char *name);
/* Writes a signature like "rms_norm(x, w, eps)" to buf; returns buf. */
const char *llm_arch_fn_signature(const arch_fn *fn, char *buf, size_t size);
const char *llm_arch_sig_text(const arch_sig *s, char *buf, size_t size);
/* Returns the k-th callable name, for suggestions; NULL past the end. */
const char *llm_arch_primitive_name(int k);

/* lex.c: sets *term to the next term of a sum like "n - 1", without surrounding spaces, and moves *s to
 * the '+' or '-' after it, or to `end`; the caller skips that sign. Returns false if there are
 * no more terms. */
bool llm_arch_next_term(const char **s, const char *end, ggl_str *term);

/* embedded.c */
const char *llm_arch_prelude_text(size_t *n);

#endif
