/* Architecture descriptors. A descriptor is a text that says which keys and tensors a model has and
 * what happens to one token. Building it with a source of keys and tensors gives a graph. The
 * language: docs/architectures.md.
 *
 *     llm_arch *arch;
 *     llm_arch_source src = llm_arch_source_gguf(file);
 *     ggl_graph *g = ggl_graph_new(NULL);
 *     if (llm_arch_open(&arch, "llama", &err) != GGL_OK ||
 *         llm_arch_build(arch, &src, NULL, g, NULL, &err) != GGL_OK ||
 *         ggl_graph_finish(g, &err) != GGL_OK)
 *         fprintf(stderr, "%s\n", err.msg); // file:line:column, the line, a caret
 *
 * A descriptor may come from an untrusted file: time, memory and depth are limited, and
 * exceeding a limit is an ordinary error.
 *
 * Threads: a parsed descriptor does not change, so any number may build from it at the same time; a
 * made-up model belongs to one at a time. */
#ifndef LLM_ARCH_H
#define LLM_ARCH_H

#include <string.h>

#include "ggl/gguf.h"
#include "ggl/graph.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The newest number of the language that is supported. Texts of all earlier numbers keep their
 * meaning (docs/architectures.md, Numbers of the language). */
#define LLM_ARCH_LANGUAGE 2

/* --- descriptors ------------------------------------------------------------------------------ */

typedef struct llm_arch llm_arch;

/* Parses a descriptor and checks grammar, names, calls and limits. Copies the text and `name`
 * ("llama.arch", for messages). The caller owns *out, which is NULL on failure. Fails with
 * GGL_FORMAT, GGL_LIMIT, GGL_UNSUPPORTED (a newer language) or GGL_NOMEM. A parsed descriptor
 * never changes, so any number of threads may build from it. */
GGL_NODISCARD ggl_status llm_arch_parse(llm_arch **out, const char *text, size_t n,
                                        const char *name, ggl_error *err);
GGL_INTERNAL_API void llm_arch_free(llm_arch *arch);

GGL_INTERNAL_API const char *llm_arch_name(const llm_arch *arch); /* "llama.arch" */
/* Returns the k-th name in its header, k = 0, 1, .., or NULL past the end. The names are values of a file's general.architecture, or
 * "A:KIND" for files of the architecture A whose key A.projector_type is KIND. */
GGL_INTERNAL_API const char *llm_arch_family(const llm_arch *arch, int k);
int llm_arch_n_lines(const llm_arch *arch);
/* True if the descriptor assigns this output: "logits", "embedding", "score", "guess", "rows" or "alignment". A model may lack it nevertheless. */
GGL_INTERNAL_API bool llm_arch_has_output(const llm_arch *arch, const char *name);
/* True if the model guesses for another one, of which it reads rows, and does nothing alone. */
bool llm_arch_is_draft(const llm_arch *arch);
/* True if the descriptor has a stage and tokens that read what it stores: an encoder and a decoder. */
GGL_INTERNAL_API bool llm_arch_reads_text(const llm_arch *arch);
/* True for an eye or an ear: what it reads are rows of pictures or sounds, and no text is read beside them. */
bool llm_arch_is_sense(const llm_arch *arch);
/* False if the model computes with rows alone, as an eye does. */
GGL_INTERNAL_API bool llm_arch_has_tokens(const llm_arch *arch);
/* True if the descriptor is a stage, whose texts are seen whole. */
GGL_INTERNAL_API bool llm_arch_sees_all(const llm_arch *arch);
/* Returns the name of the input whose rows the descriptor's stages read, and which no text replaces; NULL: it has none. */
const char *llm_arch_reads_rows(const llm_arch *arch);
/* Returns the name of its last stage over a text or rows, which outputs or tokens read; NULL: it has none. */
const char *llm_arch_last_stage(const llm_arch *arch);
/* Returns the descriptor's text, which it owns, and its length *n. */
GGL_INTERNAL_API const char *llm_arch_text(const llm_arch *arch, size_t *n);

/* Sets name and text of the k-th built-in descriptor, ordered by name. False: past the end. */
GGL_INTERNAL_API bool llm_arch_builtin(int k, const char **name, const char **text, size_t *n);
/* Parses the built-in descriptor whose header names this family. GGL_NOT_FOUND if none;
 * the message suggests the nearest name. */
GGL_NODISCARD ggl_status llm_arch_open(llm_arch **out, const char *family, ggl_error *err);
/* Finds a built-in descriptor by its file name, with or without ".arch". False if none. */
bool llm_arch_builtin_named(const char *name, const char **file, const char **text, size_t *n);
/* Parses the descriptor that a user names: a file or, if there is no such file, a built-in one, by its name or that of a family.
 * Sets *builtin (may be NULL) to which it was. GGL_NOT_FOUND: it is neither; GGL_IO, GGL_FORMAT, GGL_LIMIT. */
GGL_INTERNAL_API GGL_NODISCARD ggl_status llm_arch_open_given(llm_arch **out, const char *given,
                                                              bool *builtin, ggl_error *err);

/* --- where keys and tensors come from --------------------------------------------------------- */

typedef enum llm_arch_type { LLM_ARCH_NUMBER, LLM_ARCH_BOOL, LLM_ARCH_STRING } llm_arch_type;

typedef struct llm_arch_key {
    llm_arch_type type; /* of the value, or of a list's elements */
    bool is_list;
    uint64_t n;         /* number of elements; 1 if not a list */
    const void *handle; /* for the source's own use */
} llm_arch_key;

typedef struct llm_arch_item {
    double number;
    bool flag;
    ggl_str string;
} llm_arch_item;

