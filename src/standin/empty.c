/* SPDX-License-Identifier: MIT */
/* A library that is only there to be found; see CMakeLists.txt. */
__attribute__((visibility("default"))) extern const int EMPTY_NAME;
const int EMPTY_NAME = 0;
