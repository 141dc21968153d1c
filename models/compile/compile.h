/* The descriptor compiler: turns a tree (language/language.h) and a source of keys and tensors into
 * a graph.
 *
 *     build.c    the whole build: family, vocabulary, inputs, statements, checks
 *     outputs.c  makes the outputs of the graph
 *     rows.c     which rows each value belongs to
 *     evaluator.c  the state of an evaluation, errors, limits
 *     blame.c    the file and the keys that an error depends on
 *     eval.c     statements, layer by layer
 *     row_stages.c  stages over rows of an input or of another stage
 *     picture.c  rows that are made of a picture, and places in it
 *     expr.c     expressions -> values
 *     value.c    conversions of values, and their names in messages
 *     call.c     functions and bodies
 *     ops.c      operators -> nodes of the graph
 *     node.c     nodes, and their checks
 *     weight.c   declared tensors
 *     weight_table.c  the table of these
 *     names.c    patterns of names, and values of keys in messages
 *     adapter.c  opens low-rank adapters
 *     adapt.c    applies them: adds what they change to products and rows
 *     adapt_change.c  what they change of each weight
 *     adapt_size.c    the lengths of rows, which they may set
 *     adapt_factor.c  weights that are multiplied by a factor of the file
 *     fused.c    declared tensors that are rows of one tensor of the source
 *     missing.c  the error for a declared tensor that the source lacks
 *     rotate.c   weights that are stored rotated: turns the rows that meet them
 *     use.c      checks that every declared or computed tensor reaches the logits
 *     judge.c    classifies each key of the file: read, ignored, harmless or unread
 *     unread.c   keys and tensors of the file that nothing reads
 *     known.c    the table of keys that need not be read (known_keys.arch)
 *     source.c   a GGUF file as a source
 *     teach.c    changes the keys of a made-up model until each `require` holds */
#ifndef LLM_ARCH_COMPILE_H
#define LLM_ARCH_COMPILE_H

#include "common/glob.h"
#include "ggl/internal/alloc.h"
#include "ggl/internal/index.h"
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
    VAL_CACHE,
    VAL_ROWS,    /* those of an input, or of a stage that only stages read */
    VAL_PREPARED /* says how an input's rows are prepared */
} arch_value_kind;

typedef struct arch_value {
    arch_value_kind kind;
    double num;
    bool flag;       /* BOOL */
    bool absent_key; /* NONE: comes from an absent key, not from the literal */
    /* NUMBER: the expression that gave it, or NULL. NONE: what is missing. LIST of a key: two
     * elements that differ, set by llm_arch_one_of. */
    const char *text;
    const char *key; /* the key that it was read from, or NULL; for messages */
    ggl_str str;
    const struct arch_value *item; /* elements of [..]; NULL: the list is list_key */
    llm_arch_key list_key;
    size_t n;
    ggl_tensor *t, *bias; /* CACHE: t is the CACHE node */
    ggl_tensor *factor;   /* of a weight: see weight_factor.c; NULL: none */
    int64_t range;        /* TENSOR: an index below `range`; 0: not an index */
    /* indexes a dimension of exactly `range` (topk, ngrams), not of at least `range` (token, pos) */
    bool exact_range;
    bool number_too; /* an index that is also a number: pos */
    bool is_stage;   /* TENSOR: the rows of a stage, of which [i] picks one */
    int source;      /* ROWS, and TENSOR in a stage over them: 1 + index into ev->source; else 0 */
} arch_value;

/* --- evaluating ------------------------------------------------------------------------------- */

typedef struct arch_slot {
    arch_value v;
    bool bound, in_layer; /* in_layer: first assigned in the current layer; cleared at its end */
    ggl_tensor *state;    /* the STATE node, if bound by `s = state(..)` */
    bool kept;
    arch_place place;
} arch_slot;

typedef struct arch_frame { /* a function call in progress */
    const arch_fn *fn;
    arch_slot *local;
    arch_place call;
    struct arch_frame *up;
    arch_value *result;
    int n_result;
} arch_frame;

typedef struct arch_weight { /* a declared tensor that the source has */
    const char *name;
    ggl_tensor *t;
    arch_place place;
    const char *chain;
    bool is_bias;
    /* Set for a tensor of the source whose parts are declared instead; t is then NULL. */
    struct arch_whole *whole;
} arch_weight;

typedef struct arch_part { /* a declared tensor that is a range of rows of a source tensor */
    ggl_tensor *t;
    struct arch_whole *whole;
    int k; /* its index among the parts */
} arch_part;

typedef struct arch_made { /* a node and where it was made; use.c checks that it is used */
    ggl_tensor *t;
    arch_place place;
    int32_t siblings;   /* results of one call share a number > 0; one used result is enough */
    const char *target; /* the name it was assigned to, or NULL */
    bool large;         /* a large product of constants, or made of one */
} arch_made;

typedef struct arch_edge { /* `to` counts as used if `from` is used; from NULL: always */
    const ggl_tensor *from;
    ggl_tensor *to;
} arch_edge;

