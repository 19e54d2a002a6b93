# paceline_library(core SOURCES a.cpp b.cpp [ENGINE] [LINKS fmt::fmt ...] [HIDDEN_LINKS ...])
#   One static library a folder, target paceline_core, seen as "engine/core/..." from the root.
#   Without SOURCES: those of this folder, and of its folders that have no CMakeLists.txt.
#   HIDDEN_LINKS are not passed on to users. ENGINE: nothing where this build has no engine.
# paceline_add_folders(*/CMakeLists.txt): each folder that has one, so that a new one need not be named.
# paceline_test(unit.house SOURCES house_test.cpp LINKS results [LABELS unit] [TIMEOUT 120] [ENVIRONMENT A=b])
#   A test that is a program of its own.
# paceline_tests(unit.results NOUNS record store [SOURCES made.cpp] [LINKS results] [PROGRAM unit.results])
#   One program of record_test.cpp, store_test.cpp and so on, and a test for each of these files
#   (unit.results.record), which runs it with that noun: `test_unit_results record`. A noun may be in a folder: gate/judge.
# paceline_register(backend mpi FACTORY make_mpi_backend LIBRARY comm_mpi [LINKS paceline_comm]
#                   [ABOUT "..."] [TASKS replica|node] [MPIRUN] [INSIDE] [BARE] [SUMS_NODE] [ALONE] [DRIFTS] [GPU_EACH]
#                   [STAND_IN ring] [GPUS] [SERIAL] [PRECISIONS "fp32|bf16"] [BACKENDS "mpi|mirrored"])
# paceline_register(driver cuda FACTORY make_cuda_driver LIBRARY device_cuda)
#   Beside the device of that name: which GPUs this process sees.
# paceline_register(backend mpi ABSENT "MPI was not found" ...)
#   Puts the name of a backend, wrapper, device or workload into the generated factory table and into names.json. LINKS:
#   makes the library, too, of this folder's sources. TASKS: a task of this backend holds one replica, or all of a node.
#   MPIRUN: its ranks are started through mpirun, not directly. INSIDE: it may stand before the slash of a stack. BARE:
#   it stands in none. SUMS_NODE: it sums inside a node by itself, so only threads of a task may stand inside of it.
#   ALONE: it has one replica. DRIFTS: it sums nothing. GPU_EACH: each replica needs a GPU of its own. STAND_IN: the
#   backend that tries its layout where there is no GPU. Of devices: GPUS: replicas are GPUs; SERIAL: one thread
#   computes; PRECISIONS and BACKENDS: the first, or first built, is the default.

set(PACELINE_WARNINGS -Wall -Wextra -Wpedantic -Werror)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  list(APPEND PACELINE_WARNINGS -Wno-restrict)  # false alarms on std::string (GCC bug 105651)
endif()
if(PACELINE_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # With sanitizers GCC 12 no longer sees that what std::regex moves is set.
  list(APPEND PACELINE_WARNINGS -Wno-maybe-uninitialized)
  if(PACELINE_SANITIZE MATCHES "thread")
    list(APPEND PACELINE_WARNINGS -Wno-tsan)  # it sees no fences; what ours order are atomics
  endif()
endif()

# What they test is in libraries; -Og compiles a third faster than -O1. Jumps between the stacks of an emulated GPU's threads are what fortified
# headers, some systems' default, take for an error.
set(PACELINE_TEST_OPTIONS "$<$<CONFIG:Release>:-Og;-U_FORTIFY_SOURCE>")
if(PACELINE_SANITIZE)
  set(PACELINE_TEST_OPTIONS -O0)  # sanitizers make GCC's optimizer twice as slow on what gtest's macros expand to
endif()

function(paceline_common target)
  target_include_directories(${target} PUBLIC ${PROJECT_SOURCE_DIR} PRIVATE ${PROJECT_BINARY_DIR}/generated)
  # std::sqrt that may set errno keeps an optimizer loop from being vectorised: 5 times slower.
  # GCC collects its garbage a tenth of the time where it may not grow to half a gigabyte.
  target_compile_options(${target} PRIVATE
    "$<$<COMPILE_LANG_AND_ID:CXX,GNU>:--param=ggc-min-heapsize=524288>"
    "$<$<COMPILE_LANGUAGE:CXX>:${PACELINE_WARNINGS};-fno-math-errno>"
    "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra;-Werror=all-warnings>")
  if(PACELINE_PCH AND CMAKE_BUILD_TYPE STREQUAL "Release")
    paceline_parse_once(${target})
  endif()
  if(PACELINE_FUZZ)
    target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link)  # lets libFuzzer see coverage
  endif()
  if(PACELINE_SANITIZE)
    target_compile_options(${target} PUBLIC
      "$<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${PACELINE_SANITIZE};-fno-omit-frame-pointer>")
    target_link_options(${target} PUBLIC -fsanitize=${PACELINE_SANITIZE})
  endif()