typedef struct llm_arch_tensor {
    const char *name;
    bool optional; /* declared with '?', 'bias?' or '??' */
    bool is_asked; /* only its size is asked for: size("NAME") */
    bool is_extra; /* the descriptor does not declare it: a made-up model has none */
    /* In: as declared (made-up sources use this). Out: as the source has it. */
    ggl_type type;
    int n_dims;
    int64_t ne[GGL_MAX_DIMS]; /* innermost first; 1 beyond n_dims */
    /* Borrowed until the graph is freed; NULL if only the file's table was read. */
    const void *data;
} llm_arch_tensor;

/* A source of keys and tensors. It must outlive the graph, whose weights point into it. */
typedef struct llm_arch_source {
    void *ctx;
    const char *name; /* "model.gguf", for messages */
    bool (*find_key)(void *ctx, const char *name, llm_arch_key *out);
    bool (*get_item)(void *ctx, const llm_arch_key *key, uint64_t i, llm_arch_item *out);
    /* In: *t has the name and the declared shape. True: the source has it; sets type, shape and
     * data. */
    bool (*find_tensor)(void *ctx, llm_arch_tensor *t);
    /* The name of the i-th key or tensor, false past the end, for the check that nothing is
     * unread. NULL: no such check, and `a, b from "ab"` is not used. */
    bool (*key_at)(void *ctx, size_t i, ggl_str *name);
    bool (*tensor_at)(void *ctx, size_t i, ggl_str *name);
    /* May be NULL. Reports that a `require` needs this value, or the key to be absent (item
     * NULL). "n_ctx" is no key: the context should have that length. A made-up model stores the
     * request and is built again. */
    void (*require_key)(void *ctx, const char *name, const llm_arch_item *item);
    /* May be NULL. Reports that building fails because the source lacks the key of this full name. */
    void (*lacks_key)(void *ctx, const char *name);
    /* May be NULL. True if the user gave the i-th key its value, so that it must be read, and not only known. */
    bool (*is_changed)(void *ctx, size_t i);
    /* The source of tensors that this one lacks, and what says whether a tensor is one of these; NULL: it has all itself. */
    const struct llm_arch_source *other;
    bool (*is_lent)(void *ctx, const char *name);
} llm_arch_source;

GGL_INTERNAL_API llm_arch_source llm_arch_source_gguf(const ggl_gguf *file);

/* True for a file whose weights are stored rotated: they are not the numbers that the model computes with, so that only models may read them. */
bool llm_arch_is_file_rotated(const ggl_gguf *file);

/* Begins the names of tensors that a draft reads from the model for which it guesses; its own file has none of these. */
#define LLM_ARCH_OF_TARGET "target:"
static inline bool llm_arch_is_of_target(const char *name) {
    return strncmp(name, LLM_ARCH_OF_TARGET, sizeof LLM_ARCH_OF_TARGET - 1) == 0;
}

/* A model's file, and that of another model: for a token embedding that it lacks, and for tensors that it names "target:NAME". */
typedef struct llm_arch_two {
    llm_arch_source own, other;
} llm_arch_two;
GGL_INTERNAL_API llm_arch_source llm_arch_source_two(llm_arch_two *x); /* which must live as long */

/* Returns the name of the k-th of the stages over rows that other stages or tokens read, in the order in which they run; NULL: there are
 * no more. */
const char *llm_arch_rows_stage(const llm_arch *arch, int k);

/* --- building --------------------------------------------------------------------------------- */

/* Patterns for full names of keys and tensors ('*' matches anything) that the descriptor need
 * not read, at the user's own risk. They have no effect on a key or tensor that it reads. The
 * notes list what was ignored, and patterns that match nothing. */
typedef struct llm_arch_ignore {
    const char *const *key, *const *tensor;
    size_t n_key, n_tensor;
    bool is_fixed;    /* the caller takes no patterns, so messages propose none */
    bool are_members; /* messages name members of llm_open_params in place of flags */
} llm_arch_ignore;

/* A low-rank adapter or a control vector (llm/internal/adapter.h), and how strongly it is applied. */
typedef struct llm_adapter llm_adapter;
typedef struct llm_adapter_use {
    const llm_adapter *adapter; /* borrowed until the graph is freed */
    double scale;               /* finite; 0: as without the adapter, bit for bit */
    int task; /* > 0: counts only for tokens of this task, by the graph's input "task"; 0: for all */
    bool
        varies; /* the task is its own, and its share is the scale, which tokens may change (llm_batch.share) */
    /* It also has pairs for another file, the eye or ear beside a text model, or that text model: pairs of tensors that this file lacks are no error.
     * llm_adapter_check finds out. */
    bool beside;
    /* Of a control vector: the first and the last layer to which it is added; 0: the first and the last that it has directions for. Layers are counted from 0,
     * and nothing is added to layer 0. */
    int64_t first, last;
} llm_adapter_use;

enum { LLM_ARCH_MAX_TASKS = 64 };

enum {
    LLM_ARCH_MAX_TAPS = 16,
    LLM_ARCH_MAX_SOURCES = 16,
    /* Rows that a model tells another one besides those that enter its layers: the state that the last product makes the
     * logits from; keys and values, side by side, of the last attention with a window, and of the last without. */
    LLM_TAP_STATE = -1,
    LLM_TAP_WINDOW = -2,
    LLM_TAP_ALL = -3
};

enum {
    LLM_ARCH_TEXT = 64
}; /* bytes of a text beside rows, with its NUL; {n} in it is the end of a line */

typedef enum llm_arch_sound_scale {
    LLM_SCALE_SLANEY, /* common/mel_bands.h */
    LLM_SCALE_HTK
} llm_arch_sound_scale;

