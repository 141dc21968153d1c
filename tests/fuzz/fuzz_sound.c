/* WAV files and raw samples: samples or an error, and as many samples as were announced. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "sound/sound.h"
#include "../unit/wav_bytes.h"

static void read_sound(const llm_sound_params *p) {
    static float x[1 << 12];
    llm_sound *s;
    ggl_error err = {0};
    int64_t n = 0, got = 1;
    if (llm_sound_open(&s, "fuzz", p, &err) != GGL_OK) {
        require(!s && err.status != GGL_OK && strncmp(err.msg, "fuzz: ", 6) == 0);
        return;
    }
    const int64_t known = llm_sound_n_samples(s);
    ggl_status st = GGL_OK;
    while (st == GGL_OK && got > 0 && n < 100000) {
        st = llm_sound_read(s, x, 1 + n % 4096, &got, &err);
        for (int64_t i = 0; i < got && st == GGL_OK; i++)
            require(isfinite(x[i]));
        n += got;
    }
    require(st != GGL_OK || got > 0 || known < 0 || known == n);
    require(st == GGL_OK || strncmp(err.msg, "fuzz: ", 6) == 0);
    require(strlen(llm_sound_note(s)) < 200 && strlen(llm_sound_damage(s)) < 63);
    llm_sound_close(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    llm_sound_params p = {.data = size ? data : (const uint8_t *)"", .n_data = size};
    read_sound(&p);
    p.rate = 16000;
    if (size < 400) /* a filter for each rate takes some time */
        read_sound(&p);
    p.raw = size % 2 ? LLM_SOUND_S16LE : LLM_SOUND_F32LE;
    p.raw_channels = 1 + (int)(size % 3);
    read_sound(&p);
    return 0;
}

bool fuzz_seed(int k, uint8_t **data, size_t *size) {
    static const struct {
        int tag, bits;
        bool extensible, is_long;
        size_t n;
    } seeds[] = {{1, 16, false, false, 40}, {1, 8, true, false, 33},   {1, 24, false, true, 600},
                 {1, 32, true, true, 400},  {3, 32, false, false, 32}, {3, 64, true, false, 64}};
    static wav_bytes w;
    static const unsigned char zeros[1000];
    if (k >= (int)(sizeof seeds / sizeof *seeds))
        return false;
    wav_begin(&w, seeds[k].is_long ? "RF64" : "RIFF", seeds[k].is_long ? UINT32_MAX : 1000);
    if (seeds[k].is_long) {
        wav_chunk(&w, "ds64", 28);
        wav_number(&w, 1000, 8);
        wav_number(&w, seeds[k].n, 8);
        wav_put(&w, zeros, 12);
    }
    wav_data(&w, "LIST", zeros, 5);
    wav_format(&w, seeds[k].tag, 1 + k % 2, 16000, seeds[k].bits / 8 * (1 + k % 2), seeds[k].bits,
               seeds[k].extensible);
    wav_data(&w, "data", zeros, seeds[k].n);
    *size = w.n;
    *data = malloc(w.n);
    require(*data != NULL);
    memcpy(*data, w.data, w.n);
    return true;
}
