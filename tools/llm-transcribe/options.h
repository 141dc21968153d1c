/* The options of llm-transcribe. */
#ifndef TOOLS_TRANSCRIBE_OPTIONS_H
#define TOOLS_TRANSCRIBE_OPTIONS_H

#include "common/open_options.h"
#include "common/speech_text.h"

#define TOOL "llm-transcribe"

enum { DUMP_NOTHING, DUMP_MEL, DUMP_ENCODER };

typedef struct options {
    arg_list sounds;
    open_options open;
    const char *language, *prompt, *out, *folder, *tokens, *logits;
    int64_t n_beams, n_best, raw_rate, raw_channels, most_words, most_width, most_lines;
    double temperature, temperature_step, least_logprob, least_entropy, most_ratio, no_speech,
        offset, duration;
    const char *vad_model;
    double vad_threshold, vad_max_speech, vad_overlap;
    int64_t vad_min_speech, vad_min_silence, vad_pad;
    uint64_t seed;
    int format, raw, dump;
    bool translate, live, no_times, no_context, format_given, highlight, vad, vad_given;
} options;

/* Returns -1, or an exit code. */
int transcribe_options_read(options *o, int argc, char **argv);
/* The name of --raw; NULL: the files say what they are. */
const char *transcribe_options_raw(const options *o);
/* "txt", "srt", ..: how names of files of the format end. */
const char *transcribe_format_end(int format);
void transcribe_options_fini(options *o);

#endif
