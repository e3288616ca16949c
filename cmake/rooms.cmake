# Compiler settings for all rooms, and the functions that declare a room's library and its tests.
include(GoogleTest)
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(GTest REQUIRED)

set(HINTERLAND_SANITIZE "" CACHE STRING "address (with undefined), thread, or empty")
set_property(CACHE HINTERLAND_SANITIZE PROPERTY STRINGS "" address thread)
if(NOT HINTERLAND_SANITIZE MATCHES "^(address|thread)?$")
  message(FATAL_ERROR "HINTERLAND_SANITIZE is '${HINTERLAND_SANITIZE}': it may be address, thread or empty.")
endif()
option(HINTERLAND_COVERAGE "count executed lines for gcov (make coverage)" OFF)

# ccache where it is installed; an explicit launcher wins. It takes precompiled headers only where it is told that
# their dates need not be compared.
find_program(HINTERLAND_CCACHE ccache)
mark_as_advanced(HINTERLAND_CCACHE)
if(HINTERLAND_CCACHE)
  foreach(language C CXX)
    if(NOT CMAKE_${language}_COMPILER_LAUNCHER)
      set(CMAKE_${language}_COMPILER_LAUNCHER env CCACHE_SLOPPINESS=pch_defines,time_macros ${HINTERLAND_CCACHE})
    endif()
  endforeach()
endif()

add_library(hinterland_settings INTERFACE)
target_include_directories(hinterland_settings INTERFACE ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/include)
target_compile_definitions(hinterland_settings INTERFACE _GNU_SOURCE HINTERLAND_VERSION="${PROJECT_VERSION}")
target_compile_options(hinterland_settings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Wno-attributes -Werror
  -ftls-model=initial-exec -fno-omit-frame-pointer
  -fmacro-prefix-map=${CMAKE_SOURCE_DIR}/=)  # messages of HL_CHECK name src/..., not the folder of the build
target_link_libraries(hinterland_settings INTERFACE Threads::Threads)
if(HINTERLAND_SANITIZE STREQUAL "address")
  # g++ 12 sees uninitialised values where its own instrumentation branches; the plain build keeps the warning.
  target_compile_options(hinterland_settings INTERFACE -fsanitize=address,undefined -fno-sanitize-recover=all
    -Wno-maybe-uninitialized)
  target_link_options(hinterland_settings INTERFACE -fsanitize=address,undefined)
elseif(HINTERLAND_SANITIZE STREQUAL "thread")
  target_compile_options(hinterland_settings INTERFACE -fsanitize=thread -Wno-tsan)
  target_link_options(hinterland_settings INTERFACE -fsanitize=thread)
endif()
# The sanitizers of g++ 12 refuse to start where mappings are spread over more than 28 bits.
if(HINTERLAND_SANITIZE AND EXISTS /proc/sys/vm/mmap_rnd_bits)
  file(READ /proc/sys/vm/mmap_rnd_bits random_bits)
  if(random_bits GREATER 28)
    execute_process(COMMAND setarch -R true RESULT_VARIABLE cannot_fix_layout OUTPUT_QUIET ERROR_QUIET)
    if(cannot_fix_layout)
      message(WARNING "vm.mmap_rnd_bits is above 28 and setarch -R is not permitted here: tests may die with "
        "\"unexpected memory mapping\". As root: sysctl vm.mmap_rnd_bits=28")
    else()
      set(CMAKE_CROSSCOMPILING_EMULATOR setarch -R)  # in front of each test, when it runs and when it is listed
    endif()
  endif()
endif()
# Fuzzing: libFuzzer's instrumentation with both sanitizers in everything, so that a target sees what its unit does.
option(HINTERLAND_FUZZ "build the fuzz targets for libFuzzer (make fuzz; needs clang)" OFF)
if(HINTERLAND_FUZZ)
  target_compile_options(hinterland_settings INTERFACE -fsanitize=fuzzer-no-link,address,undefined
    -fno-sanitize-recover=all -Wno-error)  # the warnings that count are those of the compiler that builds what is shipped
  target_link_options(hinterland_settings INTERFACE -fsanitize=address,undefined)