/* An input, or a stage over rows. */
typedef struct arch_source {
    llm_arch_rows_of row;
    const char *dim_name[GGL_MAX_DIMS];
    ggl_tensor *result; /* what the stage returned; NULL: an input */
} arch_source;

typedef struct arch_eval arch_eval;

/* A cache of a stage that tokens read; and, with params.n_reads, what stands for it. */
typedef struct arch_kept {
    const ggl_tensor *cache;
    ggl_tensor *keys, *values;
} arch_kept;

/* The rows that a value belongs to. */
enum {
    ROWS_NONE,  /* it is the same for all rows */
    ROWS_EACH,  /* each row has its own: a token, or a row of a stage that no token reads */
    ROWS_STAGE, /* each row of a stage that tokens read */
    ROWS_GUESS, /* each token of a stage over a value of the token before */
    ROWS_TURN,  /* each guess of a block, when its turn comes */
    ROWS_PICKED, /* this and the following: one row of a stage, that of ev->picked[rows - ROWS_PICKED] */
    ARCH_MAX_PICKS = 16
};
typedef struct arch_converter arch_converter;

struct arch_eval {
    const llm_arch *arch;
    const llm_arch_source *src;
    ggl_graph *g;
    ggl_error *err;
    ggl_status status; /* sticky */
    bool refused;      /* the error comes from a `require` or an `ignore .. if` */
    bool lacks_source; /* the error: a folder lacks the tensor of a weight, */
    bool lacks_layer;  /* and all others of its layer */
    bool ran;          /* all statements ran; what fails now are the checks after them */
    ggl_arena arena;
    const char *family;
    int64_t n_ctx, n_vocab;
    llm_arch_output output[OUT_COUNT];
    arch_slot *global;
    arch_frame *frame; /* NULL at top level */
    const arch_frame
        *texts; /* whose texts names in braces find beside those of top level; NULL: none */
    int n_frames, in_recurrent, depth;
    const arch_stmt *at;     /* the descriptor's current statement */
    const arch_stmt *origin; /* the statement that was last set as the graph's origin */
    int64_t layer;           /* -1: outside of `layer` */
    int64_t n_layer;
    const char *layer_name;
    const arch_stmt *layers; /* the loop over layers that ran last */
    const char *prefix;      /* of names of tensors, from here on; NULL: none */
    const arch_stmt *stage;  /* whose block runs; NULL: none */
    arch_value stage_result; /* what it returned; VAL_FAIL: nothing yet */
    arch_value stage_pos;    /* the numbers of the rows of the last stage that ran */
    int n_stages;
    arch_source source[LLM_ARCH_MAX_SOURCES];
    int n_sources;
    arch_source *preparing; /* the input whose `from` is evaluated, or NULL */
    /* A stage that guesses the tokens after the next. over: the value of each token that it is over (NULL: the descriptor has no
     * such stage); row: the input that gives this value of the token before; foretold: what the stage returned. */
    ggl_tensor *over, *row, *foretold;
    bool over_from_second; /* the first token has no guess: nothing is known before it */
    int n_guess_layers;    /* as in llm_arch_result */
    bool guess_apart, guess_stays;
    int64_t n_guess_block;
    int guess_first;      /* as in llm_arch_result */
    ggl_tensor *in_block; /* the input that says whether an element is in a block */
    /* Rows that enter layers of another model: the input, and the layers' numbers. */
    ggl_tensor *features;
    int32_t tap[LLM_ARCH_MAX_TAPS];
    int n_taps;
    int64_t n_given;      /* length of given(x); 0: the descriptor has none */
    int64_t n_given_more; /* of given_more(n) */
    int given_together; /* 1: given rows that stand together see each other; 2: within windows; 3: beyond them, too */
    bool has_places;               /* as in llm_arch_result */
    bool given_added;              /* as in llm_arch_result */
    bool is_causal;                /* the graph is that of a causal stage over rows */
    int64_t n_token_types;         /* of token_type(n); 0: the descriptor has none */
    int64_t n_row;                 /* as in llm_arch_result */
    const ggl_tensor *guess_token; /* as well */
    /* What guesses of a block are made from, one after the other: in_turn(x), its row as an input, and the guess before as an input. */
    ggl_tensor *in_turn, *turn_row, *turn_before;
    bool guess_names, guess_chance; /* as in llm_arch_result */
    ggl_tensor
        *tapped[LLM_ARCH_MAX_TAPS]; /* of params.tap: what enters these layers; NULL: not found */
    ggl_tensor *left;               /* what leaves the last layer; NULL: not found */
    bool tapped_twice;              /* in two loops over layers */
    bool gives_stage;               /* an output belongs to rows of a stage that tokens read */
    uint8_t *rows_of; /* indexed by tensor id: to which rows the value belongs (arch_rows) */
    size_t cap_rows_of;
    int64_t picked[ARCH_MAX_PICKS]; /* rows of stages that were picked; -1: the last one */
    int n_picked;
    int64_t steps;
    size_t const_bytes, product_bytes;
    arch_value one;        /* holds the result of a call that has one */
    const char *vary_name; /* if set, this name evaluates to vary_value; for hints in weight.c */
    arch_value vary_value;

