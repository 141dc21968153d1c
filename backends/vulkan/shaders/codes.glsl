/* Products of 32 weights and 32 numbers of a column by their codes, four at a time. A column is rounded
 * to codes by blocks of 32 (quantize.comp), each three uvec4:
 *
 *     | codes 0 .. 15 | codes 16 .. 31 | scale, sum of codes 0 .. 15, sum of codes 16 .. 31, 0 |
 *
 * A code is a signed byte. With h = i / 16, weight i is scale[h] * code[i] - minimum[h], so that what a
 * block adds to a product is
 *
 *     x.scale * (sum over h of scale[h] * dot(code, x.code) - minimum[h] * x.sum[h])
 *
 * and the dot products are of whole numbers. */

#extension GL_EXT_spirv_intrinsics : require

/* OpSDotKHR of four signed bytes in a word each; capabilities DotProductKHR and
 * DotProductInput4x8BitPackedKHR. */
spirv_instruction(extensions = ["SPV_KHR_integer_dot_product"], capabilities = [6019, 6018], id = 4450)
int packed_dot(int a, int b, spirv_literal int form);

int dot4(uint a, uint b) {
    return packed_dot(int(a), int(b), 0); /* the form that has four bytes */
}

const uint X_BLOCK = 3; /* uvec4 of a block */

float x_scale(uvec4 tail) {
    return uintBitsToFloat(tail.x);
}

vec2 x_sums(uvec4 tail) {
    return vec2(int(tail.y), int(tail.z));
}

/* The codes of run r of a row become signed bytes; what would have to be taken off them is in the
 * minimum. */
void unpack_signed(uint row, uint r) {
    unpack_run(row, r);
    if (offset == 128)
        for (uint i = 0; i < 8; i++)
            code[i] ^= 0x80808080;
    else
        minimum += scale * offset;
}