typedef enum llm_arch_sound_log {
    LLM_LOG_TEN,    /* of 10, of the power or `least`, whichever is larger */
    LLM_LOG_E,      /* of e */
    LLM_LOG_E_ADDED /* of e, of the power plus `least` */
} llm_arch_sound_log;

typedef enum llm_arch_sound_level {
    LLM_LEVEL_LARGEST, /* at most `range` below the largest of the sound; plus 4, divided by 4 */
    LLM_LEVEL_BANDS, /* less the band's mean in the whole steps of the sound, over its deviation there; rows behind these are 0 */
    LLM_LEVEL_NONE
} llm_arch_sound_level;

typedef enum llm_arch_sound_edges {
    LLM_EDGES_BEGIN, /* mirrored before the sound, zeros behind it */
    LLM_EDGES_BOTH,  /* mirrored on both sides */
    LLM_EDGES_ZEROS
} llm_arch_sound_edges;

/* A tensor of the file; NULL: none. Valid as long as the source. */
typedef struct llm_arch_weights {
    const void *data;
    ggl_type type;
} llm_arch_weights;

/* Sound that becomes rows, one for each `step` of its samples: of the `window` samples around it (a Hann window), the logarithm of what is in each of the row's bands,
 * which reach from 0 to half of the rate evenly on a scale of pitch (docs/architectures.md, "Stages"). What is longer than the input's rows is heard in
 * windows of so many. */
typedef struct llm_arch_sound {
    int64_t rate, window, step; /* samples per second; samples */
    int64_t fft;                /* samples of the transform: zeros follow the window */
    bool is_samples; /* a row is `step` samples as they are, and what follows says nothing */
    llm_arch_sound_scale scale;
    bool magnitude, symmetric; /* in place of the power; Hann's window */
    llm_arch_sound_log log;
    llm_arch_sound_level level;
    llm_arch_sound_edges edges;
    double range, least, emphasis;
    double largest; /* the logarithm that counts as the largest; NAN: the largest of the sound */
    /* Samples of silence before a sound, those of which it is filled up to whole ones, and those behind that. */
    int64_t lead, unit, trail;
    int64_t
        added; /* its rows are added to the tokens of a text, from the first one on: so many of them are the sound's; 0: rows stand in place of tokens */
    int64_t shortest; /* samples: zeros follow those of a shorter sound */
    int64_t needs;    /* there is a row r if the sound has r * step + needs samples */
    int64_t
        after; /* so many rows of the silence behind a sound follow its rows, as far as the window goes; stages that say so read them */
    bool
        whole; /* the last window is filled with silence; else it has the rows that show the sound */
    bool apart;                                    /* each window is a sound of its own */
    char begin[LLM_ARCH_TEXT], end[LLM_ARCH_TEXT]; /* texts around the rows in a prompt */
    llm_arch_weights filters; /* [bands][fft / 2 + 1]: the weight of each frequency in each band */
    llm_arch_weights taper;   /* [window], in place of Hann's */
} llm_arch_sound;

enum { LLM_ARCH_SPEECH_SECONDS = 30 };

/* How a text model with an ear is asked to write down what is said, and how its answer is read: a speech section of the ear's descriptor (docs/architectures.md,
 * "Speech sections"). Texts are templates (template.h) with the variables sound, language, language_name, prompt and task; NULL: the section has none. */
typedef struct llm_arch_speech {
    const char **token; /* [n_token]: special tokens that the text model must have */
    int n_token;
    const char *prompt; /* the whole text; NULL: the chat template makes it of these messages: */
    const char *system, *user;
    const char *answer; /* with which the answer begins */
    const char *after;  /* what is said comes after this text in an answer that has it */
    const char *names;  /* in what comes before that, the text before a language's name */
    const char *
        *before; /* [n_before]: texts that may come before what is said, which then is in quotes */
    int n_before;
    double longest; /* seconds of a sound that is heard at once */
    struct llm_arch_speech *next;
} llm_arch_speech;

/* The sections of a descriptor, and the prelude's after them. NULL: there are no more. */
const llm_arch_speech *llm_arch_speech_first(const llm_arch *a);
const llm_arch_speech *llm_arch_speech_next(const llm_arch *a, const llm_arch_speech *s);

/* How a picture is brought to the size that a model sees; in docs/architectures.md, "Stages". */
typedef enum llm_arch_fit {
    LLM_FIT_STRETCH, /* to size x size */
    LLM_FIT_PAD,     /* to fit into size x size, in the middle of it */
    LLM_FIT_CROP,    /* the shorter side to size, and the middle size x size of that */
    LLM_FIT_FOLLOW, /* near its own size: sides of whole blocks, with `least` to `most` pixels; stretched */
    LLM_FIT_FOLLOW_PAD, /* the same, but to fit into it, in the middle */
    LLM_FIT_LONGEST, /* no side longer than size, made smaller if need be, and rounded up to whole blocks; stretched */
    LLM_FIT_AREA, /* about size * size pixels in its own shape, sides of whole blocks; stretched */
    LLM_FIT_ASPECT, /* near its own size, made smaller for `most` pixels: sides of whole blocks, each rounded up or down, in the nearest shape; stretched */
    LLM_FIT_FILL, /* as large as it can be in its own shape: sides of whole blocks, rounded down, with `most` pixels at most; stretched */
    LLM_FIT_STEPS, /* its own size, or smaller by steps of a fiftieth of it, until it has at most `most` pixels: sides rounded up to whole blocks; stretched */
    LLM_FIT_PATCHES, /* as large as it can be with as many patches as are whole in it, but at least and at most those of `least` and `most` pixels: sides rounded up to whole blocks; stretched */
    LLM_FIT_WITHIN, /* its own size, made smaller if its whole patches have more than `most` pixels, or a side more than `size`; in whole blocks, at their left and top */
    LLM_FIT_PIL_PAD, /* as PAD, rounded as Pillow's ImageOps.pad does */
    LLM_FIT_TOKENS, /* its own size, at least `least` pixels, made smaller until at most `most` tokens stand for it: sides of whole patches, the last blocks filled; the rest of its shape is `color` */
    LLM_FIT_CANVAS /* its own size, at the left and top of the whole blocks around it; larger if it has less than `least` pixels, smaller if the blocks have more than `most` */
} llm_arch_fit;

