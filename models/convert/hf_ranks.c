/* Byte-level BPE as tiktoken has it (load.py of the package tiktoken): a text with a line for each token, its bytes in base64 and its rank, which
 * is its id. The merges follow from the ranks. The rest is code of the tokenizer's class: how text is cut into words, and mostly the special
 * tokens. */
#include <inttypes.h>
#include <string.h>

#include "common/base64.h"
#include "common/lines.h"
#include "common/text_file.h"
#include "hf_tokenizer_impl.h"

enum { MOST_LINE = 4096 };

/* Takes the next line of *text apart. False: it is none of a token. */
static bool take_line(ggl_str *text, ggl_str *token, int64_t *rank) {
    ggl_str line;
    if (!llm_take_line(text, &line))
        return false;
    line.n -= line.n > 0 && line.s[line.n - 1] == '\r';
    const char *space = memchr(line.s, ' ', line.n);
    *token = (ggl_str){line.s, space ? (size_t)(space - line.s) : 0};
    *rank = token->n > 0 && token->n + 1 < line.n && line.n < MOST_LINE ? 0 : -1;
    for (size_t i = token->n + 1; *rank >= 0 && i < line.n; i++)
        *rank = line.s[i] >= '0' && line.s[i] <= '9' && *rank < INT32_MAX
                    ? *rank * 10 + (line.s[i] - '0')
                    : -1;
    return *rank >= 0;
}

bool llm_hf_is_ranks(const char *path) {
    char head[MOST_LINE], bytes[MOST_LINE];
    ggl_str text = {head, llm_read_head(path, head, sizeof head)}, token;
    int64_t rank;
    size_t n, wrong;
    return memchr(head, '\n', text.n) && take_line(&text, &token, &rank) &&
           llm_base64_decode((unsigned char *)bytes, &n, token, &wrong);
}

/* Reads the tokens into byte strings by rank, and their spellings into t->pieces. */
static ggl_status read_tokens(llm_hf_tokenizer *t, ggl_str text, ggl_str *token, ggl_error *err) {
    sentence_pieces *p = &t->pieces;
    for (int64_t i = 0; i < p->n; i++) {
        ggl_str digits;
        int64_t rank;
        size_t wrong, n = 0;
        unsigned char *to = NULL;
        if (!take_line(&text, &digits, &rank))
            return ggl_fail(err, GGL_FORMAT,
                            "line %" PRId64 " is not the base64 of a token and its rank", i + 1);
        if (rank >= p->n || token[rank].s)
            return ggl_fail(err, GGL_FORMAT,
                            "line %" PRId64 " has the rank %" PRId64 ", but each of %" PRId64
                            " lines needs one of its own below that",
                            i + 1, rank, p->n);
        if (!(to = ggl_arena_alloc(&t->arena, llm_base64_room(digits.n) + 1, 1)))
            return llm_hf_no_memory(err);
        if (!llm_base64_decode(to, &n, digits, &wrong) || n == 0)
            return ggl_fail(err, GGL_FORMAT, "line %" PRId64 ": '%.*s' is not base64", i + 1,
                            llm_hf_shown(digits), digits.s);
        token[rank] = (ggl_str){(char *)to, n};
        const char *spelled = llm_hf_spell(t, token[rank]);
        if (!spelled)
            return llm_hf_no_memory(err);
        p->piece[rank] = (ggl_str){spelled, strlen(spelled)};
        p->type[rank] = LLM_TOKEN_NORMAL;
    }
    return GGL_OK;
}

/* The class says how text is cut. Without it that is unknown, and the tokens would be others. */
static ggl_status check_class(const llm_hf_tokenizer *t, ggl_error *err) {
    char name[128];
    ggl_str pre;
    bool both;
    (void)llm_hf_class_or_kind(t, name, sizeof name);
    return llm_hf_pre_of_class(name, &pre, &both)
               ? GGL_OK
               : ggl_fail(err, GGL_UNSUPPORTED,
                          "a file of tiktoken; how text is cut into words is in the code of the "
                          "tokenizer's class, and %s%s%s; add a tokenizer.json, as transformers "
                          "makes it from such a folder",
                          *name ? "'" : "", *name ? name : "the folder names none",
                          *name ? "' is not known here" : "");
}

ggl_status llm_hf_read_ranks(llm_hf_tokenizer *t, const char *name, const llm_hf_vocab *size,
                             ggl_error *err) {
    size_t n = 0;
    int64_t lines = 0;
    ggl_status s = llm_hf_read_text(t, name, &t->merges_text, &n, err);
    if (s == GGL_OK)
        s = check_class(t, err);
    if (s == GGL_OK)
        s = llm_hf_read_optional(t, "added_tokens.json", &t->added, err);
    if (s == GGL_OK)
        s = llm_hf_make_room_for_lines(t, n, 0, &lines, err);
    if (s != GGL_OK)
        return s;
    ggl_str *token = ggl_arena_alloc(&t->arena, (size_t)lines + 1, sizeof *token);
    s = token ? read_tokens(t, (ggl_str){t->merges_text, n}, token, err) : llm_hf_no_memory(err);
    t->bytes = true;
    if (s == GGL_OK)
        s = llm_hf_read_sentence_pieces(t, &t->pieces, size, err);
    return s == GGL_OK ? llm_hf_merges_by_order(t, token, lines, err) : s;
}
