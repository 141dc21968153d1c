/* test-voice MODEL SOUND THRESHOLD SPEECH SILENCE MOST PAD: prints the probability of speech of each piece of a WAV, and then "FROM TO" of each part that has
 * speech, in samples. The numbers are those of llm_transcribe_params. Exit code 0, or 1 with a message. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "ggl/alloc.h"

#include "hearing.h"
#include "voice.h"

static ggl_status hear(llm_voice *v, llm_context *c, const char *path, voice_probabilities *found,
                       ggl_error *err) {
    const llm_sound_params p = {.rate = llm_voice_rate(v)};
    llm_sound *s = NULL;
    float part[1000];
    int64_t n = 1;
    ggl_status st = llm_sound_open(&s, path, &p, err);
    while (st == GGL_OK && n > 0) {
        st = llm_sound_read(s, part, 1000, &n, err);
        if (st == GGL_OK)
            st = llm_voice_hear(v, found, part, n, n == 0, c, err);
    }
    llm_sound_close(s);
    return st;
}

/* Returns whether times in what is heard of three parts become times in the sound. */
static bool places_are_right(void) {
    static const llm_arch_sound how = {.rate = 1000};
    static heard_part part[] = {
        {5000, 4000, 100, 0}, {30000, 3000, 100, 4100}, {50000, 400, 0, 7200}};
    static const struct {
        bool is_word;
        double from, to, start, end;
    } list[] = {
        {false, 1, 3, 6, 8},
        {false, 1, 4.05, 6, 9},         /* in the silence after the part */
        {false, 1, 4.3, 6, 9},          /* a little into the next one, where nothing was said yet */
        {false, 1, 5, 6, 30.9},         /* two parts */
        {false, 3.9, 6, 30, 31.9},      /* a little before the end of one */
        {false, 4.02, 4.08, 30, 30.06}, /* in the silence alone */
        {false, 1, 7.3, 6, 33},         /* little of the last part */
        {false, 1, 7.5, 6, 50.3},       /* more than half of it */
        {true, 3.4, 4.5, 8.4, 9},       /* a word is in one part */
        {true, 3.9, 4.5, 30, 30.4},
    };
    const hearing h = {.how = &how, .part = part, .n_parts = 3, .has_parts = true, .inexact = 0.28};
    bool right = true;
    for (size_t k = 0; k < sizeof list / sizeof *list; k++) {
        double start = list[k].from, end = list[k].to;
        (list[k].is_word ? llm_hearing_place_word : llm_hearing_place_piece)(&h, &start, &end);
        const bool is = fabs(start - list[k].start) < 1e-6 && fabs(end - list[k].end) < 1e-6;
        if (!is)
            fprintf(stderr, "%g to %g of what is heard became %g to %g\n", list[k].from, list[k].to,
                    start, end);
        right &= is;
    }
    return right;
}

int main(int argc, char **argv) {
    ggl_error err = {0};
    llm_voice *v = NULL;
    llm_context *c = NULL;
    voice_probabilities found = {0};
    voice_spans spans = {0};
    voice_rules rules;
    if (argc != 8)
        return fprintf(stderr, "test-voice MODEL SOUND THRESHOLD SPEECH SILENCE MOST PAD\n"), 2;
    if (!places_are_right())
        return 2;
    llm_transcribe_params p = llm_transcribe_default();
    p.vad_threshold = strtof(argv[3], NULL);
    p.vad_min_speech_duration_ms = atoi(argv[4]);
    p.vad_min_silence_duration_ms = atoi(argv[5]);
    p.vad_max_speech_duration_s = strtof(argv[6], NULL);
    p.vad_speech_pad_ms = atoi(argv[7]);
    ggl_status st = llm_open(&c, "builtin:words", NULL, &err);
    if (st == GGL_OK)
        st = llm_voice_open(&v, argv[1], &err);
    if (st == GGL_OK)
        st = llm_voice_rules(&rules, v, &p, &err);
    if (st == GGL_OK)
        st = hear(v, c, argv[2], &found, &err);
    if (st == GGL_OK)
        st = llm_voice_spans_find(&spans, found.p, found.n, found.n_samples, &rules, &err);
    for (size_t k = 0; k < found.n && st == GGL_OK; k++)
        printf("%.9g\n", (double)found.p[k]);
    for (size_t k = 0; k < spans.n && st == GGL_OK; k++)
        printf("%lld %lld\n", (long long)spans.span[k].from, (long long)spans.span[k].to);
    if (st != GGL_OK)
        fprintf(stderr, "%s\n", err.msg);
    llm_voice_spans_fini(&spans);
    ggl_free(found.p);
    llm_voice_close(v);
    llm_close(c);
    return st == GGL_OK ? 0 : 1;
}
