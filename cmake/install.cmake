# What `cmake --install` puts where. lib/ is not split by architecture: the command finds its library at
# ../lib/libhinterland-preload.so, so that an installed tree can be moved.
set(CMAKE_INSTALL_LIBDIR lib)
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

foreach(target hinterland hinterland-preload hinterland-signal hinterland-linked hinterland-pass)
  if(TARGET ${target})
    install(TARGETS ${target}
      RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR}
      LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  endif()
endforeach()
if(TARGET hinterland-fiber)
  # hinterland::fiber
  set_target_properties(hinterland-fiber PROPERTIES EXPORT_NAME fiber)
  target_include_directories(hinterland-fiber INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_compile_features(hinterland-fiber INTERFACE cxx_std_20)
  install(TARGETS hinterland-fiber EXPORT hinterland-targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  configure_file(${CMAKE_SOURCE_DIR}/cmake/hinterland-fiber.pc.in ${CMAKE_BINARY_DIR}/hinterland-fiber.pc @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/hinterland-fiber.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endif()
if(TARGET hinterland-lookup)
  install(TARGETS hinterland-lookup LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/hinterland/operators)
endif()
install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/hinterland DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

# For users of the headers: find_package(hinterland) and pkg-config hinterland.
add_library(hinterland_headers INTERFACE)
set_target_properties(hinterland_headers PROPERTIES EXPORT_NAME headers)
target_include_directories(hinterland_headers INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
install(TARGETS hinterland_headers EXPORT hinterland-targets)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/hinterland)
install(EXPORT hinterland-targets NAMESPACE hinterland:: DESTINATION ${package_dir})
configure_package_config_file(${CMAKE_SOURCE_DIR}/cmake/hinterland-config.cmake.in
  ${CMAKE_BINARY_DIR}/hinterland-config.cmake
  INSTALL_DESTINATION ${package_dir}
  PATH_VARS CMAKE_INSTALL_BINDIR CMAKE_INSTALL_LIBDIR)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/hinterland-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/hinterland-config.cmake ${CMAKE_BINARY_DIR}/hinterland-config-version.cmake
  DESTINATION ${package_dir})
configure_file(${CMAKE_SOURCE_DIR}/cmake/hinterland.pc.in ${CMAKE_BINARY_DIR}/hinterland.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/hinterland.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

configure_file(${CMAKE_SOURCE_DIR}/cmake/hinterland-runtime.pc.in ${CMAKE_BINARY_DIR}/hinterland-runtime.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/hinterland-runtime.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# Man pages are generated from the option table while building; a tree without them installs without them.
install(DIRECTORY ${CMAKE_BINARY_DIR}/man/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1
  OPTIONAL FILES_MATCHING PATTERN "*.1")

# Those of the library are written by hand: a page, and a reference to it for each other name of its NAME line.
foreach(page hl_hint hl_region)
  file(STRINGS ${CMAKE_SOURCE_DIR}/docs/man/${page}.3 names REGEX "^hl_.* \\\\- ")
  string(REGEX MATCHALL "hl_[a-z_]+" names "${names}")
  list(REMOVE_ITEM names ${page})
  foreach(name ${names})
    file(WRITE ${CMAKE_BINARY_DIR}/man3/${name}.3 ".so man3/${page}.3\n")
  endforeach()
endforeach()
install(DIRECTORY ${CMAKE_SOURCE_DIR}/docs/man/ ${CMAKE_BINARY_DIR}/man3/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man3
  FILES_MATCHING PATTERN "*.3")

configure_file(${CMAKE_SOURCE_DIR}/packaging/hinterland-server.service.in
  ${CMAKE_BINARY_DIR}/hinterland-server.service @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/hinterland-server.service DESTINATION lib/systemd/system)
# For gdb: brings far pages that a command asks for (docs/running.md).
install(FILES ${CMAKE_SOURCE_DIR}/packaging/hinterland-gdb.py DESTINATION share/hinterland)
install(FILES packaging/hinterland.sysusers DESTINATION lib/sysusers.d RENAME hinterland.conf)
install(FILES LICENSE NOTICE CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
