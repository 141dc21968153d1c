/* Wine lacks one macro, and defines a function that clang knows itself on ARM. */
#define _InterlockedCompareExchange128 wine_compare_exchange
#include_next <winnt.h>
#undef _InterlockedCompareExchange128
#ifndef IsReparseTagNameSurrogate
#define IsReparseTagNameSurrogate(tag) ((tag)&0x20000000)
#endif