    arch_weight **weight; /* declared tensors, in order */
    ggl_str *weight_name; /* names of `weight`, in the same order */
    ggl_index weight_index;
    size_t n_weight, cap_weight, cap_weight_name;
    arch_part *part; /* get their data after all are declared */
    size_t n_part, cap_part;
    arch_made *made; /* indexed by tensor id; t NULL: no entry */
    size_t cap_made;
    ggl_tensor **keep; /* KEEP nodes */
    size_t n_keep, cap_keep;
    ggl_tensor **call; /* CALL nodes */
    size_t n_call, cap_call;
    arch_edge *read; /* from arms of a choice that were not taken */
    size_t n_read, cap_read;
    arch_kept *kept; /* in the order in which tokens read them first */
    size_t n_kept, cap_kept;
    const char **ignore; /* patterns of `ignore` for tensors and foreign keys */
    size_t n_ignore, cap_ignore;
    int32_t n_siblings;
    ggl_str *read_key; /* keys that were evaluated */
    ggl_index read_key_index;
    size_t n_read_key, cap_read_key;
    ggl_str *word; /* interned expressions of numbers */
    ggl_index word_index;
    uint8_t *line_ran;
    char *notes;
    const arch_converter *convert;  /* NULL: the model comes from `src` */
    struct arch_conversion *conv;   /* state of `convert` */
    const llm_arch_ignore *request; /* ignored at the user's own risk; may be NULL */
    const llm_arch_params *params;  /* for `unread` and `missing`; may be NULL */
    struct arch_known *known;       /* the table of known keys; NULL until first needed */
    struct arch_adapt *adapt;       /* the adapters; NULL: none */
    struct arch_rotate *rotate;     /* weights that are stored rotated; NULL: none */
    const llm_arch *reader; /* in the table's own evaluator: the descriptor whose keys it judges */
};

/* Hooks of a model's other origin: a Hugging Face folder, through the descriptor's convert
 * section (models/convert/section.c). The compiler calls these instead of asking the source. */
struct arch_converter {
    arch_value (*field)(arch_eval *ev, const arch_expr *e); /* evaluates config.a.b, rope.a */
    /* True if an element of e, a field, is one of an object that has numbers as names, with or without gaps, which `field` evaluates */
    bool (*numbered)(arch_eval *ev, const arch_expr *e);
    /* evaluates has(..) of a field, an object or a source tensor's name */
    arch_value (*has)(arch_eval *ev, const arch_expr *e);
    /* calls a function of convert sections that returns no tensor */
    arch_value (*call)(arch_eval *ev, const arch_expr *e);
    /* the index of the expert being stacked if `name` is "e"; false: another name */
    bool (*number)(const arch_eval *ev, const char *name, double *out);
    /* Fills *t with the type and shape of a declared weight or its bias. False: the conversion
     * makes none, or ev has an error. */
    bool (*weight)(arch_eval *ev, const arch_stmt *s, bool is_bias, llm_arch_tensor *t);
    /* Fills *t with the shape of the tensor of that name. False: the conversion makes none, or ev has an error. */
    bool (*size)(arch_eval *ev, llm_arch_tensor *t);
    /* Returns true if the conversion goes on after this error, which it records, because the
     * user asked for all errors. */
    bool (*forgive)(arch_eval *ev);
    /* advice about a key (full name) that no line of the section sets */
    const char *(*absent_hint)(const arch_eval *ev, const char *key);
    /* Reports a name without a value in a key line, with the line to write. False: the name has
     * another cause; not reported. */
    bool (*unbound)(arch_eval *ev, const arch_expr *e);
    /* For messages: writes the file that has config.a.b, and "a.b = 7", each of `size` bytes. False: no file has it; with `absent` the text
     * says so, of a value in config.json. */
    bool (*value)(arch_eval *ev, const arch_expr *e, bool absent, char *file, char *text,
                  size_t size);
    /* Returns the expression that made a key (full name); NULL: the section has made none. */
    const arch_expr *(*made_by)(const arch_eval *ev, const char *key);
    /* Visits the expressions of the section. */
    void (*walk)(const arch_eval *ev, void (*visit)(void *ctx, arch_expr *e), void *ctx);
    /* Called after the descriptor ran: replaces the placeholders in patterns of `ignore` by numbers, and makes
     * the tensors that the descriptor does not read. False: reported. */
    bool (*finish)(arch_eval *ev);
};

#define ARCH_FAIL ((arch_value){.kind = VAL_FAIL})
/* Reports an error at a place, with the chain of calls, and returns VAL_FAIL. Only the first
 * error is kept. */
arch_value llm_arch_error(arch_eval *ev, arch_place p, const char *fmt, ...) GGL_PRINTF(3, 4);
arch_value llm_arch_error_hint(arch_eval *ev, ggl_status s, arch_place p, const char *hint,
                               const char *fmt, ...) GGL_PRINTF(5, 6);
