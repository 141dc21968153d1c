/* The codebooks of the IQ types (ggml-lite/quant/iq_grids.h), as uploaded by weights.c: two
 * entries per word. */

layout(set = 0, binding = CODEBOOKS) readonly buffer Codebooks { uint codebooks[]; };

uint entry(uint first, uint i) {
    i += first;
    return codebooks[i >> 1] >> 16 * (i & 1) & 0xffff;
}

uint iq2_xxs_grid(uint i) {
    return entry(0, i);
}

uint iq2_xs_grid(uint i) {
    return entry(256, i);
}

uint iq2_s_grid(uint i) {
    return entry(768, i);
}

uint iq3_xxs_grid(uint i) {
    return entry(1792, i);
}

uint iq3_s_grid(uint i) {
    return entry(2048, i);
}

uint iq1_grid(uint i) {
    return entry(2560, i);
}
