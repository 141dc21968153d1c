#include "speech_text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/json_text.h"
#include "ggl/internal/alloc.h"
#include "ggl/str.h"

/* hh:mm:ss.mmm, with the sign before the milliseconds that the format wants. */
static void put_time(FILE *to, double seconds, char point) {
    const int64_t ms = (int64_t)floor(seconds * 1000 + 0.5);
    fprintf(to, "%02lld:%02lld:%02lld%c%03lld", (long long)(ms / 3600000),
            (long long)(ms / 60000 % 60), (long long)(ms / 1000 % 60), point,
            (long long)(ms % 1000));
}

/* The text without the space at its beginning. */
static ggl_str trimmed(const llm_speech *piece) {
    size_t k = 0;
    while (k < piece->n && piece->text[k] == ' ')
        k++;
    return (ggl_str){piece->text + k, piece->n - k};
}

static void put_times(FILE *to, double start, double end, char point) {
    put_time(to, start, point);
    fputs(" --> ", to);
    put_time(to, end, point);
}

static void put_text(FILE *to, ggl_str s) {
    fwrite(s.s, 1, s.n, to);
    fputc('\n', to);
}

/* A line of subtitles must not look like the line of its times, and must not be empty. has_lines: ends of lines in the text are meant. */
static void put_subtitle(FILE *to, ggl_str s, bool has_lines) {
    static const char arrow[] = "-->";
    for (size_t i = 0; i < s.n; i++) {
        if (s.n - i >= 3 && memcmp(s.s + i, arrow, 3) == 0) {
            fputs("->", to);
            i += 2;
        } else if ((s.s[i] == '\n' && !has_lines) || s.s[i] == '\r') {
            fputc(' ', to);
        } else {
            fputc(s.s[i], to);
        }
    }
    fputs("\n\n", to);
}

static void put_word(FILE *to, const llm_word *w, const char *text, size_t n) {
    fputs("{\"word\": ", to);
    json_put_string(to, text, n);
    fprintf(to, ", \"start\": %.2f, \"end\": %.2f, \"probability\": %.6f}", w->start, w->end,
            w->probability);
}

static void put_words(FILE *to, const llm_speech *piece) {
    fputs(", \"words\": [", to);
    for (size_t k = 0; k < piece->n_words; k++) {
        fputs(k ? ", " : "", to);
        put_word(to, &piece->word[k], piece->word[k].text, piece->word[k].n);
    }
    fputs("]", to);
}

/* Adds the words to the list of all, without the spaces around them. */
static void list_words(speech_text *o, const llm_speech *piece) {
    if (!o->words.to && !ggl_os_memory_stream_open(&o->words)) {
        o->failed = true;
        return;
    }
    for (size_t k = 0; k < piece->n_words; k++) {
        const char *s = piece->word[k].text;
        size_t n = piece->word[k].n;
        for (; n > 0 && *s == ' '; s++)
            n--;
        while (n > 0 && s[n - 1] == ' ')
            n--;
        fputs(o->words.n > 0 || k > 0 ? ",\n    " : "    ", o->words.to);
        put_word(o->words.to, &piece->word[k], s, n);
    }
    o->failed |= !ggl_os_memory_stream_count(&o->words);
}

static void put_list(speech_text *o) {
    if (o->words.to)
        o->failed |= !ggl_os_memory_stream_close(&o->words);
    fprintf(o->to, "\n  \"words\": [%s", o->words.n > 0 ? "\n" : "");
    if (o->words.n > 0) /* without words there is no list */
        fwrite(o->words.text, 1, o->words.n, o->to);
    fputs(o->words.n > 0 ? "\n  ]," : "],", o->to);
}

static void put_json(speech_text *o, const llm_speech *piece) {
    FILE *to = o->to;
    if (!ggl_grow(&o->text, &o->cap_text, o->n_text + piece->n + 1, 1)) {
        o->failed = true;
        return;
    }
    memcpy(o->text + o->n_text, piece->text, piece->n);
    o->n_text += piece->n;
    if (o->has_words && o->words_apart)
        list_words(o, piece);
    if (o->no_segments)
        return;
    fprintf(to, "%s    {\"id\": %lld, \"seek\": %lld, \"start\": %.2f, \"end\": %.2f, \"text\": ",
            o->n ? ",\n" : "", (long long)o->n, (long long)floor(100 * o->window + 0.5),
            piece->start, piece->end);
    json_put_string(to, piece->text, piece->n);
    fputs(", \"tokens\": [", to);
    for (size_t k = 0; k < piece->n_id; k++)
        fprintf(to, "%s%d", k ? ", " : "", (int)piece->id[k]);
    fputs("]", to);
    if (o->has_words && !o->words_apart)
        put_words(to, piece);
    fprintf(to,
            ", \"temperature\": %g, \"avg_logprob\": %.6f, \"compression_ratio\": %.6f, "
            "\"no_speech_prob\": %.6f}",
            piece->temperature, piece->logprob, piece->compression_ratio, piece->no_speech);
}