/* Reports "model.gguf: error: .."; returns false. */
bool llm_arch_source_error(arch_eval *ev, const char *fmt, ...) GGL_PRINTF(2, 3);
arch_value llm_arch_nomem(arch_eval *ev);
/* For an error at p of a built-in descriptor: begins its message with the file and those of its keys on which the expression at p
 * depends, "model.gguf: llama.block_count = 4259844: llama.arch:28:11: error: ..". For other descriptors, whose
 * authors look for their own mistake first, appends "  model.gguf has t.block_count = 4259844", unless the model is made up. In
 * conversions these are values of the folder's files, "folder/config.json: num_hidden_layers = 0: ..". */
void llm_arch_lead_with_file(arch_eval *ev, arch_place p);
/* Writes the keys of the file that give the number of layers, "llama.block_count = 2"; "": there are none. */
void llm_arch_keys_of_layers(arch_eval *ev, bool stages, char *buf, size_t size);
/* True if the descriptor's name and text are those of a built-in one. */
bool llm_arch_is_builtin(const llm_arch *a);
/* Returns p, or for a p in the prelude the descriptor's call that led there. */
arch_place llm_arch_users_place(const arch_eval *ev, arch_place p);
/* Returns how p was reached, " (in f, called from x.arch:3:4)", or "" at top level. For p in the
 * prelude, where messages show the descriptor's call, it names the line within: " (in conv at
 * prelude.arch:3:4)". */
const char *llm_arch_chain(arch_eval *ev, arch_place p);
const char *llm_arch_strdup(arch_eval *ev, const char *s); /* in the arena */
/* counts n steps; false: too many, reported */
bool llm_arch_step(arch_eval *ev, arch_place p, int64_t n);
/* Counts the steps of matching a name with n patterns; false: too many, reported. */
bool llm_arch_step_patterns(arch_eval *ev, size_t n, ggl_str name);
bool llm_arch_push(arch_eval *ev, void *array, size_t *cap, size_t n, size_t size);
/* Lets `to` count as used if `from` is used; from NULL: always. False: out of memory, reported. */
bool llm_arch_add_edge(arch_eval *ev, const ggl_tensor *from, ggl_tensor *to);
/* Makes room for n names in an index, which is created if necessary. */
static inline ggl_status arch_index_room(ggl_index *x, const void *array, size_t n, size_t stride,
                                         ggl_error *err) {
    return x->slots ? ggl_index_reserve(x, array, n, err)
                    : ggl_index_init(x, n < 32 ? 64 : 2 * n, stride, GGL_INDEX_STRINGS, err);
}

/* Frees all but known and adapt. */
void llm_arch_eval_fini(arch_eval *ev);
/* Sets ev->family from general.architecture. False: reported. */
bool llm_arch_find_family(arch_eval *ev);
/* Allocates the global slots and sets the predefined values that need no model. False: reported. */
bool llm_arch_eval_init(arch_eval *ev);

/* value.c */
static inline arch_value llm_arch_number(double x) {
    return (arch_value){.kind = VAL_NUMBER, .num = x};
}
arch_value llm_arch_bool(bool b);
arch_value llm_arch_tensor_value(ggl_tensor *t);
arch_value llm_arch_none(const char *missing);
const char *llm_arch_kind_text(const arch_value *v); /* "a number", .. */
/* Describes a value for messages, "key llama.x is a list" or "it is a string"; returns buf. */
const char *llm_arch_value_text(const arch_value *v, char *buf, size_t size);
const char *llm_arch_intern(arch_eval *ev, const char *s); /* NULL: too long, or too many texts */
/* Returns the text `a op b` of a number, or NULL. A division cancels a factor: n_head*d / n_head
 * gives d. */
const char *llm_arch_join_text(arch_eval *ev, const char *op, const arch_value *a,
                               const arch_value *b);
/* For an error about v. If v has no value because its key is absent, tells the source (lacks_key), and returns advice; else
 * NULL. */
const char *llm_arch_absent_hint(const arch_eval *ev, const arch_value *v);
/* Turns a key's list of equal numbers or truth values into that one value, where one is wanted.
 * Returns other values as they are; a list of unequal ones gets a `text` that names two that
 * differ. VAL_FAIL: too many steps. */
arch_value llm_arch_one_of(arch_eval *ev, const arch_expr *e, const arch_value *v);
/* Returns advice if `a ?? b == c` (or `in`) was probably meant as a ?? (b == c); else NULL. */
const char *llm_arch_binding_hint(arch_eval *ev, const arch_expr *e);
bool llm_arch_want_number(arch_eval *ev, const arch_expr *e, const arch_value *v, double *out);
bool llm_arch_want_bool(arch_eval *ev, const arch_expr *e, const arch_value *v, bool *out);
/* Requires a whole number from min to max. False: reported. */
bool llm_arch_want_whole(arch_eval *ev, const arch_expr *e, const arch_value *v, double min,
                         double max, int64_t *out);
/* Requires a tensor, or a number, which becomes a constant. Returns NULL if reported. */
ggl_tensor *llm_arch_want_tensor(arch_eval *ev, arch_place p, const arch_value *v,
                                 const char *what);
bool llm_arch_equal(const arch_value *a, const arch_value *b);
/* True if `==` and `in` can compare the two: numbers, strings and truth values with their own
 * kind, and a key's 0 or 1 with truth values. */