endif()
if(HINTERLAND_COVERAGE)
  target_compile_options(hinterland_settings INTERFACE --coverage -fprofile-update=atomic)
  target_compile_definitions(hinterland_settings INTERFACE HINTERLAND_COVERAGE)
  target_link_options(hinterland_settings INTERFACE --coverage)
  target_compile_definitions(hinterland_settings INTERFACE HINTERLAND_COVERAGE)
endif()

# What is not shipped need not be optimised to the last, nor described to a debugger variable by variable (the debug
# preset is for that): a third of the time of a build. Line numbers stay. The address sanitizer doubles the
# optimiser's work; at -O0 it sees no less. The thread sanitizer gains nothing.
set(HINTERLAND_LINES_ONLY $<$<CONFIG:RelWithDebInfo>:-g1>)
set(HINTERLAND_TEST_OPTIONS $<$<CONFIG:RelWithDebInfo>:-O1> ${HINTERLAND_LINES_ONLY})
if(HINTERLAND_SANITIZE STREQUAL "address")
  set(HINTERLAND_TEST_OPTIONS -O0)
endif()
if(HINTERLAND_CCACHE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  list(APPEND HINTERLAND_TEST_OPTIONS -fpch-preprocess)  # else ccache does not take what includes precompiled headers
endif()

# hl_not_hot(ROOM ...): what runs once a command, for milliseconds, is optimised as tests are, in half of the time.
function(hl_not_hot)
  foreach(room ${ARGN})
    target_compile_options(hl_${room} PRIVATE ${HINTERLAND_TEST_OPTIONS})
  endforeach()
endfunction()

# hl_own_headers(TEST ...): their options are others than those with which the tests' header was compiled (hl_test()).
function(hl_own_headers)
  foreach(test ${ARGN})
    if(TARGET ${test})  # with one thread, it is not there under the thread sanitizer
      set_target_properties(${test} PROPERTIES DISABLE_PRECOMPILE_HEADERS ON)
    endif()
  endforeach()
endfunction()

# hl_computes(TEST ...): these compute for longer than the optimiser takes, so the address sanitizer's build optimises them too.
function(hl_computes)
  if(HINTERLAND_SANITIZE STREQUAL "address")
    foreach(test ${ARGN})
      target_compile_options(${test} PRIVATE -O1)
    endforeach()
    hl_own_headers(${ARGN})
  endif()
endfunction()

# hl_together(TARGET ...): their sources are compiled eight at a time, in half of the time: the headers are read once. Of
# eight, no two may have something of the same name in their unnamed namespaces. Not for
# the rooms that run in programs, where one file is changed and built again all day.
function(hl_together)
  if(NOT TARGET ${ARGV0})
    return()  # with one thread, under the thread sanitizer
  endif()
  set_target_properties(${ARGN} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
endfunction()
# Rooms for which that holds, where they are built for the unit tests alone.
set(HINTERLAND_ROOMS_TOGETHER base kernel far far_tcp server paging page_machine fiber object trace advice cli)

# hl_room(NAME SOURCES a.cpp ... [USES room ...] [LIBRARIES lib ...])
# The static library hl_NAME out of this folder.
function(hl_room name)
  cmake_parse_arguments(ARG "" "" "SOURCES;USES;LIBRARIES" ${ARGN})
  add_library(hl_${name} STATIC ${ARG_SOURCES})
  target_link_libraries(hl_${name} PUBLIC hinterland_settings)
  foreach(room ${ARG_USES})
    target_link_libraries(hl_${name} PUBLIC hl_${room})
  endforeach()
  target_link_libraries(hl_${name} PUBLIC ${ARG_LIBRARIES})
  if(HINTERLAND_SANITIZE AND name IN_LIST HINTERLAND_ROOMS_TOGETHER)
    hl_together(hl_${name})
  endif()
endfunction()

# GoogleTest's header, and what of the standard library it includes, is read once, which spares each of a hundred files more
# than a second.
file(WRITE ${CMAKE_BINARY_DIR}/test_headers.cpp "int main() {}\n")
add_executable(hl_test_headers EXCLUDE_FROM_ALL ${CMAKE_BINARY_DIR}/test_headers.cpp)
target_link_libraries(hl_test_headers PRIVATE hinterland_settings GTest::gtest GTest::gtest_main)
target_compile_options(hl_test_headers PRIVATE ${HINTERLAND_TEST_OPTIONS})
target_precompile_headers(hl_test_headers PRIVATE <gtest/gtest.h>)

# hl_test(NAME SOURCES a_test.cpp ... USES room ... [LIBRARIES lib ...]): a GoogleTest program beside its unit.
# A test that meets a missing kernel feature skips with the reason. ONE_THREAD: the thread sanitizer cannot tell anything
# about it, and its build leaves it out, with the libraries that only such tests use.
function(hl_test name)
  cmake_parse_arguments(ARG "ONE_THREAD" "" "SOURCES;USES;LIBRARIES" ${ARGN})
  if(ARG_ONE_THREAD AND HINTERLAND_SANITIZE STREQUAL "thread")
    return()
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE hinterland_settings ${ARG_LIBRARIES} GTest::gtest GTest::gtest_main)
  target_compile_options(${name} PRIVATE ${HINTERLAND_TEST_OPTIONS})
  if(NOT HINTERLAND_SANITIZE STREQUAL "thread")  # g++ 12 warns there of what std::string does
    target_precompile_headers(${name} REUSE_FROM hl_test_headers)
  endif()
  foreach(room ${ARG_USES})
    target_link_libraries(${name} PRIVATE hl_${room})
  endforeach()
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 300 LABELS unit)
endfunction()

