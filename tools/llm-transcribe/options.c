#include "options.h"

#include <string.h>

#include "common/hints.h"
#include "common/output_ending.h"

static const char *const raws[] = {"none", "s16le", "f32le", NULL};
static const char *const formats[] = {"text", "times", "srt", "vtt", "json", NULL};
static const char *const ends[] = {"txt", "txt", "srt", "vtt", "json"};

static const args_example examples[] = {
    {"llm-transcribe examples/words.wav", "spoken words, by the built-in model"},
    {"llm-transcribe -m ggml-base.bin talk.wav", "the text of a recording"},
    {"llm-transcribe -m ggml-base.bin talk.wav -o talk.srt", "subtitles"},
    {"llm-transcribe -m model.gguf -l de --translate talk.wav", "German speech, in English"},
    {"arecord -f S16_LE -r16000 | llm-transcribe -m model.gguf -",
     "what is said into the microphone, until ctrl-C"},
    {"arecord -f S16_LE -r16000 | llm-transcribe -m DIR --live -", "each word as it is heard"},
    {0}};

const char *transcribe_options_raw(const options *o) {
    return o->raw > 0 ? raws[o->raw] : NULL;
}

const char *transcribe_format_end(int format) {
    return ends[format];
}

/* -o FILE.srt chooses the format. */
static int choose_format(options *o) {
    static const output_ending endings[] = {{".txt", FORMAT_TEXT},
                                            {".srt", FORMAT_SRT},
                                            {".vtt", FORMAT_VTT},
                                            {".json", FORMAT_JSON},
                                            {NULL, OUTPUT_REFUSED}};
    return !o->out || o->format_given || o->dump
               ? -1
               : output_ending_choose(TOOL, o->out, endings,
                                      ".srt and .vtt make subtitles, .json all that is known, and "
                                      ".txt, or a name without an ending, text (--format text "
                                      "writes it under this name, too)",
                                      &o->format);
}

static int check_words(const options *o) {
    const char *layout = o->highlight    ? "--highlight-words"
                         : o->most_words ? "--max-words-per-line"
                         : o->most_width ? "--max-line-width"
                         : o->most_lines ? "--max-line-count"
                                         : NULL;
    if (layout && (o->format == FORMAT_TEXT || o->format == FORMAT_JSON))
        return tool_error(TOOL, 2, "%s is for texts with times: --format times, srt or vtt",
                          layout);
    if (layout && !o->open.how.params.words)
        return tool_error(TOOL, 2, "%s needs --word-timestamps", layout);
    if (o->most_lines && !o->most_width)
        return tool_error(TOOL, 2, "--max-line-count needs --max-line-width");
    if (o->most_words && o->most_width)
        return tool_error(TOOL, 2,
                          "--max-words-per-line and --max-line-width cannot be used together");
    if (o->open.how.params.words && (o->tokens || o->dump))
        return tool_error(TOOL, 2, "--word-timestamps is for texts, not for %s",
                          o->tokens ? "--tokens" : "--dump");
    return -1;
}

static int check(options *o) {
    const char *single = o->out ? "-o" : o->tokens ? "--tokens" : o->dump ? "--dump" : NULL;
    if (tool_hub_only_lists(&o->open.hub))
        return -1;
    if (o->sounds.n == 0)
        return tool_error(TOOL, 2,
                          "there is no sound: give files, or - for standard input; see --help");
    if (o->sounds.n > 1 && single)
        return tool_error(TOOL, 2, "%s is for one sound; --output-dir DIR writes a file for each",
                          single);
    if (o->out && o->folder)
        return tool_error(TOOL, 2, "-o and --output-dir cannot be used together");
    if ((o->tokens != NULL) != (o->logits != NULL))
        return tool_error(TOOL, 2, "--tokens and --logits need each other");
    if (o->dump && !o->out)
        return tool_error(TOOL, 2, "--dump needs a file: -o FILE.npy");
    if (o->live && (o->tokens || o->dump || o->vad_model))
        return tool_error(TOOL, 2, "--live and %s cannot be used together",
                          o->tokens ? "--tokens"
                          : o->dump ? "--dump"
                                    : "--vad-model");
    if (o->live && o->format != FORMAT_TEXT && o->format_given)
        return tool_error(TOOL, 2,
                          "--live writes text as it comes: leave out --format %s, or --live",
                          formats[o->format]);
    if (o->vad && !o->vad_model)
        return tool_error(TOOL, 2, "--vad needs a model that finds speech: --vad-model FILE");
    if (o->vad_given && !o->vad_model)
        return tool_error(TOOL, 2,
                          "--vad-threshold and other numbers of --vad-.. are for --vad-model");
    if (o->raw == 0 && (o->raw_rate || o->raw_channels))
        return tool_error(TOOL, 2, "--raw-rate and --raw-channels are for --raw");
    const int code = choose_format(o);
    if (code < 0 && o->live && o->format != FORMAT_TEXT)
        return tool_error(
            TOOL, 2, "--live writes text as it comes, and %s is no text: leave out --live", o->out);
    return code < 0 ? check_words(o) : code;
}