bool llm_arch_comparable(const arch_value *a, const arch_value *b);
arch_value llm_arch_list_item(arch_eval *ev, const arch_expr *e, const arch_value *list, int64_t i);
arch_value llm_arch_key_value(arch_eval *ev, const char *key, const llm_arch_key *k, uint64_t i);

/* expr.c */
arch_value llm_arch_eval_expr(arch_eval *ev, const arch_expr *e);
/* True if the engine itself reads a key (its full name), whether or not the descriptor names it, too. */
bool llm_arch_engine_reads(const arch_eval *ev, ggl_str key);
/* True if a key of the source was evaluated, not only named by a line that did not run. */
bool llm_arch_was_read(const arch_eval *ev, ggl_str key);
arch_slot *llm_arch_lookup(arch_eval *ev, const arch_expr *name);
/* Marks the tensors in an arm of a choice that was not taken as used if the value of the arm
 * taken is. */
void llm_arch_mark_read(arch_eval *ev, const arch_expr *e, const arch_value *taken);
/* Replaces "{l}" or "{n_layer + i}" in s by whole numbers. The result lives in the arena; NULL:
 * reported. */
const char *llm_arch_expand(arch_eval *ev, const char *s, arch_place p);
/* True if a name in braces is one of the descriptor that has no value here, such as the index of a
 * stage outside of it. */
bool llm_arch_lacks_number(arch_eval *ev, const char *s, arch_place p);

/* teach.c, for made-up models: changes keys so that condition e becomes `want`. Reports no
 * error. */
void llm_arch_teach(arch_eval *ev, const arch_expr *e, bool want);

/* rows.c */
int llm_arch_rows(const arch_eval *ev, const ggl_tensor *t);
/* Says that t belongs to these rows. False: out of memory, reported. */
bool llm_arch_set_rows(arch_eval *ev, const ggl_tensor *t, int rows);
/* Notes to which rows the new node t belongs. False: it mixes rows, which is reported. */
bool llm_arch_note_rows(arch_eval *ev, arch_place p, const ggl_tensor *t);

/* read.c */
/* True if the operator is attention of tokens to rows of a stage. */
bool llm_arch_is_read(arch_eval *ev, ggl_op op, ggl_tensor *const *src);
/* Notes that tokens read the cache. False: out of memory, reported. */
bool llm_arch_note_read(arch_eval *ev, ggl_tensor *const *src);
/* Makes such attention with params.n_reads, for the n_src sources and the numbers of the operator. NULL: reported. */
ggl_tensor *llm_arch_attend_given(arch_eval *ev, arch_place p, ggl_tensor *const *src, int n_src,
                                  const double *num);
/* Returns all that tokens read of a row of the stage. NULL: reported. */
ggl_tensor *llm_arch_read_rows(arch_eval *ev);

/* outputs.c */
/* Makes the outputs of the graph, after all statements have run. False: reported. */
bool llm_arch_give_outputs(arch_eval *ev);

/* eval.c */
bool llm_arch_run(arch_eval *ev, const arch_stmt *s); /* false: failed, or a return ran */
bool llm_arch_bind(arch_eval *ev, const arch_target *t, const arch_value *v);
arch_slot *llm_arch_target_slot(arch_eval *ev, const arch_target *t);

/* Runs the stage's block, whose assignments end with it, and sets ev->stage_result. False: reported. */
bool llm_arch_run_block(arch_eval *ev, const arch_stmt *s, arch_slot *outer);

/* --- stages that guess: guesses.c -------------------------------------------------------------- */

/* Sets ev->n_guess_layers and what else the options say. False: reported. */
bool llm_arch_count_guess_layers(arch_eval *ev, const arch_stmt *s);
/* False: params.guess_layer is not one of them, reported. */
bool llm_arch_check_guess_layer(arch_eval *ev);
bool llm_arch_run_over(arch_eval *ev, const arch_stmt *s, arch_slot *outer);
/* True if the graph is that of one guess after the other. */
bool llm_arch_is_turn(const arch_eval *ev);
arch_value llm_arch_in_turn(arch_eval *ev, const arch_expr *e, ggl_tensor *x);
arch_value llm_arch_guess_before(arch_eval *ev, const arch_expr *e);

#define LLM_ARCH_ONE_TEXT "a descriptor has one stage of a text at most, and no other beside it"

/* row_stages.c */

/* Returns the name of the stage over rows that is all that is computed, and that other stages read; NULL: there is none. */
const char *llm_arch_only_stage(const arch_eval *ev);
bool llm_arch_run_rows_input(arch_eval *ev, const arch_stmt *s); /* false: reported */
/* Runs a stage over rows, and sets ev->stage_result. False: reported. */
bool llm_arch_run_rows_stage(arch_eval *ev, const arch_stmt *s, arch_slot *outer);
/* Reads a text that stands beside rows in a prompt; without a value, out stays as it is. */
bool llm_arch_want_row_text(arch_eval *ev, const arch_expr *e, const arch_value *v,
                            char out[LLM_ARCH_TEXT]);
