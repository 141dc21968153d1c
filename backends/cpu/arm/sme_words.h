/* SME's instructions as words, because binutils before 2.38 and clang before 14 do not know them. d, e:
 * vectors z0 .. z31; t: a tile za0.s .. za3.s; w: 12 .. 15 for w12 .. w15; all literals. */
#ifndef CPU_SME_WORDS_H
#define CPU_SME_WORDS_H

/* clang-format off */
#define SMSTART_SM ".inst 0xd503437f\n\t"
#define SMSTART_ZA ".inst 0xd503457f\n\t"
#define SMSTART    ".inst 0xd503477f\n\t"
#define SMSTOP     ".inst 0xd503467f\n\t"
/* zero {za<t>.s, za<u>.s}: a tile of words is two of the eight of 64 bits */
#define ZERO_TILES(t, u) ".inst 0xc0080000 | 0x11 << " #t " | 0x11 << " #u "\n\t"
/* smopa za<t>.s, p1/m, p1/m, z<d>.b, z<e>.b */
#define SMOPA(t, d, e) ".inst 0xa0802400 | " #e " << 16 | " #d " << 5 | " #t "\n\t"
/* fmopa za<t>.s, p0/m, p0/m, z<d>.s, z<e>.s */
#define FMOPA(t, d, e) ".inst 0x80800000 | " #e " << 16 | " #d " << 5 | " #t "\n\t"
/* mova z<d>.s, p0/m, za<t>h.s[w<w>, i] */
#define MOVA(d, t, w, i) \
    ".inst 0xc0820000 | (" #w " - 12) << 13 | " #t " << 7 | " #i " << 5 | " #d "\n\t"
/* str za[w12, 0], [x17]; and ldr */
#define STR_ZA_X17 ".inst 0xe1200220\n\t"
#define LDR_ZA_X17 ".inst 0xe1000220\n\t"
/* clang-format on */

#endif
