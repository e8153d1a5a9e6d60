/* SPDX-License-Identifier: MIT */
/** A convolution put to the stand-in's cuDNN as programs do it. */
#ifndef CUDNN_CONVOLUTION_H
#define CUDNN_CONVOLUTION_H

#include <stdint.h>

enum { CONVOLUTION_CHOICES_MAX = 8 };

/** What came of it. */
typedef struct convolution_result {
    int status; /**< Of the heuristics. */
    int64_t count;
    int64_t engine[CONVOLUTION_CHOICES_MAX];
    int64_t note_count[CONVOLUTION_CHOICES_MAX];
    int note[CONVOLUTION_CHOICES_MAX];        /**< The first, where there is one. */
    int plan_status[CONVOLUTION_CHOICES_MAX]; /**< Of making a plan. */
    int64_t workspace[CONVOLUTION_CHOICES_MAX];
    int execute_status; /**< Of running the first plan. */
} convolution_result;

/** Ask for a 3 x 3 convolution of `batch` x 8 x 10 x 10, make all plans and run the first. */
convolution_result convolve(int64_t batch);

/** Elements of its three tensors. */
int64_t convolution_elements(int64_t batch);

#endif /* CUDNN_CONVOLUTION_H */