/* Reads one of n words, as its number. */
bool llm_arch_want_word(arch_eval *ev, const arch_expr *e, const arch_value *v,
                        const char *const *word, int n, int *out);
/* Evaluates floats(rows) for the input that is declared. */
arch_value llm_arch_from_floats(arch_eval *ev, const arch_expr *e, int64_t rows);
/* sound(..) and samples(..), as picture(..). */
arch_value llm_arch_from_sound(arch_eval *ev, const arch_expr *e, const arch_value *const *v,
                               const arch_expr *const *arg);
arch_value llm_arch_from_samples(arch_eval *ev, const arch_expr *e, const arch_value *const *v,
                                 const arch_expr *const *arg);
/* picture(..), whose arguments are v[0 .. ) in the order of its signature, NULL for one that is absent, and where they stand. */
arch_value llm_arch_from_picture(arch_eval *ev, const arch_expr *e, const arch_value *const *v,
                                 const arch_expr *const *arg);
/* tiles(picture(..), ..), whose arguments are given in the same way: the picture is seen in parts, too. */
arch_value llm_arch_in_tiles(arch_eval *ev, const arch_expr *e, const arch_value *const *v,
                             const arch_expr *const *arg);
/* How many rows a picture has at most. */
int64_t llm_arch_picture_rows(const llm_arch_picture *p);
/* Evaluates the place e of a row or a token: patch.x, pos.t. */
arch_value llm_arch_place_of(arch_eval *ev, const arch_expr *e, const arch_value *v);
/* Evaluates around(rows, first, k): the k rows from pos * every + from + first on, as the last dimension. */
arch_value llm_arch_around(arch_eval *ev, const arch_expr *e, const arch_value *rows, int64_t first,
                           int64_t k);
/* Evaluates plane_around(rows, k): the rows of the square of k x k lines and columns around this one, as the last dimension. */
arch_value llm_arch_plane_around(arch_eval *ev, const arch_expr *e, const arch_value *rows,
                                 int64_t k);
#define LLM_ARCH_NO_PLANE                                                                          \
    "this needs the rows of a square, line by line: of a picture of one size, with block = 1 and " \
    "first = 0, or of a stage over them that has all of them"

/* call.c */
/* Returns the call's *n results, valid until the next call; NULL: reported. */
arch_value *llm_arch_call_fn(arch_eval *ev, const arch_expr *e, int *n);
arch_value *llm_arch_call(arch_eval *ev, const arch_expr *e,
                          int *n); /* a function or a primitive */

/* ops.c */
arch_value *llm_arch_call_primitive(arch_eval *ev, const arch_expr *e, int *n);
arch_value llm_arch_infix(arch_eval *ev, const arch_expr *e, const arch_value *a,
                          const arch_value *b);
arch_value llm_arch_pick(arch_eval *ev, const arch_expr *e, const arch_value *t,
                         const arch_value *i);
/* Evaluates S[i], a row of the stage S. */
arch_value llm_arch_pick_row(arch_eval *ev, const arch_expr *e, const arch_value *stage,
                             const arch_value *i);
/* The same as llm_arch_plain_node, with the adapters' part added (adapt.c). */
ggl_tensor *llm_arch_node(arch_eval *ev, arch_place p, ggl_op op, ggl_tensor *const *src, int n_src,
                          const double *num, int n_num);
ggl_tensor *llm_arch_reshape(arch_eval *ev, arch_place p, ggl_tensor *x, int n, const int64_t *ne,
                             const char *const *dim_name);
ggl_tensor *llm_arch_split_one(arch_eval *ev, arch_place p, ggl_tensor *x, int dim, int64_t first,
                               int64_t size, const char *dim_name);
/* node.c */
/* True for nodes that only cut, reshape or choose what they read. */
static inline bool arch_is_cut(const ggl_tensor *t) {
    return t->op == GGL_OP_SPLIT || t->op == GGL_OP_RESHAPE || (t->op == GGL_OP_PICK && t->gather);
}
/* Makes any node: checks the graph's error and records the node for use.c. NULL: reported. */
ggl_tensor *llm_arch_plain_node(arch_eval *ev, arch_place p, ggl_op op, ggl_tensor *const *src,
                                int n_src, const double *num, int n_num);
bool llm_arch_graph_ok(arch_eval *ev, arch_place p); /* reports the graph's error, if any */
void llm_arch_note_made(arch_eval *ev, arch_place p, ggl_tensor *t);

/* Returns the graph's batched input of this name, which is made if there is none. NULL: reported. */
ggl_tensor *llm_arch_input(arch_eval *ev, arch_place p, const char *name, ggl_type type, int n_dims,
                           const int64_t *ne);

/* weight_table.c */
arch_weight *llm_arch_find_weight(arch_eval *ev, const char *name);
arch_weight *llm_arch_add_weight(arch_eval *ev, const char *name, ggl_tensor *t, arch_place p,
                                 bool is_bias);
/* weight_factor.c: sets *out to the factor of the tensor `weight`, of which t was made; NULL: it has none. False: reported. */
bool llm_arch_find_factor(arch_eval *ev, arch_place p, const char *weight, const ggl_tensor *t,
                          ggl_tensor **out);

