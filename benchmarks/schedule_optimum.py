"""The best schedule that CP-SAT (OR-Tools) finds for a day, and a bound that no schedule passes."""

from ortools.sat.python import cp_model

from sda_platform.simulation.reference import REFERENCE_TIME_NS
from sda_platform_tests.support.tasking_days import Day

SECOND_NS = 1_000_000_000


def optimum(day: Day, seconds: float) -> tuple[float, float]:
    """Value of the best schedule found within ``seconds``, and the proven upper bound.

    Optional intervals without overlap per antenna, in whole seconds; between two lies the set-up time alone. Turning is
    left out, so the bound holds for the real antennas too.
    """
    model = cp_model.CpModel()
    per_antenna: dict[str, list[cp_model.IntervalVar]] = {name: [] for name in day.antennas}
    terms = []
    for request in day.requests:
        choices = []
        length_s = request.duration_ns // SECOND_NS
        for window in day.windows[request.request_id]:
            first_s = -(-(window.aos_ns - REFERENCE_TIME_NS) // SECOND_NS)
            last_s = (min(window.los_ns, request.deadline_ns) - REFERENCE_TIME_NS) // SECOND_NS - length_s
            if last_s < first_s:
                continue
            taken = model.new_bool_var("")
            start = model.new_int_var(first_s, last_s, "")
            busy_s = length_s + int(day.antennas[window.source_id].setup_s)
            per_antenna[window.source_id].append(model.new_optional_fixed_size_interval_var(start, busy_s, taken, ""))
            choices.append(taken)
        if choices:
            model.add_at_most_one(choices)
            terms += [round(1000 * request.value) * taken for taken in choices]
    for intervals in per_antenna.values():
        model.add_no_overlap(intervals)
    model.maximize(sum(terms))
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = seconds
    solver.parameters.num_workers = 2
    solver.parameters.random_seed = 1
    solver.solve(model)
    return solver.objective_value / 1000, solver.best_objective_bound / 1000
