# Writes commit.h with the commit that is being built, only when it changed. Run at each build.
execute_process(COMMAND git -C ${SOURCE} rev-parse --short=12 HEAD
  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE status ERROR_QUIET)
set(dirty 0)
if(status EQUAL 0)
  execute_process(COMMAND git -C ${SOURCE} status --porcelain --untracked-files=no
    OUTPUT_VARIABLE changes ERROR_QUIET)
  if(changes)
    set(dirty 1)
  endif()
else()
  set(commit unknown)
endif()
file(CONFIGURE OUTPUT ${TARGET} CONTENT
  "#define PACELINE_COMMIT \"${commit}\"\n#define PACELINE_DIRTY ${dirty}\n" @ONLY)
