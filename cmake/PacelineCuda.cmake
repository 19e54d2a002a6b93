# Finds the CUDA Toolkit. Sets PACELINE_CUDA_FOUND, else PACELINE_CUDA_ABSENT (why), and
# PACELINE_CUDA_LIBRARIES, the folder in which its libraries lie at run time.
#
# Nothing of it but the static runtime is linked: cuDNN, cuBLASLt, NCCL, NVML and the driver are
# opened when a GPU is asked for, so that the program starts without them.
if(NOT PACELINE_ENGINE)
  set(PACELINE_CUDA_ABSENT "this build has no engine (-DPACELINE_ENGINE=OFF)")
elseif(NOT PACELINE_CUDA)
  set(PACELINE_CUDA_ABSENT "switched off (-DPACELINE_CUDA=OFF)")
else()
  include(CheckLanguage)
  find_program(PACELINE_NVCC nvcc HINTS ENV CUDACXX ENV CUDA_HOME ENV CUDA_PATH
    PATHS /usr/local/cuda /usr/lib/cuda PATH_SUFFIXES bin)
  if(NOT PACELINE_NVCC)
    set(PACELINE_CUDA_ABSENT "the CUDA Toolkit was not found when this was built (nvcc)")
  else()
    set(CMAKE_CUDA_COMPILER ${PACELINE_NVCC})
    if(NOT CMAKE_CUDA_ARCHITECTURES)
      set(CMAKE_CUDA_ARCHITECTURES 90)
    endif()
    set(CMAKE_CUDA_STANDARD 20)
    set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
    enable_language(CUDA)
    # CMake 3.25 knows this compiler's standards up to 17 only.
    if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
      set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
      set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
    endif()
    find_package(CUDAToolkit REQUIRED)
    set(PACELINE_CUDA_LIBRARIES ${CUDAToolkit_LIBRARY_DIR})
    set(PACELINE_CUDA_FOUND TRUE)
  endif()
endif()
