"""Ask for a configuration, try it by your own means, tell what came of it and what it cost.

    python examples/0_ask_tell.py

For work that Farthing cannot start: a laboratory, a cluster with its own scheduler, a person.
"""

import farthing as ft

space = ft.Space({"dose": ft.Float(0, 10), "medium": ft.Choice("agar", "broth")})
study = ft.Study(space, maximize="growth", cost_unit="dollars", seed=0)

# What is known already costs nothing; what should be tried first goes in line.
study.add({"dose": 5.0, "medium": "agar"}, value=0.8, cost=0.0, tags=["from the paper"])
study.enqueue({"dose": 3.0, "medium": "broth"})


def experiment(dose, medium):
    if dose > 9:
        raise RuntimeError("nothing grew")
    return 4 - (dose - 3) ** 2 / 4 + (medium == "broth")


budget = ft.Budget(cost=100.0)
while trials := study.ask(count=2, budget=budget):
    for trial in trials:
        try:
            study.tell(trial, experiment(**trial.params), cost=12.5)
        except RuntimeError as error:
            study.tell(trial, failure=str(error), cost=12.5)

print(study)