endfunction()

# Release only: GCC 12 breaks where a file asks for more optimization than what was parsed beforehand.
# Half of a build from scratch is the parsing of the same headers. A compiler cache does better, and a
# build without this option (as the clang part of tests/full has) sees that every file includes what it uses.
set(PACELINE_COMMON_HEADERS <algorithm> <array> <atomic> <chrono> <cstdint> <filesystem> <fstream>
  <functional> <map> <memory> <mutex> <optional> <set> <span> <sstream> <string> <string_view> <thread>
  <unordered_map> <vector> <fmt/format.h>)
function(paceline_parse_once target)
  if(target MATCHES "^(paceline|test)_headers$")
    return()
  endif()
  set(owner paceline_headers)
  if(target MATCHES "^test_")
    set(owner test_headers)
  endif()
  if(NOT TARGET ${owner})
    file(WRITE ${PROJECT_BINARY_DIR}/generated/headers.cpp "")
    add_library(${owner} OBJECT ${PROJECT_BINARY_DIR}/generated/headers.cpp)
    paceline_common(${owner})
    find_package(fmt REQUIRED)
    target_link_libraries(${owner} PRIVATE fmt::fmt)
    target_precompile_headers(${owner} PRIVATE ${PACELINE_COMMON_HEADERS})
    if(owner STREQUAL "test_headers")
      target_link_libraries(${owner} PRIVATE GTest::gtest)
      target_compile_options(${owner} PRIVATE ${PACELINE_TEST_OPTIONS})
      target_precompile_headers(${owner} PRIVATE <gtest/gtest.h>)
    endif()
  endif()
  target_precompile_headers(${target} REUSE_FROM ${owner})
  set_target_properties(${target} PROPERTIES PCH_WARN_INVALID OFF)  # files for one CPU parse for themselves
  # GCC 12 takes what was parsed beforehand for ours, and alarms about std::string are false there.
  target_compile_options(${target} PRIVATE
    "$<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-stringop-overflow;-Wno-stringop-overread;-Wno-array-bounds>")
endfunction()

# Several files to a compilation, with the same option in builds of any type: half of what such a folder takes is templates that each
# of its files makes anew. Not for folders whose loops are measured (a file with options of its own stays
# apart anyway); files that are compiled together may not give the same name to things of their own.
function(paceline_together target)
  set(files 8)
  if(ARGC GREATER 1)
    set(files ${ARGV1})
  endif()
  if(PACELINE_PCH AND PACELINE_TOGETHER)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${files})
  endif()
endfunction()

# The same for folders that wait for files, processes and people: GCC takes two thirds of the time that -O3 takes,
# and a report of 10,000 runs 3 % more.
function(paceline_cold target)
  paceline_together(${target} ${ARGN})
  target_compile_options(${target} PRIVATE "$<$<CONFIG:Release>:-O1>")
endfunction()

