/* SPDX-License-Identifier: MIT */
/* Steps: which task is worked on, and how far. Work is done in pieces: a move of a plan, a plan, or
 * a piece of a sweep; between them the budget is looked at. */
#include <stdlib.h>

#include "compact/compactor.h"
#include "compact/run.h"
#include "core/options.h"

/** Planning takes so long per block before it was measured. */
#define PLAN_NS_PER_BLOCK 500.0

enum {
    FUTILE_MAX = 8,      /**< Plans without a move, after which a task is given up; */
    PLANS_MAX = 64,      /**< so it is after so many in all. */
    STALE_MIN = 32,      /**< Moves of a plan before it is judged, */
    STALE_RATIO = 2,     /**< and dropped if one of so many was skipped. */
    TARGET_INTERVAL = 8, /**< Moves between looks whether the aim is reached. */
    PLAN_SHARE = 2,      /**< A plan may take one of so many parts of what is left of a step. */
};

/** A step on its way. */
typedef struct work {
    allot_compactor *compactor;
    compactor_task *task;
    allot_compactor_budget budget;
    allot_compactor_step_report report;
    uint64_t began_ns;
    uint64_t looked_ns; /**< When the clock was last looked at: a piece begins. */
    bool is_over;       /**< The budget is used up. */
} work;

/** What a piece did. */
typedef struct outcome {
    uint64_t moved;
    uint64_t bytes;
    uint64_t skipped;
    uint64_t plan_ns;
    allot_compactor_state state; /**< RUNNING: the task goes on. */
    allot_status status;
} outcome;

/* ---- budgets ---- */

static uint64_t left_of(uint64_t max, uint64_t used)
{
    if (max == 0) {
        return UINT64_MAX;
    }
    return used < max ? max - used : 0;
}

static uint64_t time_left(const work *w)
{
    return left_of(w->budget.time_ns, alloti_plan_now_ns() - w->began_ns);
}

static bool is_used_up(const work *w)
{
    return time_left(w) == 0 || left_of(w->budget.bytes, w->report.bytes) == 0 ||
           left_of(w->budget.moves, w->report.moved) == 0;
}

/** Whether nothing was done in this step yet: then a piece may be longer than the budget. */
static bool is_first_piece(const work *w)
{
    return w->report.moved == 0 && w->report.skipped == 0 && w->report.plan_ns == 0;
}

/** Whether the task's own budget allows for a move. */
static bool task_affords(const compactor_task *task, uint64_t bytes)
{
    return left_of(task->options.bytes_max, task->progress.bytes) >= bytes &&
           left_of(task->options.moves_max, task->progress.moved) > 0;
}

/** Most time that the next move may take. */
static uint64_t move_time_max(const work *w)
{
    return is_first_piece(w) ? UINT64_MAX : time_left(w);
}

/** Whether a move of so many bytes has to wait for the next step. One that is larger than the
 * budget of a whole step is made as the only one of a step. */
static bool has_to_wait(const work *w, uint64_t bytes)
{
    return !is_first_piece(w) && left_of(w->budget.bytes, w->report.bytes) < bytes;
}

/* ---- aims ---- */

/** Whether a task of goal FULL has got what it was to reach. */
static bool is_reached(const work *w)
{
    const allot_compactor_task_options *const options = &w->task->options;
    allot_heap_stats stats;
    if (options->goal != ALLOT_COMPACT_GOAL_FULL ||
        (options->fragmentation_max == 0 && options->largest_min == 0) ||
        allot_heap_get_stats(w->compactor->heap, &stats) != ALLOT_STATUS_OK) {
        return false;
    }
    /* Fragmentation is told of what is free in segments: not of what is kept at hand. */
    const double size_free =
        (double)(stats.reserved_bytes.current - stats.active_bytes.current - stats.front_bytes);
    const double largest = (1 - stats.fragmentation) * size_free;
    return (options->fragmentation_max == 0 || stats.fragmentation <= options->fragmentation_max) &&
           (options->largest_min == 0 || largest + 0.5 >= (double)options->largest_min);
}

