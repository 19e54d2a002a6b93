# The install component "bundle": what tests/gpu/run takes to a machine with a card and nothing of
# ours on it. The program, the tests with label gpu, small data, and in lib/ every shared library
# that they need and a bare machine may lack; no library of CUDA, which is opened at run time. In bin/
# are scripts that start them, with our C library (lib/libc) where the system's is too old.
#
#   cmake --preset bundle && cmake --build build/bundle && cmake --install build/bundle --component bundle --prefix DIR
#
# Any build can be bundled; preset "bundle" leaves out what is large and of no use on a card, packs
# DIR.tar.xz, and refuses more than PACELINE_BUNDLE_MB, or more than 62 MiB with the tracked files.
set(PACELINE_BUNDLE_MB 0 CACHE STRING "Largest packed bundle in MiB; 0: it is not packed")

# paceline_bundle_test(gpu.cuda test_conformance_cuda [--gtest_filter=Card/*])
#   A row of share/paceline/gpu-tests.tsv: name, program, arguments.
function(paceline_bundle_test name target)
  set_property(GLOBAL APPEND PROPERTY paceline_gpu_programs ${target})
  list(JOIN ARGN "\t" arguments)
  set_property(GLOBAL APPEND_STRING PROPERTY paceline_gpu_rows "${name}\t${target}\t${arguments}\n")
endfunction()

# The C library of the build, and scripts of the programs' names that take it where it is needed. ARGN: more of each
# install().
function(paceline_install_libc programs)
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} -E -dM -include features.h -x c++ /dev/null
    OUTPUT_VARIABLE macros COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCH "define __GLIBC_MINOR__ ([0-9]+)" found "${macros}")
  set(glibc_minor ${CMAKE_MATCH_1})
  set(glibc "2.${glibc_minor}")
  if(CMAKE_SYSTEM_PROCESSOR STREQUAL aarch64)
    set(loader ld-linux-aarch64.so.1)
    set(system_loader /lib/${loader})
  else()
    set(loader ld-linux-x86-64.so.2)
    set(system_loader /lib64/${loader})
  endif()
  foreach(name IN ITEMS ${loader} libc.so.6 libm.so.6 libmvec.so.1 libdl.so.2 librt.so.1 libanl.so.1
      libpthread.so.0 libresolv.so.2 libutil.so.1)
    execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=${name}
      OUTPUT_VARIABLE file OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
    get_filename_component(file "${file}" REALPATH)
    install(PROGRAMS ${file} DESTINATION lib/libc RENAME ${name} ${ARGN})
  endforeach()
  configure_file(${PROJECT_SOURCE_DIR}/cmake/bundle_program.sh.in ${PROJECT_BINARY_DIR}/bundle_program.sh @ONLY)
  foreach(program IN LISTS programs)
    install(PROGRAMS ${PROJECT_BINARY_DIR}/bundle_program.sh DESTINATION bin RENAME ${program} ${ARGN})
  endforeach()
endfunction()

# Programs that bring their libraries, and start with an older C library than the build's: in libexec/, with
# scripts in bin/. ARGN: more of each install(). Sets systems_own: what is left to the system, or is in lib/libc.
function(paceline_install_alone programs)
  # DT_RPATH, since DT_RUNPATH does not hold for the libraries that a library needs.
  foreach(target IN LISTS programs)
    set_target_properties(${target} PROPERTIES INSTALL_RPATH "$ORIGIN/../lib")
    target_link_options(${target} PRIVATE LINKER:--disable-new-dtags)
  endforeach()
  set(systems_own "^(ld-linux|lib(c|m|mvec|dl|rt|anl|pthread|resolv|util)\\.so)")
  set(systems_own ${systems_own} PARENT_SCOPE)
  if(CMAKE_CROSSCOMPILING)  # for which CMake finds no libraries here; finish_bundle.cmake does
    install(TARGETS ${programs} RUNTIME DESTINATION libexec ${ARGN})
  else()
    install(TARGETS ${programs} RUNTIME_DEPENDENCY_SET paceline_libraries RUNTIME DESTINATION libexec ${ARGN})
    install(RUNTIME_DEPENDENCY_SET paceline_libraries PRE_EXCLUDE_REGEXES "${systems_own}"
      LIBRARY DESTINATION lib ${ARGN})
  endif()
  paceline_install_libc("${programs}" ${ARGN})
endfunction()

# Call it after the last folder.
function(paceline_install_bundle)
  get_property(programs GLOBAL PROPERTY paceline_gpu_programs)
  if(NOT programs)  # without CUDA, or without tests
    return()
  endif()
  list(REMOVE_DUPLICATES programs)
  list(PREPEND programs paceline)
  paceline_install_alone("${programs}" COMPONENT bundle EXCLUDE_FROM_ALL)

  get_property(rows GLOBAL PROPERTY paceline_gpu_rows)
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/gpu-tests.tsv CONTENT "${rows}" @ONLY)
  set(share share/paceline)
  set(here COMPONENT bundle EXCLUDE_FROM_ALL)
  install(FILES ${PROJECT_BINARY_DIR}/gpu-tests.tsv ${PROJECT_BINARY_DIR}/generated/names.json
    DESTINATION ${share} ${here})
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/data/mnist DESTINATION ${share}/data ${here})
  paceline_install_sweeps(${share} ${here})
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/results/reference ${PROJECT_SOURCE_DIR}/results/choices
    DESTINATION ${share}/results ${here})
  install(FILES ${PROJECT_SOURCE_DIR}/tests/peers/jax_train.py DESTINATION ${share} ${here})
  install(FILES ${PROJECT_SOURCE_DIR}/tests/gpu/sections.sh DESTINATION ${share} RENAME gpu-sections.sh ${here})
  install(FILES ${PROJECT_SOURCE_DIR}/tests/gpu/several.sh DESTINATION ${share} RENAME gpu-several.sh ${here})
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/gpu-libraries.tsv CONTENT
"libcublasLt.so.${CUDAToolkit_VERSION_MAJOR}\tcuBLASLt of CUDA ${CUDAToolkit_VERSION_MAJOR}\tall
libcudnn_graph.so.9\tcuDNN 9 for CUDA ${CUDAToolkit_VERSION_MAJOR}\tall
libnvrtc.so.${CUDAToolkit_VERSION_MAJOR}\tNVRTC of CUDA ${CUDAToolkit_VERSION_MAJOR}, without which cuDNN offers less\tsome
libnccl.so.2\tNCCL 2.19 or newer, for gpu.comm.nccl and several cards\tsome
")
  install(FILES ${PROJECT_BINARY_DIR}/gpu-libraries.tsv DESTINATION ${share} ${here})
  install(PROGRAMS ${PROJECT_SOURCE_DIR}/tests/gpu/run DESTINATION . RENAME gpu-run ${here})

  configure_file(${PROJECT_SOURCE_DIR}/cmake/finish_bundle.cmake.in
    ${PROJECT_BINARY_DIR}/finish_bundle.cmake @ONLY)
  install(SCRIPT ${PROJECT_BINARY_DIR}/finish_bundle.cmake ${here})
endfunction()