/* True for fits with a number of pixels, `most`; the others have a size. */
static inline bool llm_arch_fit_is_counted(llm_arch_fit fit) {
    return fit == LLM_FIT_FOLLOW || fit == LLM_FIT_FOLLOW_PAD || fit == LLM_FIT_ASPECT ||
           fit == LLM_FIT_FILL || fit == LLM_FIT_STEPS || fit == LLM_FIT_PATCHES ||
           fit == LLM_FIT_WITHIN || fit == LLM_FIT_TOKENS || fit == LLM_FIT_CANVAS;
}

/* How the values between pixels are computed. */
typedef enum llm_arch_resize {
    LLM_RESIZE_LINEAR, /* of two by two pixels, corners on corners, cut off to a byte */
    LLM_RESIZE_CUBIC, /* Lagrange's polynomial through four by four pixels, pixel i at i * from / to, rounded to a byte */
    LLM_RESIZE_PIL_LINEAR, /* as Pillow's resize: a filter as wide as a new pixel, BILINEAR, */
    LLM_RESIZE_PIL_CUBIC,  /* BICUBIC */
    LLM_RESIZE_PIL_LANCZOS /* or LANCZOS */
} llm_arch_resize;

/* How the positions between the entries of a table are made, for a table of table x table entries over the patches of a picture. */
typedef enum llm_arch_between {
    LLM_BETWEEN_CORNERS, /* of two by two entries, the corners of the table on those of the picture */
    LLM_BETWEEN_LINEAR,      /* of two by two entries, the edges on the edges */
    LLM_BETWEEN_LINEAR_ZERO, /* the same, with zeros around the table */
    LLM_BETWEEN_CUBIC,       /* of four by four: Keys' convolution with -3/4 */
    LLM_BETWEEN_WIDE /* of all entries that a patch covers, as LLM_RESIZE_PIL_LINEAR has pixels: shares of all entries of the table */
} llm_arch_between;

/* How the grid of a picture's tiles is chosen: parts of it that the model sees apart, besides the whole. */
typedef enum llm_arch_tiling {
    LLM_TILES_NONE,
    LLM_TILES_FIT, /* if a side is longer than `size`: the grid in which the picture is largest, and of these the smallest */
    LLM_TILES_LONGEST, /* always: as many as it takes when the longer side has `most` pixels */
    LLM_TILES_SHAPE, /* above size * size pixels: about as many tiles as these take, at most `most`, in the grid that is nearest to the picture's shape; a
                       tile has about size * size pixels in its own shape */
    LLM_TILES_RATIO, /* above `above` pixels, its sides rounded to blocks: the grid of `least` to `most` tiles whose width / height is nearest to the picture's; of equally
                       near ones, the largest of less than twice the picture's pixels, or the smallest */
    LLM_TILES_WINDOWS /* windows of `size` pixels, or of the shorter side of a long picture: as many as its sides take, each of them rounded up from a fifth of a window
                         on; each is made `size` large */
} llm_arch_tiling;

enum { LLM_ARCH_MAX_GRIDS = 64, LLM_ARCH_MAX_TILES = 256 };

/* In the texts, {n} is the end of a line; in `tile`, {y} and {x} are its place in the grid, from 1. */
/* Returns the number of the row that a text names where it begins, as {0} to {9} do; -1: none. */
static inline int llm_arch_row_named(const char *text) {
    return text[0] == '{' && text[1] >= '0' && text[1] <= '9' && text[2] == '}' ? text[1] - '0'
                                                                                : -1;
}

typedef struct llm_arch_tiles {
    llm_arch_tiling by;
    int64_t least, most;
    int64_t size; /* of RATIO and WINDOWS: pixels of a tile's side; the others have the picture's */
    double above; /* of RATIO; 0: a picture is seen in tiles if a side is longer than `size` */
    int n_grid;
    int32_t grid
        [LLM_ARCH_MAX_GRIDS]
        [2]; /* of FIT: tiles across and down; without any, all grids of `least` to `most` tiles */
    llm_arch_fit fit; /* of the picture into the grid: STRETCH or PAD */
    llm_arch_resize resize;
    uint8_t color[3];
    bool whole_first; /* before the tiles; else after them */
    bool always;      /* of FIT: also of a small picture */
    bool woven;    /* all tiles are one part, whose rows stand line by line, through all of them */
    bool in_lines; /* each is a part; their rows stand line by line, through all tiles of a line */
    bool unpad;    /* without the rows that show only what is around the picture */
    char begin[LLM_ARCH_TEXT], end[LLM_ARCH_TEXT];     /* before and after all tiles */
    char tile[LLM_ARCH_TEXT], tile_end[LLM_ARCH_TEXT]; /* before and after each */
    char next[LLM_ARCH_TEXT], line[LLM_ARCH_TEXT]; /* between two of a line, between two lines */
    char whole[LLM_ARCH_TEXT], whole_end[LLM_ARCH_TEXT];
    char beside[LLM_ARCH_TEXT];   /* in place of `whole`, where there are tiles; "": `whole` */
    char line_end[LLM_ARCH_TEXT]; /* behind each line of a tile's rows; "": the picture's */
} llm_arch_tiles;