/** How a task ends of which nothing more can be done. */
static allot_compactor_state end_of(const work *w, uint64_t size_blocked)
{
    const allot_compactor_task_options *const options = &w->task->options;
    const bool has_aim = options->fragmentation_max != 0 || options->largest_min != 0;
    if (!has_aim) {
        return ALLOT_COMPACTOR_STATE_SETTLED;
    }
    if (is_reached(w)) {
        return ALLOT_COMPACTOR_STATE_REACHED;
    }
    w->task->progress.size_blocked = size_blocked;
    return size_blocked == 0 ? ALLOT_COMPACTOR_STATE_SETTLED : ALLOT_COMPACTOR_STATE_BLOCKED;
}

/* ---- pieces of a plan ---- */

static void drop_plan(compactor_task *task)
{
    allot_compact_plan_destroy(task->plan);
    task->plan = NULL;
    task->plan_at = task->plan_moved = task->plan_skipped = 0;
}

static uint64_t fixed_bytes(const allot_compact_plan *plan)
{
    uint64_t total = 0;
    for (uint32_t i = 0; i < plan->state.area_count; i++) {
        total += plan->state.areas[i].size_fixed;
    }
    return total;
}

/** Whether it is not known yet what a task would do without its budget, if it has one: it has to
 * be planned once more. */
static bool has_to_look(compactor_task *task)
{
    const bool has_to =
        !task->is_last_look && (task->options.bytes_max != 0 || task->options.moves_max != 0);
    task->is_last_look = task->is_last_look || has_to;
    return has_to;
}

/** What a plan that was made says of its task; RUNNING: it goes on. */
static allot_compactor_state verdict_of(const work *w, const allot_compact_plan *plan)
{
    compactor_task *const task = w->task;
    const bool is_full = task->options.goal == ALLOT_COMPACT_GOAL_FULL;
    if (allot_compact_plan_count(plan) == 0) {
        if (is_full && has_to_look(task)) {
            return ALLOT_COMPACTOR_STATE_RUNNING;
        }
        return is_full ? end_of(w, fixed_bytes(plan)) : ALLOT_COMPACTOR_STATE_REACHED;
    }
    if (is_full && task->options.weight > 0 && plan->forecast.benefit < 0) {
        return ALLOT_COMPACTOR_STATE_NOT_WORTH;
    }
    if (task->is_last_look) {
        return ALLOT_COMPACTOR_STATE_BUDGET;
    }
    return task->futile >= FUTILE_MAX || task->progress.plans >= PLANS_MAX
               ? ALLOT_COMPACTOR_STATE_CHURN
               : ALLOT_COMPACTOR_STATE_RUNNING;
}

/** A plan was made: it is kept if there is anything to run. */
static void judge_plan(work *w, allot_compact_plan *plan, outcome *o)
{
    o->state = verdict_of(w, plan);
    if (o->state == ALLOT_COMPACTOR_STATE_RUNNING && allot_compact_plan_count(plan) != 0) {
        w->task->plan = plan;
        w->task->futile++;
    } else {
        allot_compact_plan_destroy(plan);
    }
}

/** A bound of a plan: what is left of the task's; 0: none. */
static uint64_t bound_of(const compactor_task *task, uint64_t max, uint64_t used)
{
    return max == 0 || task->is_last_look ? 0 : left_of(max, used);
}

static void make_plan(work *w, outcome *o)
{
    allot_compactor *const compactor = w->compactor;
    compactor_task *const task = w->task;
    const allot_compact_plan_options options = {
        .struct_size = sizeof options,
        .goal = task->options.goal,
        .request = task->options.request,
        .weight = task->options.weight,
        .bytes_max = bound_of(task, task->options.bytes_max, task->progress.bytes),
        .moves_max = bound_of(task, task->options.moves_max, task->progress.moved),
    };
    allot_compact_plan *plan = NULL;
    const uint64_t began = alloti_plan_now_ns();
    const allot_status status = allot_compact_plan_create(compactor->heap, &options, &plan);
    o->plan_ns = alloti_plan_now_ns() - began;
    if (status == ALLOT_STATUS_FRAGMENTED) {
        o->state =
            has_to_look(task) ? ALLOT_COMPACTOR_STATE_RUNNING : ALLOT_COMPACTOR_STATE_BLOCKED;
    } else if (status != ALLOT_STATUS_OK) {
        o->status = status;
    } else {
        const double blocks = (double)plan->state.block_count + 1;
        compactor->plan_ns_per_block = (double)o->plan_ns / blocks;
        judge_plan(w, plan, o);
    }
}

