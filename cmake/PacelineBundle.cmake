# The install component "bundle": what tests/gpu/run takes to a machine with a card and nothing of
# ours on it. The program, the tests with label gpu, small data, and in lib/ every shared library
# that they need and a bare machine may lack; no library of CUDA, which is opened at run time.
#
#   cmake --preset bundle && cmake --build build/bundle && cmake --install build/bundle --component bundle --prefix DIR
#
# Any build can be bundled; preset "bundle" leaves out what is large and of no use on a card, and
# refuses to install more than PACELINE_BUNDLE_MB.
set(PACELINE_BUNDLE_MB 0 CACHE STRING "Largest installed bundle in MiB; 0: of any size")

# paceline_bundle_test(gpu.cuda test_conformance_cuda [--gtest_filter=Card/*])
#   A row of share/paceline/gpu-tests.tsv: name, program, arguments.
function(paceline_bundle_test name target)
  set_property(GLOBAL APPEND PROPERTY paceline_gpu_programs ${target})
  list(JOIN ARGN "\t" arguments)
  set_property(GLOBAL APPEND_STRING PROPERTY paceline_gpu_rows "${name}\t${target}\t${arguments}\n")
endfunction()

# Call it after the last folder.
function(paceline_install_bundle)
  get_property(programs GLOBAL PROPERTY paceline_gpu_programs)
  if(NOT programs)  # without CUDA, or without tests
    return()
  endif()
  list(REMOVE_DUPLICATES programs)
  list(PREPEND programs paceline)
  # DT_RPATH, since DT_RUNPATH does not hold for the libraries that a library needs.
  foreach(target IN LISTS programs)
    set_target_properties(${target} PROPERTIES INSTALL_RPATH "$ORIGIN/../lib")
    target_link_options(${target} PRIVATE LINKER:--disable-new-dtags)
  endforeach()
  set(systems_own "^(ld-linux|lib(c|m|dl|rt|pthread|resolv|util)\\.so)")
  if(CMAKE_CROSSCOMPILING)  # for which CMake finds no libraries here; finish_bundle.cmake does
    install(TARGETS ${programs} RUNTIME DESTINATION bin COMPONENT bundle EXCLUDE_FROM_ALL)
  else()
    install(TARGETS ${programs} RUNTIME_DEPENDENCY_SET paceline_bundle
      RUNTIME DESTINATION bin COMPONENT bundle EXCLUDE_FROM_ALL)
    install(RUNTIME_DEPENDENCY_SET paceline_bundle PRE_EXCLUDE_REGEXES "${systems_own}"
      LIBRARY DESTINATION lib COMPONENT bundle EXCLUDE_FROM_ALL)
  endif()

  get_property(rows GLOBAL PROPERTY paceline_gpu_rows)
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/gpu-tests.tsv CONTENT "${rows}" @ONLY)
  set(share share/paceline)
  set(here COMPONENT bundle EXCLUDE_FROM_ALL)
  install(FILES ${PROJECT_BINARY_DIR}/gpu-tests.tsv ${PROJECT_BINARY_DIR}/generated/names.json
    DESTINATION ${share} ${here})
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/data/mnist DESTINATION ${share}/data ${here})
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/sweeps/ DESTINATION ${share}/sweeps ${here}
    FILES_MATCHING PATTERN "*.json")
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/results/reference DESTINATION ${share}/results ${here})
  install(PROGRAMS ${PROJECT_SOURCE_DIR}/tests/peers/torch_train.py ${PROJECT_SOURCE_DIR}/tests/peers/tuned
    DESTINATION ${share}/peers ${here})
  install(FILES ${PROJECT_SOURCE_DIR}/tests/gpu/sections.sh DESTINATION ${share} RENAME gpu-sections.sh ${here})
  install(PROGRAMS ${PROJECT_SOURCE_DIR}/tests/gpu/run DESTINATION . RENAME gpu-run ${here})

  configure_file(${PROJECT_SOURCE_DIR}/cmake/finish_bundle.cmake.in
    ${PROJECT_BINARY_DIR}/finish_bundle.cmake @ONLY)
  install(SCRIPT ${PROJECT_BINARY_DIR}/finish_bundle.cmake ${here})
endfunction()