/* Writes a text and its times in one of the formats that have times. */
static void put_timed(speech_text *o, double start, double end, ggl_str s) {
    FILE *to = o->to;
    if (o->format == FORMAT_SRT)
        fprintf(to, "%lld\n", (long long)o->n_subtitles + 1);
    if (o->format == FORMAT_TIMES)
        fputc('[', to);
    put_times(to, start, end, o->format == FORMAT_SRT ? ',' : '.');
    fputs(o->format == FORMAT_TIMES ? "]  " : "\n", to);
    if (o->format == FORMAT_TIMES)
        put_text(to, s);
    else
        put_subtitle(to, s, lines_are_wanted(&o->lines));
    o->n_subtitles++;
}

static void on_lines(void *ctx, double start, double end, const char *text, size_t n) {
    put_timed(ctx, start, end, (ggl_str){text, n});
}

void speech_text_begin(speech_text *o) {
    o->lines.put = on_lines;
    o->lines.ctx = o;
    if (o->format == FORMAT_VTT)
        fputs("WEBVTT\n\n", o->to);
    if (o->format == FORMAT_JSON)
        fputs(o->no_segments ? "{" : "{\n  \"segments\": [\n", o->to);
}

long long speech_text_seconds(double seconds) {
    return (long long)ceil(seconds);
}

void speech_text_language(speech_text *o, const char *code) {
    snprintf(o->language, sizeof o->language, "%s", code);
}

void speech_text_window(speech_text *o, double seconds) {
    o->window = seconds;
}

void speech_text_said(speech_text *o, const char *text, size_t n) {
    const size_t skip = !o->in_line && n > 0 && *text == ' ';
    fwrite(text + skip, 1, n - skip, o->to);
    o->in_line = true;
    fflush(o->to);
}

void speech_text_piece(speech_text *o, const llm_speech *piece) {
    const ggl_str s = trimmed(piece);
    if (o->format == FORMAT_TEXT && o->is_told)
        putc('\n', o->to);
    else if (o->format == FORMAT_TEXT)
        put_text(o->to, s);
    else if (o->format == FORMAT_JSON)
        put_json(o, piece);
    else if (lines_are_wanted(&o->lines))
        lines_add(&o->lines, piece);
    else
        put_timed(o, piece->start, piece->end, s);
    o->n++;
    o->in_line = false;
    o->end = piece->end;
    fflush(o->to);
}

void speech_text_warn(speech_text *o, const char *text) {
    if (!o->warnings.to && !ggl_os_memory_stream_open(&o->warnings)) {
        o->failed = true;
        return;
    }
    if (o->warnings.n > 0)
        fputs(", ", o->warnings.to);
    json_put_string(o->warnings.to, text, strlen(text));
    o->failed |= !ggl_os_memory_stream_count(&o->warnings);
}

void speech_text_end(speech_text *o, double duration) {
    if (o->warnings.to)
        o->failed |= !ggl_os_memory_stream_close(&o->warnings);
    FILE *to = o->to;
    lines_end(&o->lines);
    o->failed |= o->lines.failed;
    if (o->format == FORMAT_JSON) {
        if (!o->no_segments)
            fputs(o->n ? "\n  ]," : "  ],", to);
        if (o->has_words && o->words_apart)
            put_list(o);
        fprintf(to, "\n  \"task\": \"%s\",\n  \"language\": ",
                o->is_translated ? "translate" : "transcribe");
        const char *name = o->names_language ? llm_language_name(o->language) : NULL;
        name = name ? name : o->language;
        if (*name)
            json_put_string(to, name, strlen(name));
        else
            fputs("null", to);
        const double seconds = duration < 0 ? o->end : duration;
        fprintf(to, ",\n  \"duration\": %.2f,\n  \"text\": ", seconds);
        const size_t skip = o->trims && o->n_text > 0 && o->text[0] == ' ';
        json_put_string(to, o->text ? o->text + skip : "", o->n_text - skip);
        if (o->has_usage)
            fprintf(to, ",\n  \"usage\": {\"type\": \"duration\", \"seconds\": %lld}",
                    speech_text_seconds(seconds));
        if (o->warnings.n > 0)
            fprintf(to, ",\n  \"warnings\": [%s]", o->warnings.text);
        fputs("\n}\n", to);
    }
    ggl_free(o->text);
    free(o->words.text);
    o->words = (os_memory_stream){0};
    o->text = NULL;
}

void speech_text_fini(speech_text *o) {
    if (o->warnings.to)
        (void)ggl_os_memory_stream_close(&o->warnings);
    free(o->warnings.text);
    o->warnings = (os_memory_stream){0};
}
