#include "voice.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ggl/backends.h"
#include "ggl/internal/alloc.h"
#include "ggl/internal/gguf.h"
#include "llm/internal/load.h"
#include "llm/internal/stage_rows.h"
#include "loading.h"

#define FINDS_NONE "it finds no speech in sound"
#define ADVICE                                                                                     \
    "give a model such as Silero VAD: the ONNX file of its package, or a GGUF file that was made " \
    "of it"

struct llm_voice {
    char *path;
    llm_model *model;
    ggl_backend *cpu;
    llm_stages *stages;
    int64_t rate, n_chunk, n_past, n_state;
    float *row; /* [n_past + n_chunk + n_state]: what is heard next */
    int64_t n;  /* samples of the piece that are there */
};

static ggl_status no_memory(ggl_error *err) {
    return ggl_fail(err, GGL_NOMEM, "out of memory for a model that finds speech");
}

/* Reads a key of the file: a whole number from `least` to `most`. */
static ggl_status read_key(const llm_voice *v, const char *name, int64_t least, int64_t most,
                           int64_t *out, ggl_error *err) {
    const ggl_gguf *file = llm_model_file(v->model);
    char key[160];
    double x = -1;
    snprintf(key, sizeof key, "%.100s.audio.%s", llm_arch_family(llm_model_arch(v->model), 0),
             name);
    const ggl_gguf_value *value = ggl_gguf_find(file, key);
    const bool is = value && !value->is_array && ggl_gguf_number(value, 0, &x) && x == floor(x) &&
                    x >= (double)least && x <= (double)most;
    *out = is ? (int64_t)x : 0;
    if (is)
        return GGL_OK;
    if (!value)
        return ggl_fail(err, GGL_UNSUPPORTED, "%s: " FINDS_NONE ": there is no key %s; " ADVICE,
                        ggl_gguf_name(file), key);
    return ggl_fail(err, GGL_FORMAT, "%s: the key %s must be a whole number from %lld to %lld",
                    ggl_gguf_name(file), key, (long long)least, (long long)most);
}

static ggl_status read_keys(llm_voice *v, ggl_error *err) {
    ggl_status st = read_key(v, "chunk_length", 1, 1 << 20, &v->n_chunk, err);
    if (st == GGL_OK)
        st = read_key(v, "past_length", 0, v->n_chunk, &v->n_past, err);
    return st == GGL_OK ? read_key(v, "sample_rate", 1000, 1000000, &v->rate, err) : st;
}

/* Checks that rows of samples and states become rows of a probability and states. */
static ggl_status check_rows(llm_voice *v, ggl_error *err) {
    const int64_t n_in = llm_stages_n_input(v->stages), n_out = llm_stages_n_row(v->stages);
    v->n_state = n_out - 1;
    if (n_out < 1 || n_in != v->n_past + v->n_chunk + v->n_state)
        return ggl_fail(
            err, GGL_UNSUPPORTED,
            "%s: " FINDS_NONE ": of rows of %" PRId64 " numbers it makes rows of %" PRId64
            "; a probability and the state that follows the samples are wanted; " ADVICE,
            ggl_gguf_name(llm_model_file(v->model)), n_in, n_out);
    v->row = ggl_calloc((size_t)n_in, sizeof *v->row);
    return v->row ? GGL_OK : no_memory(err);
}

static ggl_status open_all(llm_voice *v, ggl_error *err) {
    /* the products are so small that more threads would wait for each other */
    const ggl_backend_params bp = {.size = sizeof bp, .n_threads = 1};
    const llm_loading l = {
        .path = v->path, .model = {.size = sizeof l.model}, .eye = true}; /* it reads no text */
    ggl_status st = llm_load_named(&v->model, &l, err);
    if (st == GGL_NOT_FOUND && llm_load_converts(v->path)) /* no section is for its class */
        return ggl_fail(err, GGL_UNSUPPORTED,
                        "%s: " FINDS_NONE ": it is a model of another kind; " ADVICE, v->path);
    if (st == GGL_OK)
        st = read_keys(v, err);
    if (st == GGL_OK)
        st = ggl_backend_open(&v->cpu, "cpu", &bp, err);
    llm_session_params p = llm_session_default();
    p.backend = &v->cpu;
    p.n_backends = 1;
    if (st == GGL_OK)
        st = llm_stages_new(&v->stages, v->model, &p, 1, err);
    return st == GGL_OK ? check_rows(v, err) : st;
}

ggl_status llm_voice_open(llm_voice **out, const char *path, ggl_error *err) {
    const size_t size = strlen(path) + 1;
    llm_voice *v = ggl_calloc(1, sizeof *v);
    *out = NULL;
    if (v)
        v->path = ggl_calloc(size, 1);
    ggl_status st = v && v->path ? GGL_OK : no_memory(err);
    if (st == GGL_OK) {
        memcpy(v->path, path, size);
        st = open_all(v, err);
    }
    if (st == GGL_OK)
        *out = v;
    else
        llm_voice_close(v);
    return st;
}

void llm_voice_close(llm_voice *v) {
    if (!v)
        return;
    llm_stages_free(v->stages);
    llm_model_free(v->model);
    ggl_backend_close(v->cpu);
    ggl_free(v->row);
    ggl_free(v->path);
    ggl_free(v);
}

