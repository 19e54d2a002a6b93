# Cross-builds for aarch64 (Grace, Graviton, Ampere) on Debian, with its cross compiler and arm64
# libraries beside this machine's own (multiarch); tests/aarch64/build makes a root with both. Tests
# run under qemu-user where it is installed.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(triplet aarch64-linux-gnu)
set(CMAKE_C_COMPILER ${triplet}-gcc)
set(CMAKE_CXX_COMPILER ${triplet}-g++)
set(CMAKE_CUDA_HOST_COMPILER ${triplet}-g++)
set(ENV{PKG_CONFIG_LIBDIR} /usr/lib/${triplet}/pkgconfig:/usr/share/pkgconfig)

find_program(PACELINE_QEMU NAMES qemu-aarch64-static qemu-aarch64)
if(PACELINE_QEMU)
  set(CMAKE_CROSSCOMPILING_EMULATOR ${PACELINE_QEMU})
endif()