function(paceline_library name)
  cmake_parse_arguments(ARG "ENGINE" "" "SOURCES;LINKS;HIDDEN_LINKS" ${ARGN})
  if(ARG_ENGINE AND NOT PACELINE_ENGINE)
    return()
  endif()
  if(NOT ARG_SOURCES)
    file(GLOB ARG_SOURCES CONFIGURE_DEPENDS *.cpp)
    file(GLOB folders LIST_DIRECTORIES ON CONFIGURE_DEPENDS *)
    foreach(folder IN LISTS folders)
      if(IS_DIRECTORY ${folder} AND NOT EXISTS ${folder}/CMakeLists.txt)
        file(GLOB more CONFIGURE_DEPENDS ${folder}/*.cpp)
        list(APPEND ARG_SOURCES ${more})
      endif()
    endforeach()
  endif()
  add_library(paceline_${name} STATIC ${ARG_SOURCES})
  paceline_common(paceline_${name})
  target_link_libraries(paceline_${name} PUBLIC ${ARG_LINKS} PRIVATE ${ARG_HIDDEN_LINKS})
endfunction()

macro(paceline_add_folders)
  file(GLOB files CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} ${ARGN})
  foreach(file IN LISTS files)
    get_filename_component(folder ${file} DIRECTORY)
    add_subdirectory(${folder})
  endforeach()
endmacro()

# paceline_compile_for(avx2 device_cpu engine/device/cpu/kernels_body.h -O3 -march=x86-64-v3)
#   Compiles a file of loops once more, for an instruction set that is chosen at run time.
function(paceline_compile_for isa library body)
  get_filename_component(stem ${body} NAME_WE)
  set(source ${PROJECT_BINARY_DIR}/generated/${stem}_${isa}.cpp)
  file(CONFIGURE OUTPUT ${source} @ONLY CONTENT
    "#define PACELINE_ISA ${isa}\n#define PACELINE_ISA_NAME \"${isa}\"\n#include \"${body}\"\n")
  target_sources(paceline_${library} PRIVATE ${source})
  set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS "${ARGN}" SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

# What tests may take, for set_tests_properties(... TIMEOUT); sanitizers make it six times as long, an
# emulated processor thirty times.
function(paceline_timeout seconds)
  if(PACELINE_SANITIZE)
    math(EXPR seconds "6 * ${seconds}")
  elseif(CMAKE_CROSSCOMPILING)
    math(EXPR seconds "30 * ${seconds}")
  endif()
  set_tests_properties(${ARGN} PROPERTIES TIMEOUT ${seconds})
endfunction()

# paceline_waits(ranks faults.hung ...): tests that wait most of their time, for Slurm (slurm), or for deadlines and lost
# ranks (ranks). One at a time of each, from the beginning, so that the others use the CPUs meanwhile.
function(paceline_waits for)
  set_tests_properties(${ARGN} PROPERTIES COST 300 RESOURCE_LOCK ${for})
endfunction()

# The program test_unit_results; what it needs beside tests.
function(paceline_test_program name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINKS" ${ARGN})
  find_package(GTest REQUIRED)
  string(REPLACE "." "_" target test_${name})
  add_executable(${target} ${ARG_SOURCES})
  paceline_common(${target})
  target_compile_options(${target} PRIVATE ${PACELINE_TEST_OPTIONS})
  foreach(link IN LISTS ARG_LINKS)
    if(TARGET paceline_${link})
      list(APPEND resolved paceline_${link})
    else()
      list(APPEND resolved ${link})
    endif()
  endforeach()
  target_link_libraries(${target} PRIVATE ${resolved})
  target_compile_definitions(${target} PRIVATE
    PACELINE_SOURCE_DIR="${PROJECT_SOURCE_DIR}" PACELINE_BINARY="${PROJECT_BINARY_DIR}/bin/paceline")
endfunction()

function(paceline_add_test name target)
  cmake_parse_arguments(ARG "" "TIMEOUT" "ARGUMENTS;LABELS;ENVIRONMENT" ${ARGN})
  add_test(NAME ${name} COMMAND ${target} ${ARG_ARGUMENTS})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 600)
  endif()
  if(NOT ARG_LABELS)
    string(REGEX REPLACE "\\..*" "" ARG_LABELS ${name})
  endif()
  # The main of tests/support ends with 77 if every case was skipped, and none failed.
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS}" ENVIRONMENT "${ARG_ENVIRONMENT}" SKIP_RETURN_CODE 77)
  paceline_timeout(${ARG_TIMEOUT} ${name})
  if("gpu" IN_LIST ARG_LABELS)
    paceline_bundle_test(${name} ${target})
  endif()
  set(environment "COLUMNS=set:300")  # tables with all columns
  if(PACELINE_LAUNCHER_FOLDER)  # see tests/CMakeLists.txt
    list(APPEND environment "PATH=path_list_prepend:${PACELINE_LAUNCHER_FOLDER}")
  endif()
  set_tests_properties(${name} PROPERTIES ENVIRONMENT_MODIFICATION "${environment}")
endfunction()

function(paceline_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;LINKS;LABELS;ENVIRONMENT" ${ARGN})
  paceline_test_program(${name} SOURCES ${ARG_SOURCES} LINKS ${ARG_LINKS} test_main)
  string(REPLACE "." "_" target test_${name})
  paceline_add_test(${name} ${target} TIMEOUT ${ARG_TIMEOUT} LABELS ${ARG_LABELS} ENVIRONMENT ${ARG_ENVIRONMENT})
endfunction()

function(paceline_tests name)
  cmake_parse_arguments(ARG "" "PROGRAM;TIMEOUT" "NOUNS;SOURCES;LINKS;LABELS" ${ARGN})
  if(NOT ARG_PROGRAM)
    set(ARG_PROGRAM ${name})
  endif()
  find_package(fmt REQUIRED)
  list(TRANSFORM ARG_NOUNS APPEND _test.cpp OUTPUT_VARIABLE files)
  paceline_test_program(${ARG_PROGRAM} SOURCES ${files} ${ARG_SOURCES} LINKS ${ARG_LINKS} test_main)
  string(REPLACE "." "_" target test_${ARG_PROGRAM})
  paceline_together(${target})
  foreach(noun IN LISTS ARG_NOUNS)
    string(REPLACE "/" "." test ${noun})
    paceline_add_test(${name}.${test} ${target} ARGUMENTS ${noun} TIMEOUT ${ARG_TIMEOUT} LABELS ${ARG_LABELS})
  endforeach()
endfunction()

# paceline_same_test(conformance.stacks.failures OF conformance.stacks FILTER *Failures*)
#   Tests of a program that run apart from its others, which leave them out.
function(paceline_same_test name)
  cmake_parse_arguments(ARG "" "OF;FILTER" "" ${ARGN})
  string(REPLACE "." "_" target test_${ARG_OF})
  add_test(NAME ${name} COMMAND ${target} --gtest_filter=${ARG_FILTER})
  foreach(property LABELS TIMEOUT SKIP_RETURN_CODE ENVIRONMENT_MODIFICATION)
    get_test_property(${ARG_OF} ${property} value)
    if(value)
      set_tests_properties(${name} PROPERTIES ${property} "${value}")
    endif()
  endforeach()
endfunction()

# paceline_install_sweeps(share/paceline [COMPONENT bundle ...])
#   The specs that ship, with every script beside them: all of the folder but what is compiled.
function(paceline_install_sweeps share)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/sweeps/ DESTINATION ${share}/sweeps ${ARGN} USE_SOURCE_PERMISSIONS
    REGEX "\\.(cpp|h|md)$|/CMakeLists\\.txt$|/__pycache__$|/\\.[^/]*$" EXCLUDE)
endfunction()

# paceline_gpu_test(gpu.cuda COMMAND test_conformance_cuda --gtest_filter=Card/*)
#   On a card; elsewhere it is skipped and says why.
function(paceline_gpu_test name)
  cmake_parse_arguments(ARG "" "" "COMMAND" ${ARGN})
  add_test(NAME ${name} COMMAND ${ARG_COMMAND})
  paceline_bundle_test(${name} ${ARG_COMMAND})
  set_tests_properties(${name} PROPERTIES LABELS gpu TIMEOUT 300
    SKIP_RETURN_CODE 77)
endfunction()

function(paceline_register kind name)
  set(flags MPIRUN INSIDE BARE SUMS_NODE ALONE DRIFTS GPU_EACH GPUS SERIAL)
  set(texts ABOUT TASKS STAND_IN PRECISIONS BACKENDS)
  cmake_parse_arguments(ARG "${flags}" "FACTORY;LIBRARY;LINKS;ABSENT;PROGRAM;${texts}" "" ${ARGN})
  if(ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "paceline_register(${kind} ${name}): unknown ${ARG_UNPARSED_ARGUMENTS}")
  endif()
  if(kind STREQUAL device AND NOT (ARG_PRECISIONS AND ARG_BACKENDS))
    message(FATAL_ERROR "paceline_register(device ${name}): PRECISIONS and BACKENDS are missing; the first is the default")
  endif()
  if(NOT PACELINE_ENGINE)
    set(ARG_ABSENT "this build has no engine (-DPACELINE_ENGINE=OFF)")
  endif()
  if(ARG_LINKS AND NOT ARG_ABSENT)
    paceline_library(${ARG_LIBRARY} LINKS ${ARG_LINKS})
  endif()
  if(ARG_ABSENT)
    set(entry "{\"name\": \"${name}\", \"built\": false, \"reason\": \"${ARG_ABSENT}\"")
  else()
    set(entry "{\"name\": \"${name}\", \"built\": true, \"reason\": \"\"")
    if(ARG_FACTORY)  # workload command has none: it is a program that a spec describes
      set_property(GLOBAL APPEND PROPERTY paceline_${ARG_PROGRAM}${kind}_factories "${name}=${ARG_FACTORY}")
      set_property(GLOBAL APPEND PROPERTY paceline_${ARG_PROGRAM}table_libraries paceline_${ARG_LIBRARY})
    endif()
  endif()
  foreach(trait IN LISTS texts flags)
    if(ARG_${trait})
      string(TOLOWER ${trait} key)
      set(value "\"${ARG_${trait}}\"")
      if(trait IN_LIST flags)
        set(value true)
      endif()
      string(APPEND entry ", \"${key}\": ${value}")
    endif()
  endforeach()
  set_property(GLOBAL APPEND PROPERTY paceline_${ARG_PROGRAM}${kind}_json "${entry}}")
endfunction()

# paceline_write_tables(generated)
# paceline_write_tables(generated/without_cuda WITHOUT cuda nccl)
#   Writes names.json, its embedded copy (names.inc), and the tables of factory functions (tables.cpp) that
#   cli and the conformance programs link. WITHOUT: names that are taken for not built. WITH: a program whose
#   own registrations (paceline_register(... PROGRAM sample_plugin)) stand in it, too.
function(paceline_write_tables folder)
  cmake_parse_arguments(ARG "" "WITH" "WITHOUT" ${ARGN})
  set(generated ${PROJECT_BINARY_DIR}/${folder})
  foreach(kind backend wrapper device workload)
    get_property(rows GLOBAL PROPERTY paceline_${kind}_json)
    if(ARG_WITH)
      get_property(more GLOBAL PROPERTY paceline_${ARG_WITH}${kind}_json)
      list(APPEND rows ${more})
    endif()
    list(JOIN rows ",\n    " rows)
    foreach(name IN LISTS ARG_WITHOUT)
      string(REPLACE "{\"name\": \"${name}\", \"built\": true, \"reason\": \"\""
        "{\"name\": \"${name}\", \"built\": false, \"reason\": \"left out of this build\"" rows "${rows}")
    endforeach()
    set(${kind}_rows "${rows}")
  endforeach()
  set(names "{\n  \"backends\": [\n    ${backend_rows}],\n  \"wrappers\": [\n    ${wrapper_rows}],\n  \"devices\": [\n    ${device_rows}],\n  \"workloads\": [\n    ${workload_rows}]\n}\n")
  file(CONFIGURE OUTPUT ${generated}/names.json CONTENT "${names}" @ONLY)
  file(CONFIGURE OUTPUT ${generated}/names.inc CONTENT "R\"json(${names})json\"\n" @ONLY)
  if(NOT PACELINE_ENGINE)
    return()
  endif()
  foreach(kind backend wrapper device driver workload)
    set(declarations "")
    set(rows "")
    get_property(factories GLOBAL PROPERTY paceline_${kind}_factories)
    if(ARG_WITH)
      get_property(more GLOBAL PROPERTY paceline_${ARG_WITH}${kind}_factories)
      list(APPEND factories ${more})
    endif()
    foreach(entry IN LISTS factories)
      string(REGEX MATCH "^(.*)=(.*)$" _ "${entry}")
      if(NOT CMAKE_MATCH_1 IN_LIST ARG_WITHOUT)
        string(APPEND declarations "${kind}_factory ${CMAKE_MATCH_2};\n")
        string(APPEND rows "      {\"${CMAKE_MATCH_1}\", &${CMAKE_MATCH_2}},\n")
      endif()
    endforeach()
    set(${kind}_declarations "${declarations}")
    set(${kind}_table "${rows}")
  endforeach()
  configure_file(${PROJECT_SOURCE_DIR}/cmake/tables.cpp.in ${generated}/tables.cpp @ONLY)
endfunction()

# The library of what paceline_write_tables wrote into build/generated.
function(paceline_tables_library)
  if(NOT PACELINE_ENGINE)
    return()
  endif()
  get_property(libraries GLOBAL PROPERTY paceline_table_libraries)
  list(REMOVE_DUPLICATES libraries)
  add_library(paceline_tables STATIC ${PROJECT_BINARY_DIR}/generated/tables.cpp)
  paceline_common(paceline_tables)
  target_link_libraries(paceline_tables PUBLIC ${libraries})
endfunction()
