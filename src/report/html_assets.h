/* SPDX-License-Identifier: MIT */
/** The files of assets/, put into the library by embed.cmake. */
#ifndef ALLOTI_REPORT_HTML_ASSETS_H
#define ALLOTI_REPORT_HTML_ASSETS_H

#include <stddef.h>

typedef struct alloti_html_asset {
    const unsigned char *bytes; /**< [size] */
    size_t size;
    unsigned char sha256[32];
} alloti_html_asset;

extern const alloti_html_asset alloti_html_template;
extern const alloti_html_asset alloti_html_style;
extern const alloti_html_asset alloti_html_script;

#endif /* ALLOTI_REPORT_HTML_ASSETS_H */
