/* Dot products of four signed bytes. */
#ifdef IDOT
#extension GL_EXT_spirv_intrinsics : require

/* OpSDotKHR on four signed bytes per word; capabilities DotProductKHR and
 * DotProductInput4x8BitPackedKHR. */
spirv_instruction(extensions = ["SPV_KHR_integer_dot_product"], capabilities = [6019, 6018], id = 4450)
int packed_dot(int a, int b, spirv_literal int form);

int dot4(uint a, uint b) {
    return packed_dot(int(a), int(b), 0); /* format 0: four packed bytes */
}
#else /* for devices without them, where no constant lets it be called */
int dot4(uint a, uint b) {
    int sum = 0;
    for (int i = 0; i < 32; i += 8)
        sum += bitfieldExtract(int(a), i, 8) * bitfieldExtract(int(b), i, 8);
    return sum;
}
#endif