/* True if tiles have a size of their own, `size`. */
static inline bool llm_arch_tiles_sized(const llm_arch_tiles *t) {
    return t->by == LLM_TILES_RATIO || t->by == LLM_TILES_WINDOWS;
}

enum { LLM_ARCH_MAX_INNER = 2, LLM_ARCH_MAX_ROW_MARKS = 10 };

/* A picture that becomes rows, one for each patch of patch x patch pixels, [patch, patch, 3]: x within the patch first, then y, then red,
 * green and blue. A value is (byte / 255 - mean) / std. */
typedef struct llm_arch_picture {
    int64_t patch; /* 0: the input is not from a picture */
    int64_t size;  /* of the other fits: pixels of a side */
    int64_t block; /* patches of a side of a block, whose rows stand together; 1: no blocks */
    int64_t inner
        [LLM_ARCH_MAX_INNER]; /* the same of the smaller squares of which a block consists, and of those in these; 0 or 1: none */
    llm_arch_fit fit;
    llm_arch_resize resize;
    int64_t
        longest; /* what is larger is first made so small that no side has more pixels; 0: nothing is */
    int64_t
        thin; /* what has a shorter side of less pixels, and less than a quarter of the longer one, first becomes a square, with `color` at the right or below */
    int64_t least, most; /* of fits with a number of pixels */
    uint8_t color[3];    /* around what is padded: red, green, blue */
    double mean[3], std[3];
    int64_t first; /* so many rows of zeros before those of the patches */
    bool
        cells; /* of a table: a patch's entry is that of the cell in which it begins, not those around it */
    int64_t
        origin; /* 0 or 1: the first line and column as the descriptor sees them; `first` rows are at 0 */
    int64_t table; /* side of a table of positions, between whose entries the places are; 0: none */
    llm_arch_between between;
    double
        widened; /* so much of a patch more, across and down, counts where places between entries are found; not of CORNERS and WIDE */
    bool
        crossed; /* the n-th patch, line by line, has the positions of the n-th one of a picture with as many lines as this one has columns */
    char begin[LLM_ARCH_TEXT], end[LLM_ARCH_TEXT]; /* texts around the rows in a prompt */
    char or_begin[LLM_ARCH_TEXT],
        or_end
            [LLM_ARCH_TEXT]; /* in their place, for models that lack the first token of begin, and have that of or_begin; "": none */
    char line[LLM_ARCH_TEXT];     /* between two lines of rows */
    char line_end[LLM_ARCH_TEXT]; /* behind each of them */
    int n_marks; /* so many of the first rows that are made stand only where a text has {0}, {1} .. */
    int64_t
        pairs; /* two lines of rows stand in a text column by column, and begin and end at multiples of so many tokens; 0: they stand line by line */
    char fill[LLM_ARCH_TEXT]; /* of pairs: the row that stands where there is none */
    int64_t
        wide; /* of TOKENS: what is wider than so many times its height is squeezed; 0: nothing is */
    bool in_turn; /* in a text, its rows have one place after the other, as words have */
    bool at_once; /* or all the same, so that the picture takes one */
    llm_arch_tiles tiles;
} llm_arch_picture;

/* Returns how many entries of its table a patch has shares of. */
static inline int64_t llm_arch_picture_entries(const llm_arch_picture *p) {
    return p->between == LLM_BETWEEN_WIDE    ? p->table * p->table
           : p->between == LLM_BETWEEN_CUBIC ? 16
                                             : 4;
}

/* How many tokens stand for a picture of so many cells in pairs of lines, at the most: with what is before them, between lines and behind the last. */
static inline int64_t llm_arch_picture_tokens(const llm_arch_picture *p, int64_t nx, int64_t ny) {
    const int64_t in_lines = (ny + 1) / 2 * 2 * (nx + 1);
    return 2 + (in_lines + p->pairs - 1) / p->pairs * p->pairs + p->pairs - 1;
}

/* True for fits that make each picture a square of `size`. */
static inline bool llm_arch_fit_is_square(llm_arch_fit fit) {
    return fit == LLM_FIT_STRETCH || fit == LLM_FIT_PAD || fit == LLM_FIT_CROP ||
           fit == LLM_FIT_PIL_PAD;
}

/* True if the rows of each picture, and of each tile, are those of a square, line by line. */
static inline bool llm_arch_picture_is_plane(const llm_arch_picture *p) {
    return p->patch > 0 && p->block == 1 && p->first == 0 && llm_arch_fit_is_square(p->fit) &&
           !p->tiles.woven;
}

/* Rows of an input that the caller prepares, or those that a stage over rows returns. */
typedef struct llm_arch_rows_of {
    const char *name;         /* owned by the descriptor */
    int64_t ne[GGL_MAX_DIMS]; /* of a row */
    int n_dims;
    bool is_input;
    llm_arch_sound sound;     /* of such an input; rate 0: it is not from sound */
    llm_arch_picture picture; /* of such an input; patch 0: it is not from a picture */
    int64_t most;             /* how many rows there are at most; 0: the descriptor does not say */
    /* Of a stage: its row i reads the row i * every + from of this one, which stands before it in the list. */
    int over;
    int64_t every, from;
    int64_t count; /* it has no more rows than that; 0: as many as there are */
    int64_t
        block; /* rows come in blocks of so many, which see no others; 0: they do not. The last block is filled with zeros, and what is made of these is read by stages in blocks alone */
    int64_t
        ends; /* 1: it has a row more before the first one and behind the last one, for which there is nothing to read */
    int64_t
        beyond; /* 1: it reads and makes rows of what follows a sound, too; others read none of these */
    int64_t
        windows; /* it reads them in the order of squares of a picture, of so many lines and columns of patches; 0: in their own */
    bool
        filled; /* all these squares are whole: beyond the picture's edges they have rows of zeros, and what is made of those is dropped */
    bool is_plane; /* its rows are all those of a square, line by line */
    bool
        asks; /* as many rows of zeros run behind those that it reads, and what is made of these alone is its result */
    int64_t step; /* of a plane: it has the rows of each step-th line and column; 0 or 1: all */
    bool causal;  /* its rows see themselves and earlier ones, so that they run in pieces */
} llm_arch_rows_of;

