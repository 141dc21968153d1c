/* SentencePiece's tokenizer.model: whatever opens must have whole pieces. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "convert/sentence_pieces.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    sentence_pieces p;
    ggl_error err = {0};
    size_t sum = 0;
    const ggl_status s = llm_sentence_pieces_read_model(&p, data, size, &err);
    for (int64_t i = 0; s == GGL_OK && i < p.n; i++) {
        if (p.piece[i].n == 0 || p.type[i] < LLM_TOKEN_NORMAL || p.type[i] > LLM_TOKEN_BYTE)
            abort();
        for (size_t k = 0; k < p.piece[i].n; k++)
            sum += (unsigned char)p.piece[i].s[k];
    }
    for (size_t k = 0; s == GGL_OK && k < p.charsmap.n; k++)
        sum += (unsigned char)p.charsmap.s[k];
    const bool ids = p.bos < p.n && p.eos < p.n && p.unknown < p.n && p.pad < p.n;
    if ((s == GGL_OK && (!ids || sum == SIZE_MAX)) || (s != GGL_OK && !err.msg[0]))
        abort();
    llm_sentence_pieces_fini(&p);
    return 0;
}

/* Seed k: a BPE and a Unigram model of three pieces, with a normalizer. */
bool fuzz_seed(int k, uint8_t **data, size_t *size) {
    static const char pieces[] = "\n\016\n\005<unk>\025\0\0\0\0\030\002"
                                 "\n\010\n\001a\025\0\0\200\277"
                                 "\n\017\n\006<0x41>\025\0\0\0\0\030\006"
                                 "\032\023\n\002id\022\011\4\0\0\0\0\0\0\0\0\030\001\040\0"
                                 "\022\005\030\002\330\002\002";
    if (k >= 2)
        return false;
    *size = sizeof pieces - 1;
    *data = malloc(*size);
    if (!*data)
        abort();
    memcpy(*data, pieces, *size);
    (*data)[*size - 4] = (uint8_t)(2 - k);
    return true;
}
