/* RWKV's "World" tokenizer: a text with a line for each token, `ID LITERAL LENGTH`, the literal as Python writes it, of characters or of bytes
 * (rwkv_vocab_v20230424.txt of the authors). Id 0 ends texts, and has no line. GGUF has a token's bytes as Python's repr writes them, without
 * its quotes. */
#include <inttypes.h>
#include <string.h>

#include "common/hex.h"
#include "common/lines.h"
#include "hf_tokenizer_impl.h"
#include "text/unicode.h"

enum { MOST_BYTES = 1024 }; /* of a token */

/* How its models were trained to write turns, as a template. */
static const char chat[] =
    "{% for m in messages %}{{ m.role | capitalize }}: {{ m.content | trim }}\n\n{% endfor %}"
    "{% if add_generation_prompt %}Assistant:{% endif %}";

/* Escapes of one letter, and what each stands for. */
static const char letters[] = "tnrabfv\\'\"", meant[] = "\t\n\r\a\b\f\v\\'\"";

static void skip(ggl_str *s, size_t n) {
    *s = (ggl_str){s->s + n, s->n - n};
}

/* True if the text begins with the character, which is skipped. */
static bool take(ggl_str *s, char c) {
    const bool is = s->n > 0 && *s->s == c;
    skip(s, is);
    return is;
}

/* Reads a number below 2^31. */
static bool take_number(ggl_str *s, int64_t *out) {
    const size_t before = s->n;
    for (*out = 0; s->n > 0 && *s->s >= '0' && *s->s <= '9' && *out <= INT32_MAX; skip(s, 1))
        *out = *out * 10 + (*s->s - '0');
    return s->n < before && *out <= INT32_MAX;
}

static bool take_hex(ggl_str *s, size_t n, uint32_t *out) {
    *out = 0;
    for (size_t i = 0; i < n; i++) {
        const int digit = i < s->n ? llm_hex_digit(s->s[i]) : -1;
        if (digit < 0)
            return false;
        *out = *out << 4 | (uint32_t)digit;
    }
    skip(s, n);
    return true;
}

/* Reads what follows a backslash into out; returns how many bytes it is, 0: none that is known. Of bytes, \xNN is a byte; of
 * characters, a code point. */
static size_t take_escape(ggl_str *s, bool is_bytes, char *out) {
    uint32_t code;
    const char c = s->n > 0 ? *s->s : 0;
    const char *letter = memchr(letters, c, sizeof letters - 1);
    const size_t digits = c == 'x' ? 2 : c == 'u' && !is_bytes ? 4 : c == 'U' && !is_bytes ? 8 : 0;
    skip(s, s->n > 0);
    if (letter) {
        *out = meant[letter - letters];
        return 1;
    }
    if (digits == 0 || !take_hex(s, digits, &code) || code > 0x10ffff)
        return 0;
    if (!is_bytes)
        return llm_unicode_encode(code, out);
    *out = (char)code;
    return 1;
}

/* Reads a literal into out, MOST_BYTES; returns its length, 0: it is none, or too long. */
static size_t take_literal(ggl_str *s, char *out) {
    size_t n = 0, more = 1;
    const bool is_bytes = take(s, 'b');
    const char quote = s->n > 0 ? *s->s : 0;
    if (quote != '\'' && quote != '"')
        return 0;
    for (skip(s, 1); s->n > 0 && *s->s != quote && more > 0 && n + 4 <= MOST_BYTES; n += more) {
        out[n] = *s->s;
        more = 1;
        skip(s, 1);
        if (out[n] == '\\')
            more = take_escape(s, is_bytes, out + n);
    }
    return more > 0 && take(s, quote) ? n : 0;
}

/* Takes the next line of *text apart; returns the token's length, 0: it is no line of a token. */
static size_t take_line(ggl_str *text, int64_t *id, char *out) {
    ggl_str line;
    int64_t length;
    if (!llm_take_line(text, &line) || !take_number(&line, id) || !take(&line, ' '))
        return 0;
    const size_t n = take_literal(&line, out);
    if (n == 0 || !take(&line, ' ') || !take_number(&line, &length) || (size_t)length != n)
        return 0;
    (void)take(&line, '\r');
    return line.n == 0 ? n : 0;
}

/* Returns the name that the folder gives to id 0; "<s>" if it gives none. */
static ggl_str name_of_end(llm_hf_tokenizer *t) {
    const json_value *config = t->config ? &t->config->root : NULL,
                     *added = llm_json_get_kind(config, "added_tokens_decoder", JSON_OBJECT),
                     *text = llm_json_get_kind(llm_json_get(added, "0"), "content", JSON_STRING);
    return text && text->n > 0 ? llm_hf_spell_world(t, json_str(text)) : (ggl_str){"<s>", 3};
}

ggl_status llm_hf_read_world(llm_hf_tokenizer *t, const char *name, const llm_hf_vocab *size,
                             ggl_error *err) {
    sentence_pieces *p = &t->pieces;
    size_t n_text = 0;
    int64_t lines = 0, id;
    char bytes[MOST_BYTES];
    ggl_status s = llm_hf_read_text(t, name, &t->merges_text, &n_text, err);
    if (s == GGL_OK)
        s = llm_hf_make_room_for_lines(t, n_text, 1, &lines, err);
    if (s != GGL_OK)
        return s;
    p->piece[0] = name_of_end(t);
    if (!p->piece[0].s)
        return llm_hf_no_memory(err);
    p->type[0] = LLM_TOKEN_CONTROL;
    ggl_str text = {t->merges_text, n_text};
    for (int64_t i = 1; i <= lines; i++) {
        const size_t n = take_line(&text, &id, bytes);
        if (n == 0 || id > lines || p->piece[id].s)
            return ggl_fail(err, GGL_FORMAT,
                            "line %" PRId64 " is not an id of its own up to %" PRId64
                            ", a token as Python writes it, and its length in bytes",
                            i, lines);
        p->piece[id] = llm_hf_spell_world(t, (ggl_str){bytes, n});
        p->type[id] = LLM_TOKEN_NORMAL;
        if (!p->piece[id].s)
            return llm_hf_no_memory(err);
    }
    t->is_world = true;
    t->chat = (ggl_str){chat, sizeof chat - 1};
    return llm_hf_read_sentence_pieces(t, p, size, err);
}