/* The lines and columns of n rows of a plane: a square's, or a line of rows that are no square's. */
typedef struct llm_arch_plane {
    int64_t ny, nx;
} llm_arch_plane;
static inline llm_arch_plane llm_arch_plane_of(int64_t n) {
    int64_t side = 0;
    while (side * side < n)
        side++;
    const llm_arch_plane square = {side, side}, line = {1, n};
    return side * side == n ? square : line;
}
/* Returns how many of n lines, or columns, are each step-th one. */
static inline int64_t llm_arch_steps(int64_t n, int64_t step) {
    return (n + step - 1) / step;
}

/* Returns how many rows the stage has of a block. */
static inline int64_t llm_arch_rows_each(const llm_arch_rows_of *x) {
    return (x->block + x->every - 1) / x->every;
}

/* Returns how many rows the stage makes over n rows of what it is over. */
static inline int64_t llm_arch_rows_over(const llm_arch_rows_of *x, int64_t n) {
    if (x->block > 0)
        return (n + x->block - 1) / x->block * llm_arch_rows_each(x);
    if (x->step > 1) {
        const llm_arch_plane p = llm_arch_plane_of(n);
        return llm_arch_steps(p.ny, x->step) * llm_arch_steps(p.nx, x->step);
    }
    const int64_t all = n > x->from ? (n - x->from + x->every - 1) / x->every : 0;
    return (x->count > 0 && all > x->count ? x->count : all) + (all > 0 ? 2 * x->ends : 0);
}

typedef struct llm_arch_params {
    size_t size;   /* sizeof(llm_arch_params): ggl/internal/params.h */
    int64_t n_ctx; /* value of the name `n_ctx`; 0: the graph's n_pos */
    /* Of a model whose tokens read a stage over rows: at most so many rows; 0: what the descriptor says (llm_arch_rows_of.most),
     * or else n_ctx. */
    int64_t n_read;
    /* Value of the name `n_vocab`. 0: {arch}.vocab_size, else the number of
     * tokenizer.ggml.tokens, else token_embd's rows. */
    int64_t n_vocab;
    llm_arch_ignore ignore;
    /* Applied all together. If some are for tasks, the graph has an input "task" [n] f32 for each token: which share of each task's change
     * it gets. */
    const llm_adapter_use *adapter;
    size_t n_adapters;
    /* [pairs of adapter[0]] (NULL: not asked for): set to true for those that change the model. */
    bool *used;
    /* Also makes the output "embedding": what the product with the matrix of the output reads, mostly the
     * normalized state after the last layer. GGL_UNSUPPORTED if the logits come from no such product. */
    bool embedding;
    /* Also makes the output "alignment": of each token, and of each of some heads, the share of attention that it gives to each row of the
     * stage that tokens read, [heads][rows], rows as many as n_read or more. GGL_UNSUPPORTED: the descriptor does not give it. */
    bool alignment;
    /* Also makes the output "rows" [llm_arch_result.n_row]: of each token, what the stage that guesses reads of the token
     * before. GGL_UNSUPPORTED: the model has no such stage. */
    bool rows;
    /* Makes the output "rows" of other rows: those that enter the layers tap[n_taps] (counted from 0; their number: what leaves the last; or
     * LLM_TAP_ ..), side by side, for a model that
     * guesses for this one. GGL_UNSUPPORTED: layers hand on more than one row, or it has no such rows; GGL_LIMIT: there is no such layer, or more than
     * LLM_ARCH_MAX_TAPS. */
    const int32_t *tap;
    int n_taps;
    /* Makes the inputs "given_row" (f32 [n_given]) and "is_given" (f32): where the latter is not 0, the former is the value of
     * given(x). GGL_UNSUPPORTED: the descriptor has none. */
    bool given;
    /* Of the outputs "logits", "embedding", "score", "rows", "guess" and "alignment", those that the descriptor gives, only this one is
     * made; or only the output "rows" of the stage of this name, which other stages or tokens read (llm_arch_rows_stage). NULL: all, but no embedding of a model with logits and no alignment unless they are asked for, and no guess. "guess" [n_vocab]
     * is made from the inputs "token", "pos", "slot" and "row" (f32 [n_row]), with an output "rows", which guesses of the
     * token after that one read in its place. GGL_UNSUPPORTED: the model does not have it. */
    const char *only;
    /* Of a model whose tokens read a stage. read_only: only the output "rows" is made, of each row of the stage what tokens read of it: keys and values of
     * each cache, in the order in which tokens read them first, all heads of one behind the other. n_reads > 0: the tokens read n_reads texts, of n_read rows
     * each, that the program keeps. Then the stage is not computed, and for cache K, from 0 on, there are the weights "read.K.keys" [d, n_read, heads * n_reads] and
     * "read.K.values" [n_read, e, heads * n_reads], f32 and without data, and for each token the inputs "read.end" (i32), how many rows its text has, and
     * "read.heads.H.G" (i32 [H]), for queries of H heads and keys of G: which of these matrices each reads, the text's number times G, plus h / (H / G).
     * GGL_UNSUPPORTED: there is no such stage, or a token reads it by more than queries, keys and values. */
    bool read_only;
    int64_t n_reads;
    /* Of several layers that guess, the one that "guess" is made from, counted from 0 (llm_arch_result.n_guess_layers).
     * GGL_LIMIT: there is no such layer. */
    int guess_layer;
    /* May be NULL. Called for each tensor i of the source that nothing reads. part (valid during
     * the call): the part of the model that it belongs to if text does not need it ("a vision
     * tower"). part NULL: an unread tensor is an error, unless it is ignored. */
    void (*unread)(void *ctx, size_t i, const char *part);
    void *ctx;
    /* May be NULL, for the error of the first tensor that the source lacks. Otherwise called once for each
     * of them (name: valid during the call), and building goes on as if it were there, of type f32 and
     * without data: a graph that cannot be run, made to find all that is missing. */
    void (*missing)(void *ctx, const char *name);
    /* May be NULL. Called for each weight whose products are multiplied by a factor, the tensor NAME.scale
     * for the weight NAME.weight, as `linear(x, w) * s` does. factor NULL: not all products are multiplied
     * by it, or not in this way. */
    void (*scaled)(void *ctx, const char *weight, const char *factor);
} llm_arch_params;

