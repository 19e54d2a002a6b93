#define PACELINE_ISA avx2
#define PACELINE_ISA_NAME "avx2"
#include "engine/device/cpu/kernels_body.h"
