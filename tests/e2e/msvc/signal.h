/* Wine lacks this type. */
#include_next <signal.h>
typedef int sig_atomic_t;
