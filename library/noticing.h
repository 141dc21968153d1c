/* What pictures (seeing.c) and sounds (listening.c) share: an eye or an ear, and the parts of what it noticed, which are kept as rows that a text names by a
 * mark. */
#ifndef LIBRARY_NOTICING_H
#define LIBRARY_NOTICING_H

#include "common/sha256.h"
#include "llm/internal/media.h"
#include "llm/internal/stage_rows.h"
#include "llm/internal/tokenizer.h"
#include "llm/llm.h"
#include "sound/log_mel.h"
#include "noticed.h"

typedef struct llm_eye llm_eye;

/* What differs between eyes and ears. */
typedef struct llm_eye_kind {
    const char *organ, *senses, *what; /* "eye", "sees", "picture" */
    /* The parts of what has this id, each of which has rows of its own: at least one. */
    int64_t (*n_parts)(const uint8_t id[LLM_MEDIA_ID]);
    /* Appends what stands for it in a text: its rows, and the texts around them. */
    ggl_status (*append)(const llm_eye *e, const llm_tokenizer *t, const uint8_t id[LLM_MEDIA_ID],
                         llm_tokens *ids, ggl_error *err);
    /* Makes it ready to read, before or without its stages. NULL: there is nothing to do. */
    ggl_status (*start)(llm_eye *e, ggl_error *err);
    /* Reads a file, its parts, and forgets it, whatever the status was. */
    ggl_status (*notice)(const llm_eye *e, const llm_noticed_file *f, llm_noticed *out,
                         ggl_error *err);
    ggl_status (*part)(const llm_eye *e, llm_noticed *x, int64_t k, llm_noticed_part *out,
                       ggl_error *err);
    void (*forget)(llm_noticed *x);
} llm_eye_kind;

extern const llm_eye_kind llm_eye_pictures, llm_eye_sounds;

/* A file may have an eye and an ear. Then each of the two reads what is for it, and their rows are kept in one place. */
struct llm_eye {
    struct llm_eye *other; /* the ear beside an eye; NULL: none, or this is it */
    const llm_eye_kind *kind;
    ggl_error
        why_not; /* why the other half of its file is not open; msg "": there is none, or it is */
    llm_model *model;
    llm_arch_rows_of rows[LLM_ARCH_MAX_SOURCES];
    int n_rows, input;
    int64_t n_most, n_input; /* rows of the input at most, and the numbers of each */
    llm_media *media;        /* of an ear beside an eye: that one's */
    llm_stages *stages;
    llm_session_params planned; /* with which they were */
    llm_adapter_use *adapter;   /* [n_adapters]: those with pairs for it */
    size_t n_adapters;
    llm_marks marks;
    uint64_t digest; /* of the file and the adapters: others make other rows of the same picture */
    int64_t n_ctx; /* of the text model: no picture or sound has more rows; 0: it is not started */
    /* Of an ear that was started. */
    llm_mel *mel;
    uint64_t n_flows; /* sounds that came piece by piece (ear_flow.h) */
    bool (*cancelled)(void *ctx);
    void *cancelled_ctx;
};

/* Returns why something that came with the model, an eye, an ear or both, is not open; "": nothing such. */
const char *llm_sense_lack(const llm_context *c);
/* Looking and listening begin with this, which finds the eye or the ear. GGL_UNSUPPORTED: the model was not opened with one of this kind; *out is then NULL. */
GGL_NODISCARD ggl_status llm_eye_need(const llm_context *c, const llm_eye_kind *kind, llm_eye **out,
                                      ggl_error *err);
/* llm_see and llm_listen within a call that has begun. */
GGL_NODISCARD ggl_status llm_eye_see(llm_context *c, const llm_image *image,
                                     char mark[LLM_IMAGE_MARK], ggl_error *err);
GGL_NODISCARD ggl_status llm_eye_listen(llm_context *c, const llm_audio *audio,
                                        char mark[LLM_IMAGE_MARK], ggl_error *err);

/* Makes it ready to read files for a text of n_ctx tokens, without stages. GGL_UNSUPPORTED, GGL_USAGE: the descriptor does not say how many rows its input
 * has; GGL_NOMEM. */
GGL_NODISCARD ggl_status llm_eye_start_reading(llm_eye *e, int64_t n_ctx, ggl_error *err);

