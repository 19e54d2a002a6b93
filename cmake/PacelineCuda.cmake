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
  # Grace Hopper, from an x86-64 machine: the Toolkit's part for servers with Arm processors.
  if(PACELINE_NVCC AND CMAKE_CROSSCOMPILING)
    get_filename_component(toolkit ${PACELINE_NVCC} REALPATH)
    get_filename_component(toolkit ${toolkit}/../.. ABSOLUTE)
    set(target ${toolkit}/targets/sbsa-linux)
    if(EXISTS ${target}/lib/libcudart_static.a)
      set(CMAKE_CUDA_FLAGS "-target-dir=sbsa-linux" CACHE STRING "Flags of nvcc")
      list(PREPEND CMAKE_PREFIX_PATH ${target})  # CMake itself looks in that of Jetson alone
    else()
      set(no_target "the CUDA Toolkit has no ${target} (NVIDIA's package cuda-cross-sbsa)")
    endif()
  endif()
  if(NOT PACELINE_NVCC)
    set(PACELINE_CUDA_ABSENT "the CUDA Toolkit was not found when this was built (nvcc)")
  elseif(no_target)
    set(PACELINE_CUDA_ABSENT ${no_target})
    message(STATUS "Without CUDA: ${no_target}")
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
    # CMake 3.25.1 marks nvToolsExt as deprecated, without looking whether it is there: CUDA 13 has none.
    set(minimum ${CMAKE_MINIMUM_REQUIRED_VERSION})
    set(CMAKE_MINIMUM_REQUIRED_VERSION 3.24)
    find_package(CUDAToolkit REQUIRED)
    set(CMAKE_MINIMUM_REQUIRED_VERSION ${minimum})
    set(PACELINE_CUDA_LIBRARIES ${CUDAToolkit_LIBRARY_DIR})
    set(PACELINE_CUDA_FOUND TRUE)
  endif()
endif()
