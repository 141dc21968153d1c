/* Which heads of attention show when a token is heard, of the published speech models. Files in ggml's format before GGUF do not name them, nor the
 * model; its sizes tell which one it is, but for the first two large ones, of which the second is more common. The numbers are those of the
 * published program (openai/whisper, __init__.py). */
#include "legacy.h"

#include <stddef.h>

static const struct {
    int64_t n_layer, n_state, n_vocab; /* of the decoder */
    const char *heads;                 /* layer, head, layer, head, .. */
} published[] = {
    {4, 384, 51864, "1,0,2,0,2,5,3,0,3,1,3,2,3,3,3,4"},
    {4, 384, 51865, "2,2,3,0,3,2,3,3,3,4,3,5"},
    {6, 512, 51864, "3,3,4,7,5,1,5,5,5,7"},
    {6, 512, 51865, "3,1,4,2,4,3,4,7,5,1,5,2,5,4,5,6"},
    {12, 768, 51864,
     "6,6,7,0,7,3,7,8,8,2,8,5,8,7,9,0,9,4,9,8,9,10,10,0,10,1,10,2,10,3,10,6,10,11,11,2,11,4"},
    {12, 768, 51865, "5,3,5,9,8,0,8,4,8,7,8,8,9,0,9,7,9,9,10,5"},
    {24, 1024, 51864,
     "11,4,14,1,14,12,14,14,15,4,16,0,16,4,16,9,17,12,17,14,18,7,18,10,18,15,20,0,20,3,20,9,20,14,"
     "21,12"},
    {24, 1024, 51865, "13,15,15,4,15,15,16,1,20,0,23,4"},
    {32, 1280, 51865,
     "10,12,13,17,16,11,16,12,16,13,17,15,17,16,18,4,18,11,18,19,19,11,21,2,21,3,22,3,22,9,22,12,"
     "23,5,23,7,23,13,25,5,26,1,26,12,27,15"},
    {32, 1280, 51866, "7,0,10,17,12,18,13,12,16,1,17,14,19,11,21,4,24,1,25,6"},
    {4, 1280, 51866, "2,4,2,11,3,3,3,6,3,11,3,14"},
};

const char *llm_legacy_heads(int64_t n_layer, int64_t n_head, int64_t n_state, int64_t n_vocab) {
    enum { OF_HEAD = 64 }; /* numbers of each head */
    for (size_t k = 0; k < sizeof published / sizeof *published; k++)
        if (published[k].n_layer == n_layer && published[k].n_state == n_state &&
            published[k].n_vocab == n_vocab && n_state == OF_HEAD * n_head)
            return published[k].heads;
    return NULL;
}