# What explores interleavings of a room that is compiled with HINTERLAND_STEPPED (src/base/atomic.hpp): sources of that
# room's library, and of its test, which replace the locks of hl_base.
set(HINTERLAND_EXPLORER explorer.cpp fiber.cpp happens_before.cpp scheduler.cpp)
list(TRANSFORM HINTERLAND_EXPLORER PREPEND ${CMAKE_SOURCE_DIR}/src/base/testing/)
set(HINTERLAND_LOCK_SEAMS ${CMAKE_SOURCE_DIR}/src/base/testing/lock_seams.cpp)

# hl_fuzz(NAME SOURCES a_fuzz.cpp USES room ...): a libFuzzer target beside its unit, with its seeds in
# test/fuzz/seeds/NAME. `make fuzz` builds it with clang; every other build links a plain driver that replays the
# seeds, as a test. They have one thread.
function(hl_fuzz name)
  if(HINTERLAND_SANITIZE STREQUAL "thread")
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "SOURCES;USES;LIBRARIES" ${ARGN})
  add_executable(${name}_fuzz ${ARG_SOURCES})
  target_link_libraries(${name}_fuzz PRIVATE hinterland_settings ${ARG_LIBRARIES})
  if(NOT HINTERLAND_FUZZ)
    target_compile_options(${name}_fuzz PRIVATE ${HINTERLAND_TEST_OPTIONS})
  endif()
  foreach(room ${ARG_USES})
    target_link_libraries(${name}_fuzz PRIVATE hl_${room})
  endforeach()
  set_target_properties(${name}_fuzz PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzz)
  if(HINTERLAND_FUZZ)
    target_link_options(${name}_fuzz PRIVATE -fsanitize=fuzzer)
    if(NOT TARGET fuzzers)
      add_custom_target(fuzzers)
    endif()
    add_dependencies(fuzzers ${name}_fuzz)
  else()
    target_sources(${name}_fuzz PRIVATE ${CMAKE_SOURCE_DIR}/test/fuzz/replay.cpp)
    add_test(NAME fuzz_seeds_${name} COMMAND ${name}_fuzz ${CMAKE_SOURCE_DIR}/test/fuzz/seeds/${name})
    set_tests_properties(fuzz_seeds_${name} PROPERTIES LABELS unit TIMEOUT 60)
  endif()
endfunction()
