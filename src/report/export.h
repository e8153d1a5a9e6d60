/* SPDX-License-Identifier: MIT */
/** Writers of formats that are made from the history of a trace. */
#ifndef ALLOTI_REPORT_EXPORT_H
#define ALLOTI_REPORT_EXPORT_H

#include "trace/writer.h"

extern const alloti_writer alloti_writer_chrome;
extern const alloti_writer alloti_writer_folded;

#endif /* ALLOTI_REPORT_EXPORT_H */
