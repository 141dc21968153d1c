/* Layout of stores of rows (ggl/graph.h): pages of 64 positions of one head. A block of a
 * quantized type has 32 codes of a byte or half a byte, with 128 or 8 added, and a scale of two
 * bytes. Addresses are in bytes. */

const uint F32 = 0, F16 = 1, Q4_0 = 2, Q8_0 = 8, BF16 = 30;
const uint PAGE = 64, BLOCK = 32;

/* Returns the bytes of a quantized block's codes. */
uint code_bytes(uint type) {
    return type == Q8_0 ? 32 : 16;
}

uint element_size(uint type) {
    return type == F32 ? 4 : 2;
}

bool is_quantized(uint type) {
    return type == Q8_0 || type == Q4_0;
}

/* Returns the bytes of n elements of a row. */
uint row_size(uint type, uint n) {
    return is_quantized(type) ? n / BLOCK * (code_bytes(type) + 2) : n * element_size(type);
}

/* Returns the address of element i of the row in `lane` of a page, for types that are not
 * quantized. */
uint element_at(uint type, bool keys, uint n, uint lane, uint i) {
    return (keys ? i * PAGE + lane : lane * n + i) * element_size(type);
}

/* The address of code byte k of block b of that row, of a quantized type. Bytes are in words: of four
 * bytes of a position in keys, of four positions in values. */
uint code_at(uint type, bool keys, uint lane, uint b, uint k) {
    uint n = code_bytes(type), block = PAGE * (n + 2) * b;
    return block + (keys ? (k / 4 * PAGE + lane) * 4 + k % 4 : (lane / 4 * n + k) * 4 + lane % 4);
}

/* The address of the scale of that block. */
uint scale_at(uint type, uint lane, uint b) {
    uint n = code_bytes(type);
    return PAGE * ((n + 2) * b + n) + 2 * lane;
}
