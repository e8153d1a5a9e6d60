# Third-party libraries, all from Debian packages. docs/dependencies.md says why each was chosen.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(ZLIB REQUIRED)
pkg_check_modules(ZSTD REQUIRED IMPORTED_TARGET libzstd)
pkg_check_modules(YAJL REQUIRED IMPORTED_TARGET yajl)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)
pkg_check_modules(POPT REQUIRED IMPORTED_TARGET popt) # the command only

# -lm, not m: the word alone could be a target of the project that uses allot.
set(ALLOT_LIBRARIES ZLIB::ZLIB PkgConfig::ZSTD PkgConfig::YAJL PkgConfig::XXHASH Threads::Threads
                    ${CMAKE_DL_LIBS} -lm)