/** All moves of a plan were made or skipped. */
static void end_plan(work *w, outcome *o)
{
    compactor_task *const task = w->task;
    const bool is_whole = task->plan_skipped == 0;
    const bool is_full = task->options.goal == ALLOT_COMPACT_GOAL_FULL;
    const uint64_t size_blocked = fixed_bytes(task->plan);
    task->futile = task->plan_moved != 0 ? 0 : task->futile;
    drop_plan(task);
    if (is_whole && !(is_full && has_to_look(task))) {
        o->state = is_full ? end_of(w, size_blocked) : ALLOT_COMPACTOR_STATE_REACHED;
    }
}

static void run_plan(work *w, outcome *o)
{
    compactor_task *const task = w->task;
    if (task->plan_at == allot_compact_plan_count(task->plan)) {
        end_plan(w, o);
        return;
    }
    allot_compact_move move;
    allot_compact_plan_get_move(task->plan, task->plan_at, &move);
    const uint64_t cost = alloti_plan_move_ns(task->plan, &task->plan->moves[task->plan_at]);
    if (!task_affords(task, move.size)) {
        o->state = ALLOT_COMPACTOR_STATE_BUDGET;
        return;
    }
    if (cost > move_time_max(w) || has_to_wait(w, move.size)) {
        w->is_over = true;
        return;
    }
    const allot_compact_run_options options = {.struct_size = sizeof options};
    allot_compact_report report = {.struct_size = sizeof report};
    o->status =
        alloti_compact_run_move(w->compactor->heap, task->plan, task->plan_at, &options, &report);
    o->moved = report.moved;
    o->bytes = report.bytes;
    o->skipped = report.skipped;
    task->plan_at++;
    task->plan_moved += report.moved;
    task->plan_skipped += report.skipped;
    if (task->plan_at >= STALE_MIN && task->plan_skipped * STALE_RATIO > task->plan_at) {
        task->futile = task->plan_moved != 0 ? 0 : task->futile;
        drop_plan(task);
    }
}

/* ---- pieces of a sweep ---- */

static void run_sweep(work *w, outcome *o)
{
    compactor_task *const task = w->task;
    if (task->sweep == NULL) {
        task->sweep = calloc(1, sizeof *task->sweep);
        if (task->sweep == NULL) {
            o->status = alloti_fail_memory(sizeof *task->sweep);
            return;
        }
    }
    if (!task_affords(task, 1)) {
        o->state = ALLOT_COMPACTOR_STATE_BUDGET;
        return;
    }
    const uint64_t of_step =
        is_first_piece(w) ? UINT64_MAX : left_of(w->budget.bytes, w->report.bytes);
    const uint64_t of_task = left_of(task->options.bytes_max, task->progress.bytes);
    sweep_piece piece = {.time_max_ns = move_time_max(w),
                         .bytes_max = of_step < of_task ? of_step : of_task,
                         .weight = task->options.weight};
    o->status = alloti_sweep_piece(w->compactor->heap, task->sweep, &piece);
    o->moved = piece.moved;
    o->bytes = piece.bytes;
    o->skipped = piece.skipped;
    if (piece.refused > of_task) {
        o->state = ALLOT_COMPACTOR_STATE_BUDGET;
    } else {
        w->is_over = piece.refused != 0;
    }
    if (task->sweep->is_done) {
        o->state = end_of(w, task->sweep->size_blocked);
    }
}

/* ---- a task ---- */

