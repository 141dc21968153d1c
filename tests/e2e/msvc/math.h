/* Wine lacks some functions of C99. */
#include_next <math.h>
float fmaf(float a, float b, float c);
double fma(double a, double b, double c);
double erfc(double x);