int llm_voice_rate(const llm_voice *v) {
    return (int)v->rate;
}

const char *llm_voice_path(const llm_voice *v) {
    return v->path;
}

/* --- hearing ---------------------------------------------------------------------------------- */

/* Runs the model on the piece that is complete. */
static ggl_status run_piece(llm_voice *v, voice_probabilities *to, llm_context *c, ggl_error *err) {
    const float *row = NULL;
    int64_t n = 0;
    float *const sample = v->row + v->n_past;
    if (llm_context_is_cancelled(c))
        return ggl_fail(err, GGL_CANCELLED, "stopped by the caller");
    if (!ggl_grow(&to->p, &to->cap, to->n + 1, sizeof *to->p))
        return no_memory(err);
    const ggl_status st = llm_stages_run(v->stages, v->row, 1, &row, &n, err);
    if (st != GGL_OK)
        return st;
    for (int64_t k = 0; k <= v->n_state; k++)
        if (!(fabsf(row[k]) <= FLT_MAX))
            return ggl_fail(err, GGL_FORMAT,
                            "%s: the numbers of the model that finds speech are not finite: its "
                            "file may be damaged",
                            v->path);
    to->p[to->n++] = row[0];
    memmove(v->row, sample + v->n_chunk - v->n_past, (size_t)v->n_past * sizeof *v->row);
    memcpy(sample + v->n_chunk, row + 1, (size_t)v->n_state * sizeof *v->row);
    v->n = 0;
    return GGL_OK;
}

ggl_status llm_voice_hear(llm_voice *v, voice_probabilities *to, const float *sample, int64_t n,
                          bool is_last, llm_context *c, ggl_error *err) {
    ggl_status st = GGL_OK;
    if (to->n_samples == 0) {
        memset(v->row, 0, (size_t)(v->n_past + v->n_chunk + v->n_state) * sizeof *v->row);
        v->n = 0;
    }
    to->n_samples += n;
    while (n > 0 && st == GGL_OK) {
        const int64_t room = v->n_chunk - v->n, k = n < room ? n : room;
        memcpy(v->row + v->n_past + v->n, sample, (size_t)k * sizeof *sample);
        v->n += k;
        sample += k;
        n -= k;
        if (v->n == v->n_chunk)
            st = run_piece(v, to, c, err);
    }
    if (st == GGL_OK && is_last && v->n > 0) {
        memset(v->row + v->n_past + v->n, 0, (size_t)(v->n_chunk - v->n) * sizeof *v->row);
        st = run_piece(v, to, c, err);
    }
    return st;
}

/* The numbers of params that say how speech is found, and what they may be. */
static const struct {
    const char *name;
    double least, most;
} number[] = {{"vad_threshold", 0, 1},
              {"vad_min_speech_duration_ms", 0, 1e9},
              {"vad_min_silence_duration_ms", 0, 1e9},
              {"vad_max_speech_duration_s", 0, INFINITY},
              {"vad_speech_pad_ms", 0, 1e9},
              {"vad_samples_overlap", 0, 1e6}};

enum { N_NUMBERS = sizeof number / sizeof *number };

static void read_numbers(double value[N_NUMBERS], const llm_transcribe_params *p) {
    const double all[N_NUMBERS] = {
        (double)p->vad_threshold,       p->vad_min_speech_duration_ms,
        p->vad_min_silence_duration_ms, (double)p->vad_max_speech_duration_s,
        p->vad_speech_pad_ms,           (double)p->vad_samples_overlap};
    memcpy(value, all, sizeof all);
}

ggl_status llm_voice_check_unused(const llm_transcribe_params *p, ggl_error *err) {
    const llm_transcribe_params plain = llm_transcribe_default();
    double value[N_NUMBERS], by_default[N_NUMBERS];
    read_numbers(value, p);
    read_numbers(by_default, &plain);
    for (size_t k = 0; k < N_NUMBERS; k++)
        if (value[k] != by_default[k])
            return ggl_fail(err, GGL_USAGE,
                            "%s is %g, but there is no model that finds speech (vad_model), for "
                            "which it is; its default is %g",
                            number[k].name, value[k], by_default[k]);
    return GGL_OK;
}

ggl_status llm_voice_rules(voice_rules *out, const llm_voice *v, const llm_transcribe_params *p,
                           ggl_error *err) {
    double value[N_NUMBERS];
    read_numbers(value, p);
    for (size_t k = 0; k < N_NUMBERS; k++)
        if (!(value[k] >= number[k].least && value[k] <= number[k].most))
            return ggl_fail(err, GGL_USAGE, "%s must be %g to %g, but is %g", number[k].name,
                            number[k].least, number[k].most, value[k]);
    const double rate = (double)v->rate;
    const double most = (double)p->vad_max_speech_duration_s;
    *out = (voice_rules){.threshold = (double)p->vad_threshold,
                         .least_speech = rate * p->vad_min_speech_duration_ms / 1000,
                         .most_speech = most > 0 ? rate * most : INFINITY,
                         .least_silence = rate * p->vad_min_silence_duration_ms / 1000,
                         .pad = rate * p->vad_speech_pad_ms / 1000,
                         .rate = v->rate,
                         .chunk = v->n_chunk};
    return GGL_OK;
}
