/* Layout of stores of rows (ggl/graph.h): pages of 64 positions of one head. A block of a
 * quantized type has 32 codes of a byte or half a byte, and a scale of two bytes. Addresses are
 * in bytes. */

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

/* For block b of that row, of a quantized type: code_at is the address of its first code,
 * code_step the distance of the others, scale_at the address of its scale. */
uint code_at(uint type, bool keys, uint n, uint lane, uint b) {
    uint size = code_bytes(type) + 2;
    return keys ? PAGE * size * b + lane : lane * row_size(type, n) + size * b + 2;
}

uint code_step(bool keys) {
    return keys ? PAGE : 1;
}

uint scale_at(uint type, bool keys, uint n, uint lane, uint b) {
    uint size = code_bytes(type) + 2;
    return keys ? PAGE * (size * b + size - 2) + 2 * lane : lane * row_size(type, n) + size * b;
}