typedef enum llm_arch_line {
    LLM_ARCH_LINE_RAN = 1,   /* the statement ran */
    LLM_ARCH_LINE_TAKEN = 2, /* an `if`: its condition held */
    LLM_ARCH_LINE_PASSED = 4 /* an `if`: no arm was taken */
} llm_arch_line;

/* An output of a graph. */
typedef struct llm_arch_output {
    int64_t n; /* length of its rows; 0: the graph does not have it */
    bool
        one_row; /* only row `row` of a text is meant; -1: the last one. Otherwise each row has its own. */
    int64_t row;
} llm_arch_output;

typedef struct llm_arch_result {
    const char *family; /* the header's name that the model has; owned by the descriptor */
    int64_t n_vocab;
    int64_t n_embd; /* length of the output "embedding"; 0 if none */
    llm_arch_output logits, embedding, score, guess, rows, alignment;
    int64_t n_row; /* length of the output "rows" and of the input "row"; 0: the graph has none */
    /* Guesses for another model, from rows that enter its layers tap[n_taps]: length of the input "features" (f32), and those of the token
     * before are read; in an element with the input "given" (f32) not 0, the input "row" counts in place of what is made from them. 0: none. */
    int64_t n_feature;
    int32_t tap[LLM_ARCH_MAX_TAPS];
    int n_taps;
    bool from_second; /* the first token of a text is not among those of the stage that guesses */
    /* How many layers guess: number k (llm_arch_params.guess_layer) is made to guess after k guesses of those before it. It reads, with each token,
     * "rows" of layer k - 1 of the token before; or, if guess_apart, the model's "rows" of the token k + 1 before. Layer 0 reads the model's of the
     * token before in both cases. 0: none guesses. */
    int n_guess_layers;
    bool guess_apart;
    /* Further guesses are made in the place of the first: the element runs again with the features that it had, the newest guess as its token, and
     * "rows" of the last run as its row. */
    bool guess_stays;
    /* Guesses are made all at once, in a block of at most so many elements behind those of the text: its newest token and then masks, whose scores are
     * those of the guesses. The elements of a block have the input "given" 1 and "end" (i32) the number of elements with the block, all of which
     * they see; the others have 0 and 0. There is no input "row". States are zeros at its beginning. 0: they are made one after the other.
     * guess_first: which element of the block has the first guess, 0 or 1. */
    int64_t n_guess_block;
    int guess_first;
    /* Guesses of a block are made in turn: layer 0 makes "rows" of its elements at once, and layer 1 "guess" of one after the other, from that
     * row (the input "row") and the guess before, or for the first guess the newest token (the input "before", i32). */
    bool guess_in_turn;
    /* Behind the guess.n scores, "guess" has: guess_names, the tokens that they are, guess.n numbers; guess_chance, the chance that the likeliest
     * is right, one number. */
    bool guess_names, guess_chance;
    /* The tokens that guesses are, a weight [guess.n] of i32 or i64, owned by the graph; NULL: guess.n is n_vocab. */
    const ggl_tensor *guess_token;
    /* The descriptor is a stage: each token sees all tokens of its text, so a text runs whole, in one batch,
     * and the graph has the input "end" (i32): the number of tokens of each token's text. */
    bool sees_all;
    bool is_causal; /* the graph is that of a stage over rows whose rows see earlier ones alone */
    /* The descriptor has a stage besides its tokens, and these read it (ggl_rows). The names of the stage's inputs
     * begin with "stage."; if the graph has no outputs but the stage's, sees_all is set, and tokens are not computed. */
    bool reads_text;
    /* Inputs and stages over rows, in the order in which they run. The graph of a stage has the inputs "pos", "slot", "end", and of the
     * rows of its source "rows.NAME", or "rows.NAME.FIRST.K": the K rows from the one at FIRST on, from the row that it reads, those
     * that do not exist being zeros. If tokens read the last stage, all these names begin with "stage.". */
    llm_arch_rows_of source[LLM_ARCH_MAX_SOURCES];
    int n_sources;
    int64_t n_given; /* numbers of a row that stands for a token; 0: the descriptor takes none */
    int64_t n_given_more; /* numbers of such a row behind these, for the input "given_more" */
    /* With params.given, the graph may have the inputs pos.t, pos.y, pos.x, pos.line, pos.column and pos.picture (i32): the place of each token in a text with pictures. */
    bool has_places;
    /* Types that tokens may have, in the input "type" (i32), or "stage.type" of a stage's: which of the texts side by side a token is of. 0 or
     * 1: there is no such input. */
    int64_t n_token_types;
    /* With params.given, the graph has the input "end" (i32): how many elements of its slot an element sees, its own position + 1 for a
     * token. Rows of a picture see it whole; beyond windows, too, if it has the input "begin" (i32): the position of a picture's first row, and a token's own. */
    bool given_together;
    /* With params.given: a row is added to x of given(x, added = 1), and does not take its place. */
    bool given_added;
    /* Turns of the layer loop. Nodes before it have group -1, those in it 0 .. n_layer - 1,
     * those after it n_layer. */
    int64_t n_layer;
    char *notes; /* warnings, one per line, each with a newline; NULL: none */
    /* [llm_arch_n_lines]: bits of llm_arch_line for the statements that begin in each line */
    uint8_t *line_ran;
} llm_arch_result;

