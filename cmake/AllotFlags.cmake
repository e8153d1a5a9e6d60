# Compiler and linker flags that every target of this project shares.
set(ALLOT_LINK_OPTIONS "")
set(ALLOT_COMPILE_OPTIONS "")
if(ALLOT_SANITIZE)
  list(APPEND ALLOT_COMPILE_OPTIONS -fsanitize=${ALLOT_SANITIZE} -fno-omit-frame-pointer
       -fno-sanitize-recover=all)
  list(APPEND ALLOT_LINK_OPTIONS -fsanitize=${ALLOT_SANITIZE})
endif()
if(ALLOT_FUZZ)
  list(APPEND ALLOT_COMPILE_OPTIONS -fsanitize=fuzzer-no-link)
endif()
if(ALLOT_COVERAGE)
  list(APPEND ALLOT_COMPILE_OPTIONS --coverage)
  list(APPEND ALLOT_LINK_OPTIONS --coverage)
endif()

function(allot_set_flags target)
  target_compile_options(
    ${target}
    PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wundef -Wstrict-prototypes
            -Wmissing-prototypes -Wcast-qual -Wvla $<$<BOOL:${ALLOT_WERROR}>:-Werror>
            ${ALLOT_COMPILE_OPTIONS})
  target_compile_definitions(${target} PRIVATE _POSIX_C_SOURCE=200809L _DEFAULT_SOURCE)
  target_link_options(${target} PRIVATE ${ALLOT_LINK_OPTIONS})
endfunction()