/** Whether planning is predicted to fit; where there is no other way, a whole step is for it. */
static bool can_plan(const work *w)
{
    const allot_compactor *const compactor = w->compactor;
    if (w->budget.time_ns == 0 ||
        (w->task->options.goal == ALLOT_COMPACT_GOAL_MAKE_ROOM && is_first_piece(w))) {
        return true;
    }
    allot_heap_stats stats;
    if (allot_heap_get_stats(compactor->heap, &stats) != ALLOT_STATUS_OK) {
        return false;
    }
    const double per_block =
        compactor->plan_ns_per_block == 0 ? PLAN_NS_PER_BLOCK : compactor->plan_ns_per_block;
    return per_block * (double)(stats.active.current + 1) < (double)time_left(w) / PLAN_SHARE;
}

static void run_piece(work *w, outcome *o)
{
    if (w->task->plan != NULL) {
        run_plan(w, o);
    } else if (w->task->sweep == NULL && can_plan(w)) {
        make_plan(w, o);
    } else if (w->task->options.goal == ALLOT_COMPACT_GOAL_MAKE_ROOM) {
        w->is_over = true; /* planned at the begin of the next step */
    } else {
        run_sweep(w, o);
    }
}

/** Bytes and time that the rest of a plan takes are told. */
static void tell_rest(compactor_task *task)
{
    allot_compactor_task *const progress = &task->progress;
    progress->moves_left = progress->bytes_left = 0;
    if (compactor_task_is_over(task)) {
        progress->time_left_ns = 0;
    } else if (task->plan != NULL) {
        const allot_compact_forecast *const f = &task->plan->forecast;
        progress->moves_left = allot_compact_plan_count(task->plan) - task->plan_at;
        progress->bytes_left = f->moves == 0 ? 0 : f->bytes / f->moves * progress->moves_left;
        progress->time_left_ns = f->moves == 0 ? 0 : f->time_ns / f->moves * progress->moves_left;
    }
}

/** What a piece did is added up. */
static void account(work *w, const outcome *o)
{
    allot_compactor_task *const progress = &w->task->progress;
    w->report.moved += o->moved;
    w->report.bytes += o->bytes;
    w->report.skipped += o->skipped;
    w->report.plan_ns += o->plan_ns;
    pthread_mutex_lock(&w->compactor->mutex);
    progress->moved += o->moved;
    progress->bytes += o->bytes;
    progress->skipped += o->skipped;
    progress->plans += o->plan_ns != 0;
    progress->age_ns = alloti_plan_now_ns() - w->task->added_ns;
    progress->is_late = w->task->deadline_at < w->task->added_ns + progress->age_ns;
    const allot_compactor_state state =
        o->status != ALLOT_STATUS_OK ? ALLOT_COMPACTOR_STATE_FAILED : o->state;
    if (!compactor_task_is_over(w->task) && allot_compactor_state_is_end(state)) {
        progress->status = o->status;
        alloti_compactor_end(w->compactor, w->task, state);
    }
    tell_rest(w->task);
    pthread_mutex_unlock(&w->compactor->mutex);
}

/** A piece ends: how long it took, and whether the budget is used up. */
static void end_piece(work *w)
{
    const uint64_t now = alloti_plan_now_ns();
    const uint64_t piece = now - w->looked_ns;
    w->report.piece_ns = piece > w->report.piece_ns ? piece : w->report.piece_ns;
    w->looked_ns = now;
    w->is_over = w->is_over || is_used_up(w);
}

static bool is_running(const work *w)
{
    pthread_mutex_lock(&w->compactor->mutex);
    const bool is = w->task->progress.state == ALLOT_COMPACTOR_STATE_RUNNING;
    pthread_mutex_unlock(&w->compactor->mutex);
    return is && !atomic_load_explicit(&w->compactor->is_paused, memory_order_relaxed);
}

/** Work on the task until it is over or the budget is used up. */
static void run_task(work *w)
{
    uint64_t since_look = TARGET_INTERVAL;
    while (!w->is_over && is_running(w)) {
        outcome o = {.state = ALLOT_COMPACTOR_STATE_RUNNING, .status = ALLOT_STATUS_OK};
        if (since_look >= TARGET_INTERVAL && is_reached(w)) {
            o.state = ALLOT_COMPACTOR_STATE_REACHED;
        } else {
            since_look = since_look >= TARGET_INTERVAL ? 0 : since_look;
            run_piece(w, &o);
        }
        since_look += o.moved;
        account(w, &o);
        end_piece(w);
    }
    if (compactor_task_is_over(w->task)) {
        drop_plan(w->task);
        free(w->task->sweep);
        w->task->sweep = NULL;
    }
}

