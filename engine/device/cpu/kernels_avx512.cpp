#define PACELINE_ISA avx512
#define PACELINE_ISA_NAME "avx512"
#include "engine/device/cpu/kernels_body.h"