/* Builds a model's graph: makes the inputs "token", "pos" and "slot" (i32, one element per token
 * of the batch), the nodes and the outputs "logits" [n_vocab], "embedding" [n_embd] and "score", as far
 * as the descriptor has them, in `graph`, which must be new and
 * which the caller finishes. Checks that every key and tensor of the source is known and that
 * every value reaches an output. params and result may be NULL. The caller frees *result, which
 * is valid after a failure too, with llm_arch_result_fini. Fails with GGL_FORMAT (descriptor and
 * model do not fit), GGL_LIMIT, GGL_SHAPE or GGL_NOMEM. */
GGL_INTERNAL_API GGL_NODISCARD ggl_status llm_arch_build(const llm_arch *arch,
                                                         const llm_arch_source *source,
                                                         const llm_arch_params *params,
                                                         ggl_graph *graph, llm_arch_result *result,
                                                         ggl_error *err);
GGL_INTERNAL_API void llm_arch_result_fini(llm_arch_result *result);
/* Copies the tokens that guesses are (llm_arch_result.guess_token) to *out, which the caller frees by ggl_free. GGL_FORMAT: one is not in the vocabulary of
 * n_vocab, or the tensor has another type; GGL_UNSUPPORTED: its data was not read; GGL_NOMEM. On failure *out is NULL. */
GGL_INTERNAL_API GGL_NODISCARD ggl_status llm_arch_guess_tokens(int32_t **out, const ggl_tensor *t,
                                                                int64_t n_vocab, ggl_error *err);

/* How a key of the source is judged when the descriptor is built (docs/gguf.md, "How keys are
 * judged"). */
typedef enum llm_arch_use {
    LLM_ARCH_ENGINE, /* read by the engine or the tokenizer, or general information */
    LLM_ARCH_READ,   /* read by the descriptor or a function it calls, in `line` of `file` */
    /* Ignored by the descriptor, in `line` of `file`. `reason`: the condition, if it depends on
     * more than keys, else NULL. */
    LLM_ARCH_IGNORED,
    LLM_ARCH_HARMLESS, /* not read, without effect on the logits; `reason` says why */
    LLM_ARCH_UNREAD,   /* not read, an error; `reason`: what the key does, or NULL */
    LLM_ARCH_FOREIGN   /* of another namespace, and harmless; `reason` says why */
} llm_arch_use;

typedef struct llm_arch_judged {
    ggl_str key;
    llm_arch_use use;
    bool is_foreign; /* it is neither the family's nor of a namespace that the engine reads */
    const char *file;
    int line;
    const char *reason;
    /* For an unread key: the key that the user may have meant, without "{arch}.". The descriptor reads it and owns the name, and the
     * source lacks it. NULL: none is near, or 20 other keys were unread before. */
    const char *near;
} llm_arch_judged;

/* Calls each(ctx, key) for all keys of the source, in order, without building a graph; *key is
 * valid during the call. Fails with GGL_FORMAT (the source's architecture is not one of this
 * descriptor's), GGL_LIMIT or GGL_NOMEM. */
GGL_INTERNAL_API GGL_NODISCARD ggl_status
llm_arch_judge_keys(const llm_arch *arch, const llm_arch_source *source,
                    void (*each)(void *ctx, const llm_arch_judged *key), void *ctx, ggl_error *err);

/* --- made-up models --------------------------------------------------------------------------- */

/* A made-up model: values for all keys that a descriptor mentions, and random f32 weights of the
 * declared shapes. Variant 0 has no optional key or tensor, variant 1 has all of them. The
 * others differ from these in one key or tensor, or in a value that the descriptor compares a
 * key with. */
typedef struct llm_arch_toy llm_arch_toy;

GGL_INTERNAL_API int llm_arch_toy_n_variants(const llm_arch *arch); /* 0: out of memory */
/* Makes a variant; keeps a pointer to `arch`. NULL, with err: out of memory, or the descriptor
 * cannot be built with it. */
GGL_INTERNAL_API llm_arch_toy *llm_arch_toy_new(const llm_arch *arch, int variant, ggl_error *err);
GGL_INTERNAL_API void llm_arch_toy_free(llm_arch_toy *toy);
GGL_INTERNAL_API const llm_arch_source *llm_arch_toy_source(const llm_arch_toy *toy);
/* The context that a `require` of n_ctx allows: 64, unless it demands another one. */
int64_t llm_arch_toy_n_ctx(const llm_arch_toy *toy);
/* How the variant differs: "all but attn_q.bias". */
const char *llm_arch_toy_text(const llm_arch_toy *toy);
/* From now on the toy behaves like a file: it has the keys of its variant and the tensors
 * requested so far, and a build must read all of them. */
void llm_arch_toy_freeze(llm_arch_toy *toy);

/* Builds the descriptor with every variant. On success *notes lists the lines that no variant
 * ran, or is NULL; it may be NULL itself, and the caller frees it with ggl_free. On failure
 * returns the first error, which names the variant. */
GGL_NODISCARD ggl_status llm_arch_check(const llm_arch *arch, char **notes, ggl_error *err);

#ifdef __cplusplus
}
#endif
#endif