/* ---- which task ---- */

static int64_t priority_of(const allot_compactor *compactor, const compactor_task *task,
                           uint64_t now)
{
    return task->options.priority + (int64_t)((now - task->added_ns) / compactor->aging_ns);
}

/** Whether a task's deadline is near: no further than twice the time predicted for it. */
static bool is_urgent(const compactor_task *task, uint64_t now)
{
    return task->deadline_at != UINT64_MAX &&
           task->deadline_at <= now + 2 * task->progress.time_left_ns;
}

/** Whether `a` comes before `b`, which is older. */
static bool comes_before(const allot_compactor *compactor, const compactor_task *a,
                         const compactor_task *b, uint64_t now)
{
    const bool a_urgent = is_urgent(a, now);
    const bool b_urgent = is_urgent(b, now);
    if (a_urgent != b_urgent) {
        return a_urgent;
    }
    return a_urgent ? a->deadline_at < b->deadline_at
                    : priority_of(compactor, a, now) > priority_of(compactor, b, now);
}

/** The task to work on; NULL if none is left. Called with `mutex` held. */
static compactor_task *choose(const allot_compactor *compactor)
{
    const uint64_t now = alloti_plan_now_ns();
    compactor_task *best = NULL;
    for (uint64_t i = 0; i < compactor->count; i++) {
        compactor_task *const task = compactor->tasks[i];
        if (!compactor_task_is_over(task) &&
            (best == NULL || comes_before(compactor, task, best, now))) {
            best = task;
        }
    }
    return best;
}

static uint64_t count_left(const allot_compactor *compactor)
{
    uint64_t left = 0;
    for (uint64_t i = 0; i < compactor->count; i++) {
        left += !compactor_task_is_over(compactor->tasks[i]);
    }
    return left;
}

static void step(work *w)
{
    allot_compactor *const compactor = w->compactor;
    w->began_ns = w->looked_ns = alloti_plan_now_ns();
    while (!w->is_over && !atomic_load_explicit(&compactor->is_paused, memory_order_relaxed)) {
        pthread_mutex_lock(&compactor->mutex);
        w->task = compactor->current = choose(compactor);
        if (w->task != NULL) {
            w->task->progress.state = ALLOT_COMPACTOR_STATE_RUNNING;
        }
        pthread_mutex_unlock(&compactor->mutex);
        if (w->task == NULL) {
            break;
        }
        run_task(w);
    }
    pthread_mutex_lock(&compactor->mutex);
    compactor->current = NULL;
    alloti_compactor_forget(compactor);
    w->report.tasks_left = count_left(compactor);
    pthread_mutex_unlock(&compactor->mutex);
    w->report.is_paused = atomic_load_explicit(&compactor->is_paused, memory_order_relaxed);
    w->report.time_ns = alloti_plan_now_ns() - w->began_ns;
}

allot_status allot_compactor_step(allot_compactor *compactor, const allot_compactor_budget *budget,
                                  allot_compactor_step_report *report)
{
    work w = {.compactor = compactor, .report = {.struct_size = sizeof w.report}};
    allot_status status = alloti_options_take(budget, sizeof w.budget, &w.budget);
    if (status == ALLOT_STATUS_OK) {
        status = heap_check_fork(compactor->heap);
    }
    if (status == ALLOT_STATUS_OK) {
        if (pthread_mutex_trylock(&compactor->step_mutex) == 0) {
            step(&w);
            pthread_mutex_unlock(&compactor->step_mutex);
        } else {
            status = alloti_fail(ALLOT_STATUS_BUSY, "another thread is in a step");
        }
    }
    if (report != NULL) {
        *report = w.report;
    }
    return status;
}
