# What the targets build: `all` what is shipped, `tests` what the tests run, `benchmarks` what bench/ measures with.

# hl_targets_below(FOLDER RESULT): all targets of a folder and of those below it.
function(hl_targets_below folder result)
  get_property(targets DIRECTORY ${folder} PROPERTY BUILDSYSTEM_TARGETS)
  get_property(folders DIRECTORY ${folder} PROPERTY SUBDIRECTORIES)
  foreach(each ${folders})
    hl_targets_below(${each} below)
    list(APPEND targets ${below})
  endforeach()
  set(${result} ${targets} PARENT_SCOPE)
endfunction()

set(shipped hinterland hinterland-lookup hinterland-preload hinterland-signal hinterland-linked hinterland-fiber hinterland-pass
  man)
set(run_by_nobody reference hl_jemalloc_private fuzzers)
set(measures_only bench_aifm bench_fork bench_large_trace bench_fiber bench_fiber_reads)  # which no test runs

hl_targets_below(${CMAKE_SOURCE_DIR} every_target)
add_custom_target(tests)
add_custom_target(benchmarks)
foreach(target ${every_target})
  get_target_property(type ${target} TYPE)
  get_target_property(folder ${target} SOURCE_DIR)
  string(FIND ${folder} ${CMAKE_SOURCE_DIR}/bench at_bench)
  if(NOT target IN_LIST shipped)
    set_target_properties(${target} PROPERTIES EXCLUDE_FROM_ALL ON)
  endif()
  if(type MATCHES "STATIC|INTERFACE" OR target IN_LIST run_by_nobody)
    continue()  # built with what uses it; but a test may read an object file that nothing links
  endif()
  if(NOT target IN_LIST measures_only)
    add_dependencies(tests ${target})
  endif()
  if(at_bench EQUAL 0 OR target IN_LIST shipped)
    add_dependencies(benchmarks ${target})
  endif()
endforeach()
