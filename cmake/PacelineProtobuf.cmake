# paceline_proto(TARGET FILE.proto): a library of the code that protoc makes of it. That code is not held to our
# warnings: its header is a system one.
#
# Protobuf's own package first, where there is one: from 22 on its targets name Abseil, which CMake's module does not.
function(paceline_proto target file)
  if(NOT TARGET protobuf::libprotobuf-lite)
    set(protobuf_MODULE_COMPATIBLE ON)
    find_package(Protobuf CONFIG QUIET)
    if(NOT TARGET protobuf::libprotobuf-lite)
      find_package(Protobuf REQUIRED)
    endif()
  endif()
  file(RELATIVE_PATH name ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR}/${file})
  string(REGEX REPLACE "proto$" "pb" name ${name})
  set(folder ${PROJECT_BINARY_DIR}/generated/proto)
  add_custom_command(OUTPUT ${folder}/${name}.cc ${folder}/${name}.h
    COMMAND ${CMAKE_COMMAND} -E make_directory ${folder}
    COMMAND protobuf::protoc --proto_path=${PROJECT_SOURCE_DIR} --cpp_out=${folder} ${CMAKE_CURRENT_SOURCE_DIR}/${file}
    DEPENDS ${file} VERBATIM)
  add_library(${target} STATIC ${folder}/${name}.cc ${folder}/${name}.h)
  target_include_directories(${target} SYSTEM PUBLIC ${folder})
  target_link_libraries(${target} PUBLIC protobuf::libprotobuf-lite)
endfunction()
