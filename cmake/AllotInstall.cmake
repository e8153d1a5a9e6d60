# What `cmake --install` puts where: libraries, headers, the CMake package (allot::shared and
# allot::static), allot.pc and the command. Man pages and completions are in their own folders.
include(CMakePackageConfigHelpers)

set(ALLOT_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/allot)

install(DIRECTORY include/allot ${PROJECT_BINARY_DIR}/include/allot
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")

# Two export sets: who uses the shared library needs none of the libraries below the static one.
foreach(kind static shared)
  install(TARGETS allot-${kind} EXPORT allot-${kind}
          ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(EXPORT allot-${kind} NAMESPACE allot:: FILE allot-${kind}.cmake
          DESTINATION ${ALLOT_CMAKE_DIR})
endforeach()
install(TARGETS allot RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})

configure_package_config_file(cmake/allot-config.cmake.in allot-config.cmake
                              INSTALL_DESTINATION ${ALLOT_CMAKE_DIR})
# Before 1.0 a new minor version may change the interface.
write_basic_package_version_file(allot-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/allot-config.cmake
              ${PROJECT_BINARY_DIR}/allot-config-version.cmake DESTINATION ${ALLOT_CMAKE_DIR})

configure_file(cmake/allot.pc.in allot.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/allot.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