int transcribe_options_read(options *o, int argc, char **argv) {
    static const char *const dumps[] = {"none", "mel", "encoder", NULL};
    *o = (options){.open = open_options_default(),
                   .n_beams = 5,
                   .n_best = 5,
                   .temperature_step = 0.2,
                   .least_logprob = -1,
                   .most_ratio = 2.4,
                   .no_speech = 0.6,
                   .vad_threshold = 0.5,
                   .vad_min_speech = 250,
                   .vad_min_silence = 100,
                   .vad_pad = 30,
                   .vad_overlap = 0.1};
    const arg_option own[] = {
        {NULL, .help = "model and sound"},
        {"-f --file", ARG_LIST, &o->sounds, .value = "SOUND",
         .help = "the same as SOUND without a flag; repeatable"},
        {"-m --model", ARG_STRING, &o->open.how.path, .value = "FILE",
         .help = "a model that hears: a GGUF file, a file of ggml from before GGUF "
                 "(ggml-base.bin), or a Hugging Face folder (default: the built-in builtin:words, "
                 "which knows the ten digits and twenty other words)"},
        HUB_OPTIONS(o->open.hub),
        {"-l --language", ARG_STRING, &o->language, .value = "LANG",
         .help = "the language that is spoken: a code (de) or a name (german); auto: the "
                 "likeliest of the first half minute (default)"},
        {"-tr --translate", ARG_FLAG, &o->translate, .help = "write in English"},
        {"--live", ARG_FLAG, &o->live,
         .help = "write each word as soon as it is heard, of a pipe (-), too: for models that "
                 "write while they "
                 "hear, such as Voxtral Realtime"},
        {"--prompt", ARG_STRING, &o->prompt, .value = "TEXT",
         .help = "what may have been said before: names and words as they are spelled"},
        {"-ot --offset", ARG_FLOAT, &o->offset, .value = "SECONDS", .max = 1e8,
         .help = "where to begin (default 0)"},
        {"-d --duration", ARG_FLOAT, &o->duration, .value = "SECONDS", .max = 1e8,
         .help = "how much is written down (default 0: all)"},
        {"--raw", ARG_CHOICE, &o->raw, .value = "KIND", .choices = raws,
         .help = "the sounds are samples without a header: s16le or f32le (default none: the files "
                 "say what "
                 "they are)"},
        {"--raw-rate", ARG_INT, &o->raw_rate, .value = "HZ", .min = 1, .max = 1 << 22,
         .help = "of --raw (default: the model's, mostly 16000)"},
        {"--raw-channels", ARG_INT, &o->raw_channels, .value = "N", .min = 1, .max = 64,
         .help = "of --raw (default 1)"},
        {NULL, .help = "a text model with an ear"},
        OPEN_ROWS(SEES),
        {NULL, .help = "output"},
        {"-o --output", ARG_STRING, &o->out, .value = "FILE",
         .help = "the file to write; .srt, .vtt, .json and .txt choose the format, and a name "
                 "without an "
                 "ending has text (default: standard output)"},
        {"--output-dir", ARG_STRING, &o->folder, .value = "DIR",
         .help = "write a file in this folder for each sound, by its name"},
        {"--format", ARG_CHOICE, &o->format, .value = "FORMAT", .choices = formats,
         .given = &o->format_given,
         .help = "text: a line for each piece (default); times: with its times; srt, vtt: "
                 "subtitles; json: all that is known of it"},
        {"--word-timestamps", ARG_FLAG, &o->open.how.params.words,
         .help = "find when each word is said: in JSON, and for the following"},
        {"--highlight-words", ARG_FLAG, &o->highlight,
         .help = "of subtitles: underline each word while it is said"},
        {"--max-words-per-line", ARG_INT, &o->most_words, .value = "N", .min = 1, .max = 1000,
         .help = "of subtitles: so many words at most in one (1: each by itself)"},
        {"--max-line-width", ARG_INT, &o->most_width, .value = "N", .min = 1, .max = 10000,
         .help = "of subtitles: begin a new line after so many characters"},
        {"--max-line-count", ARG_INT, &o->most_lines, .value = "N", .min = 1, .max = 1000,
         .help = "of subtitles: so many lines at most in one; for --max-line-width"},
        {"--no-timestamps", ARG_FLAG, &o->no_times,
         .help = "let the model write no times: half a minute is one piece"},
        {NULL, .help = "how it is written"},
        {"-bs --beam-size", ARG_INT, &o->n_beams, .value = "N", .min = 1, .max = 64,
         .help = "texts that are searched side by side (default 5; 1: the likeliest token each "
                 "time, which is faster)"},
        {"-bo --best-of", ARG_INT, &o->n_best, .value = "N", .min = 1, .max = 64,
         .help =
             "texts that are drawn at a temperature above 0, of which the best stays (default 5)"},
        {"-tp --temperature", ARG_FLOAT, &o->temperature, .value = "T", .max = 1,
         .help = "the first one (default 0)"},
        {"-tpi --temperature-inc", ARG_FLOAT, &o->temperature_step, .value = "T", .max = 1,
         .help = "half a minute that became nonsense is written again, at a temperature higher by "
                 "this (default 0.2; 0: "
                 "never)"},
        {"-lpt --logprob-thold", ARG_FLOAT, &o->least_logprob, .value = "P", .min = -1e6, .max = 0,
         .help = "nonsense: the mean log-probability is below this (default -1)"},
        {"-crt --compression-ratio-threshold", ARG_FLOAT, &o->most_ratio, .value = "R", .max = 1e6,
         .help = "nonsense: the text repeats itself, and zlib makes it shorter by more than this "
                 "factor (default 2.4; 0: any)"},
        {"-et --entropy-thold", ARG_FLOAT, &o->least_entropy, .value = "H", .max = 1e6,
         .help = "nonsense: the last 32 tokens repeat themselves, and their entropy is below this "
                 "(default 0: any)"},
        {"-nth --no-speech-thold", ARG_FLOAT, &o->no_speech, .value = "P", .max = 1,
         .help = "silence: the model says so with this probability (default 0.6)"},
        {"-nc --no-context", ARG_FLAG, &o->no_context,
         .help = "each half minute by itself, without what was written before"},
        {"-s --seed", ARG_UINT64, &o->seed, .value = "N", .help = "of what is drawn (default 0)"},
        {NULL, .help = "speech alone"},
        {"-vm --vad-model", ARG_STRING, &o->vad_model, .value = "FILE",
         .help =
             "a model that finds speech, such as Silero VAD: what it finds is written down, and "
             "nothing else; times stay those of the sound"},
        {"--vad", ARG_FLAG, &o->vad, .help = "the same as --vad-model alone, which it needs"},
        {"-vt --vad-threshold", ARG_FLOAT, &o->vad_threshold, .value = "P", .max = 1,
         .given = &o->vad_given, .help = "speech: from this probability on (default 0.5)"},
        {"-vspd --vad-min-speech-duration-ms", ARG_INT, &o->vad_min_speech, .value = "MS",
         .max = 1000000000, .given = &o->vad_given,
         .help = "shorter speech is left out (default 250)"},
        {"-vsd --vad-min-silence-duration-ms", ARG_INT, &o->vad_min_silence, .value = "MS",
         .max = 1000000000, .given = &o->vad_given,
         .help = "shorter silence belongs to speech (default 100)"},
        {"-vmsd --vad-max-speech-duration-s", ARG_FLOAT, &o->vad_max_speech, .value = "SECONDS",
         .max = 1e8, .given = &o->vad_given,
         .help = "longer speech is cut, in its longest pause (default 0: it is not)"},
        {"-vp --vad-speech-pad-ms", ARG_INT, &o->vad_pad, .value = "MS", .max = 1000000000,
         .given = &o->vad_given, .help = "what is heard before and after speech (default 30)"},
        {"-vo --vad-samples-overlap", ARG_FLOAT, &o->vad_overlap, .value = "SECONDS", .max = 1e6,
         .given = &o->vad_given,
         .help = "what is heard after each part, too, up to the next one (default 0.1)"},
        {NULL, .help = "machine"},
        OPEN_ROWS(MODEL),
        OPEN_ROWS(MACHINE),
        OPEN_ROWS(PLACE),
        {NULL, .help = "steps, as NumPy arrays"},
        {"--dump", ARG_CHOICE, &o->dump, .value = "WHAT", .choices = dumps,
         .help = "write to -o FILE.npy what the model reads, mel, or what its encoder makes of the "
                 "first half minute"},
        {"--tokens", ARG_STRING, &o->tokens, .value = "IDS",
         .help = "tokens that hear the first half minute: 1,2,3"},
        {"--logits", ARG_STRING, &o->logits, .value = "FILE",
         .help = "write the scores after each of --tokens to this file"},
        {0}};
    arg_option table[OPEN_MOST_ROWS];
    open_options_table(table, own, TRANSCRIBE, &o->open);
    const args_spec spec = {
        TOOL,
        "[-m MODEL] [options] SOUND..",
        "Writes down what is said in sounds: WAV; FLAC, MP3 and Ogg by libsndfile, or, as "
        "M4A and WebM, by the program ffmpeg. The text goes to standard output or to a file, "
        "everything else to "
        "standard error.",
        table,
        &o->sounds,
        &transcribe_hints,
        .examples = examples};
    int code = args_parse(&spec, argc, argv);
    if (code < 0)
        code = check(o);
    if (code < 0)
        code = open_options_check(TOOL, &o->open, false);
    return code;
}

void transcribe_options_fini(options *o) {
    open_options_fini(&o->open);
    args_list_fini(&o->sounds);
}