/* Which row of the input, of n, the row i of the last stage stands for: the first one that it was made of; negative: none. */
int64_t llm_eye_origin(const llm_eye *e, int64_t i, int64_t n);
/* How many rows the last stage makes of n rows of the input. */
int64_t llm_eye_rows_made(const llm_eye *e, int64_t n);
/* Reads 64 hexadecimal digits. */
bool llm_eye_digest(const char *hex, uint8_t id[LLM_MEDIA_ID]);

/* What stands for a picture or a sound in a text: its mark becomes the texts around it, and its rows. GGL_USAGE: it is not there. */
const llm_marks *llm_eye_marks(const llm_eye *e);
bool llm_eye_sees(const llm_eye *e); /* pictures; NULL: it does not */
bool llm_eye_hears(const llm_eye *e);
/* How the ear wants sound; NULL: there is no ear. e may be NULL. */
const llm_arch_sound *llm_eye_sound(const llm_eye *e);
/* The most samples of a sound that becomes so many rows at most; 0: no sound has so few. */
int64_t llm_ear_most_samples(const llm_eye *ear, int64_t n_rows);
/* How many rows the shortest sound becomes. */
int64_t llm_ear_least_rows(const llm_eye *ear);
/* How many samples a sound of n has with the silence around it, as the ear's descriptor says. */
int64_t llm_ear_filled(const llm_eye *ear, int64_t n);
/* How many rows of the spectrogram the ear reads of so many samples, silence included, if they are one window. */
int64_t llm_ear_rows_in(const llm_eye *ear, int64_t n);
/* Says of how many windows a sound is, in its id. */
void llm_ear_set_windows(uint8_t id[LLM_MEDIA_ID], int64_t n);
/* Sets how these are read. most: of a text; 0: any number. */
void llm_eye_set_marks(llm_eye *e, int64_t most);
/* Appends a text that stands beside rows; {n} in it is the end of a line, {y} and {x} are numbers, and {0}, {1} .. the rows from the id `row` on, downwards; 0: there
 * are none. */
GGL_NODISCARD ggl_status llm_eye_append_text(const llm_tokenizer *t, const char *text, int64_t y,
                                             int64_t x, int32_t row, llm_tokens *ids,
                                             ggl_error *err);
/* Finds the rows of part k, and holds them once more (llm_media_find). GGL_USAGE: they are not there. */
GGL_NODISCARD ggl_status llm_eye_find_part(const llm_eye *e, const uint8_t id[LLM_MEDIA_ID],
                                           int64_t k, int32_t *first, int64_t *n, ggl_error *err);
/* Counts the rows that are kept for a mark. Statuses of llm_eye_find_part. */
GGL_NODISCARD ggl_status llm_eye_count_rows(const llm_eye *e, const char *mark, size_t *n,
                                            ggl_error *err);
/* Appends the rows of part k. Statuses of llm_eye_find_part. */
GGL_NODISCARD ggl_status llm_eye_append_part(const llm_eye *e, const uint8_t id[LLM_MEDIA_ID],
                                             int64_t k, llm_tokens *ids, ggl_error *err);

/* Marks an id as that of a sound, by a bit that ids of pictures do not have. */
void llm_eye_set_sound(uint8_t id[LLM_MEDIA_ID]);
bool llm_eye_is_sound(const uint8_t id[LLM_MEDIA_ID]);
/* Writes the id of the rows of part k. */
void llm_eye_part_id(const uint8_t id[LLM_MEDIA_ID], int64_t k, uint8_t out[LLM_MEDIA_ID]);
/* Writes the mark that stands for a picture or a sound in a text. */
void llm_eye_mark(const uint8_t id[LLM_MEDIA_ID], char mark[LLM_IMAGE_MARK]);
/* Makes the rows of part k, and adds them to e->media with the id. */
typedef ggl_status llm_eye_make(llm_eye *e, void *ctx, int64_t k, const uint8_t id[LLM_MEDIA_ID],
                                ggl_error *err);
/* Holds all parts of a picture or a sound, made by `make` if they are not there, and writes its mark. */
GGL_NODISCARD ggl_status llm_eye_keep(llm_eye *e, const uint8_t id[LLM_MEDIA_ID],
                                      llm_eye_make *make, void *ctx, char mark[LLM_IMAGE_MARK],
                                      ggl_error *err);

#endif
