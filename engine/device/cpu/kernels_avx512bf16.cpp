#define PACELINE_ISA avx512bf16
#define PACELINE_ISA_NAME "avx512bf16"
#include "engine/device/cpu/kernels_body.h"