/* names.c */
/* True if the caller wants this output, which is made on request alone. */
bool llm_arch_is_asked(const arch_eval *ev, int output);
/* Matches s with a pattern, in which '*' matches anything. */
static inline bool arch_match(const char *pattern, const char *s, size_t n) {
    return llm_stars_match((ggl_str){pattern, strlen(pattern)}, 0, (ggl_str){s, n});
}
/* Returns the index of the first of n patterns that matches the name, or n. If hits is not NULL,
 * adds 1 to hits[k] for each pattern k that matches. */
GGL_INTERNAL_API size_t llm_arch_match_first(const char *const *pattern, size_t n, ggl_str name,
                                             size_t *hits);
static inline bool arch_match_any(const char *const *pattern, size_t n, ggl_str name) {
    return llm_arch_match_first(pattern, n, name, NULL) < n;
}
/* True if the descriptor computes with {arch}.name, not only ignores it. */
GGL_INTERNAL_API bool llm_arch_reads_key(const llm_arch *arch, const char *name);
/* For a key of another family, "lama.rope.freq_base": returns what follows the point if the family's name is only misspelled, and the descriptor
 * reads that key; else NULL. */
GGL_INTERNAL_API const char *llm_arch_meant_of_family(const llm_arch *arch, const char *family,
                                                      const char *key);
/* For a key of the namespaces general and tokenizer that has none of their known names: returns the one that is meant, "general.name" for
 * "general.nmae"; NULL: it has one, or none is near. */
GGL_INTERNAL_API const char *llm_arch_meant_in_general(const char *key);
/* True if the descriptor's own text names {arch}.name, also in an `ignore`. */
bool llm_arch_names_key(const llm_arch *arch, const char *name);
/* Writes the value of a key for messages: " = 16", ' = "yarn"', " = [0, 0, 2, ..] of 28";
 * returns buf. */
const char *llm_arch_value_of_key(arch_eval *ev, ggl_str key, char *buf, size_t size);
/* Cuts a text at `most` bytes, between characters, and ends it with "..". */
void llm_arch_cut(char *s, size_t most);

/* weight.c */
bool llm_arch_run_weight(arch_eval *ev, const arch_stmt *s);
bool llm_arch_run_ignore(arch_eval *ev, const arch_stmt *s);

/* fused.c */
/* Looks for *t, which the source lacks, as a part of a tensor that the source has (see `a, b
 * from "ab"`). If found, sets t->type and *out and returns true; if the row lengths differ, *t
 * gets the name and shape of that tensor for the error. False: not found, or ev has an error. */
bool llm_arch_find_part(arch_eval *ev, arch_place p, bool is_bias, llm_arch_tensor *t,
                        arch_part *out);
/* Returns the name of the source tensor of which it is a part. */
const char *llm_arch_whole_name(const arch_part *part);
/* Records that the part is the tensor part->t. False: reported. */
bool llm_arch_take_part(arch_eval *ev, arch_place p, const arch_part *part);
/* Gives the parts their data, after all declarations. False: the parts do not make up all rows,
 * which is reported. */
bool llm_arch_place_parts(arch_eval *ev);

/* Returns the source tensor that the part is from, and its rows. */
const llm_arch_tensor *llm_arch_whole_tensor(const arch_part *part, int64_t *rows);
/* Returns how many of its rows come before the part's; known when all parts are declared. */
int64_t llm_arch_rows_before(const arch_part *part);

/* adapt.c: every function does nothing, or returns its argument, if there are no adapters. */
/* Checks the adapters of ev->params and sets ev->adapt. False: reported. */
bool llm_arch_adapt_init(arch_eval *ev);
/* Makes the input "task", if an adapter is for a task. False: reported. */
bool llm_arch_adapt_input(arch_eval *ev);
void llm_arch_adapt_fini(arch_eval *ev);
/* Takes a node that was just made, and what the model has in its place (t, or the row of a rotated table). If it computes with an adapted
 * weight, returns a node that has the adapters' part added; NULL: reported (the operator cannot be adapted). */
ggl_tensor *llm_arch_adapted(arch_eval *ev, arch_place p, ggl_tensor *t, ggl_tensor *in_place);
/* Says that in the body being built, param stands for the call's source. False: reported. */
bool llm_arch_adapt_param(arch_eval *ev, const ggl_tensor *param, const ggl_tensor *source);
/* True if t is an adapted weight, a view of one, or a gather of its matrices: a kernel that is
 * handed t would compute without the adapters. */
bool llm_arch_is_adapted(const arch_eval *ev, const ggl_tensor *t);
/* For a tensor `name` that the source lacks, so that the descriptor takes `other` in its place: if
 * an adapter has a pair for that name, returns a weight `name` with other's data, so that the pair
 * changes this use only; else `other`. NULL: reported. */
ggl_tensor *llm_arch_adapt_other(arch_eval *ev, const char *name, ggl_tensor *other);
/* Says that t is part k of the source tensor `whole`, whose pairs are applied, too. */
bool llm_arch_adapt_part(arch_eval *ev, const arch_part *part);
/* At the end of the build, when all parts are placed: gives their pairs the data, and checks that
 * every pair of every adapter was applied. False: reported. */
