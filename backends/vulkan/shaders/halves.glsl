/* Converts to f16, to nearest even. */
uint half_bits(float f) {
    uint u = floatBitsToUint(f), a = u & 0x7fffffff, sign = u >> 16 & 0x8000;
    if (a > 0x7f800000)
        return sign | 0x7e00 | a >> 13 & 0x3ff;
    if (a >= 0x477ff000) /* from halfway to 65536 on */
        return sign | 0x7c00;
    if (a < 0x38800000) { /* below the smallest normal f16: units of 2^-24 */
        uint shift = 126 - (a >> 23), m = a & 0x7fffff | 0x800000;
        if (shift > 24)
            return sign;
        uint rest = m & (1 << shift) - 1, middle = 1 << shift - 1;
        m >>= shift;
        return sign | m + (rest > middle || rest == middle && (m & 1) != 0 ? 1 : 0);
    }
    return sign | a + 0xfff + (a >> 13 & 1) - (112 << 23) >> 13;
}
