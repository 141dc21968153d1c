/* test-voice MODEL SOUND THRESHOLD SPEECH SILENCE MOST PAD: prints the probability of speech of each piece of a WAV, and then "FROM TO" of each part that has
 * speech, in samples. The numbers are those of llm_transcribe_params. Exit code 0, or 1 with a message. */
#include <stdio.h>
#include <stdlib.h>

#include "ggl/alloc.h"

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

int main(int argc, char **argv) {
    ggl_error err = {0};
    llm_voice *v = NULL;
    llm_context *c = NULL;
    voice_probabilities found = {0};
    voice_spans spans = {0};
    voice_rules rules;
    if (argc != 8)
        return fprintf(stderr, "test-voice MODEL SOUND THRESHOLD SPEECH SILENCE MOST PAD\n"), 2;
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