bool llm_arch_adapt_finish(arch_eval *ev);

/* carried.c: the rows that a loop over layers hands on */
typedef struct arch_carried {
    int n_taps, n_global;
    bool is_steered;
    int64_t n_turns; /* after which one name alone had other rows */
    ggl_tensor **
        state; /* [1 + n_taps][n_global]: what names have before the first turn, and before those of params.tap; NULL: nobody asks */
} arch_carried;
bool llm_arch_carried_begin(arch_eval *ev, arch_carried *x); /* false: reported */
/* Before and after the body of each turn; what leaves the layer is steered. False: reported. */
void llm_arch_carried_enter(const arch_eval *ev, const arch_carried *x);
bool llm_arch_carried_leave(arch_eval *ev, arch_carried *x);
/* After the last turn: sets ev->tapped and ev->left, and frees x. */
void llm_arch_carried_end(arch_eval *ev, arch_carried *x);
void llm_arch_carried_free(arch_carried *x);

/* steer.c: does nothing if there are no control vectors. */
/* True if some are to be added to what layers of the loop that begins hand on. */
bool llm_arch_steers(const arch_eval *ev);
/* Adds those of layer ev->layer to the row or rows of the slot, which leave it. NULL: it is not known which do. False: reported. */
bool llm_arch_steer(arch_eval *ev, arch_slot *slot);
/* A loop has ended of which so many turns could be steered. */
void llm_arch_steer_loop(arch_eval *ev, int64_t n_turns);
/* At the end of the build: checks that the vectors fit the number of layers. False: reported. */
bool llm_arch_steer_finish(arch_eval *ev);

/* missing.c */
/* Reports that the source lacks tensor `name`, and which of its tensors may be meant. `want`:
 * the declared shape. */
void llm_arch_missing_tensor(arch_eval *ev, arch_place p, const char *name,
                             const llm_arch_tensor *want);

/* use.c */
/* True if a name of the file can be pasted into a shell in quotes unchanged. Messages suggest
 * only such names. */
bool llm_arch_is_pasteable(const char *s, size_t n);
/* Copies the name to buf with '*' for each number between dots, up to 4, and stores the numbers.
 * Returns how many. */
int llm_arch_number_pattern(ggl_str name, char *buf, size_t size, int64_t number[4]);
/* At the end of a build: fails if there is a name that nothing reads. In language 1, which had no
 * such rule, this is a note. */
bool llm_arch_check_unused(arch_eval *ev);
/* Checks that everything declared and computed reaches one of the n outputs. */
bool llm_arch_check_use(arch_eval *ev, ggl_tensor *const *output, int n);

/* judge.c */
typedef struct arch_judge arch_judge;
/* Makes a judge for the keys of ev->src, which may change between calls of llm_arch_judge_key.
 * Keeps a pointer to ev. NULL: out of memory, in ev->status. */
arch_judge *llm_arch_judge_new(arch_eval *ev);
void llm_arch_judge_free(arch_judge *j);
/* Judges a key, given its full name; does not set file and line. If ev->status is an error
 * afterwards, the result is meaningless. */
llm_arch_judged llm_arch_judge_key(arch_judge *j, ggl_str key);

/* unread.c */
/* Adds a line to the notes about the model, unless it is there already. */
void llm_arch_note(arch_eval *ev, const char *fmt, ...) GGL_PRINTF(2, 3);
/* Checks that all keys and tensors of the source are read, harmless or ignored. False: reported. */
bool llm_arch_check_source(arch_eval *ev);
/* After another error: puts the keys that nothing reads before it. */
void llm_arch_report_keys_before(arch_eval *ev);
/* known.c: the table of keys that files have and descriptors need not read */
typedef struct arch_known arch_known;
typedef struct arch_verdict {
    bool harmless;
    const char *reason;    /* describes the key; NULL: the table has no such key */
    const arch_expr *cond; /* the row's condition, or NULL */
} arch_verdict;
/* Looks up {arch}.name, which the descriptor does not mention. An empty result: no row, or
 * ev->status is an error. */
arch_verdict llm_arch_judge_known(arch_eval *ev, ggl_str name);
/* Returns what a key of another namespace than the family's (its full name) is, if the table says that it is harmless; else NULL. */
const char *llm_arch_judge_foreign(arch_eval *ev, ggl_str key);
/* Returns the part of a model (e.g. vision) that a tensor belongs to, if text does not need it;
 * else NULL. */
const char *llm_arch_part_of_tensor(arch_eval *ev, ggl_str name);
/* True if 0 or false in this key (full name) means that it is absent. */
bool llm_arch_means_absent(arch_eval *ev, const char *name);
void llm_arch_known_free(arch_known *k);

/* build.c: llm_arch_build, with a conversion that supplies the tensors, or NULL. */
ggl_status llm_arch_build_with(const llm_arch *arch, const llm_arch_source *source,
                               const llm_arch_params *params, ggl_graph *graph,
                               llm_arch_result *result, const arch_converter *convert,
                               struct arch_conversion *conv, ggl_error *err);
#endif
