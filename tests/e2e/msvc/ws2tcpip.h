/* Wine's declaration of this function lacks a const. */
#define inet_ntop wine_inet_ntop
#include_next <ws2tcpip.h>
#undef inet_ntop
PCSTR WINAPI inet_ntop(INT family, const void *address, PSTR text, size_t size);
