"""Tune a prompt for five dollars: model, wording, examples and temperature, with the number of questions as a fidelity.

    python examples/5_prompt.py             # some seconds

The program starts a service of its own that answers questions over HTTP and bills tokens, as those of language models
do. Its answers are made up: each model knows a share of the questions, and wording, examples and temperature change
what it gets right. For a real service change `ask`, `is_right` and `PRICES`.
"""

import argparse
import asyncio
import json
import math
import random
import threading

import farthing as ft

QUESTIONS, AT_ONCE, WORKERS = 200, 10, 2
PRICES = {"small": (0.5, 1.5), "medium": (3.0, 9.0), "large": (15.0, 45.0)}  # dollars for a million tokens, in and out
MOST_EXAMPLES = 8
KNOWS = {"small": 0.62, "medium": 0.78, "large": 0.84}
WORDINGS = {"plain": 0.0, "step by step": 0.08, "as an expert": 0.02}


async def grade(trial):
    """Asks the questions that earlier trials of this run have not asked, and reports the share of wrong answers."""
    wrong, asked = 0, 0
    if trial.resume_dir:
        wrong, asked = json.loads((trial.resume_dir / "answers.json").read_text())
    while asked < trial.fidelity["questions"]:
        questions = range(asked, min(asked + AT_ONCE, int(trial.fidelity["questions"])))
        answers = await asyncio.gather(*(ask(question, trial.params) for question in questions))
        wrong += sum(not is_right(question, answer) for question, (answer, _) in zip(questions, answers, strict=True))
        asked = questions.stop
        trial.charge(sum(dollars for _, dollars in answers))  # all at once: they are paid, whatever ends the trial
        trial.report(wrong / asked, questions=asked)
    (trial.checkpoint_dir / "answers.json").write_text(json.dumps([wrong, asked]))


async def ask(question, params):
    """The answer of the service, and its price in dollars."""
    reader, writer = await asyncio.open_connection("127.0.0.1", service["port"])
    body = json.dumps({"question": question, **params}).encode()
    writer.write(b"POST /v1/answers HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    found = json.loads((await reader.read()).partition(b"\r\n\r\n")[2])
    writer.close()
    return found["answer"], price(params["model"], found["usage"])


def price(model, usage):
    return (PRICES[model][0] * usage["in"] + PRICES[model][1] * usage["out"]) / 1e6


def is_right(question, answer):
    return answer == question % 7


# ------------------------------------------------------------
# The service, in place of a real one.


async def answer(reader, writer):
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
    asked = json.loads(await reader.readexactly(length))
    await asyncio.sleep(0.002)
    difficulty = random.Random(asked["question"]).random()  # the same for every model
    luck = random.Random(json.dumps(asked, sort_keys=True)).gauss(0.0, 0.05 + 0.15 * asked["temperature"])
    is_known = difficulty + luck < KNOWS[asked["model"]] + WORDINGS[asked["wording"]] + learnt(asked["examples"])
    body = json.dumps({"answer": asked["question"] % 7 if is_known else -1, "usage": usage_of(asked)}).encode()
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    await writer.drain()
    writer.close()


def usage_of(asked):
    return {"in": 150 + 90 * asked["examples"], "out": 120 if asked["wording"] == "step by step" else 20}


def learnt(examples):
    return 0.08 * (1.0 - math.exp(-examples / 2.0))


async def serve(is_ready):
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    service["port"] = server.sockets[0].getsockname()[1]
    is_ready.set()
    await server.serve_forever()


# ------------------------------------------------------------

arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
arguments.add_argument("--dollars", type=float, default=5.0, help="the budget, which is hard")
arguments.add_argument("--seed", type=int, default=0)
given = arguments.parse_args()

service, is_ready = {}, threading.Event()
threading.Thread(target=lambda: asyncio.run(serve(is_ready)), daemon=True).start()
is_ready.wait()

space = ft.Space(
    {
        "model": ft.Choice(*PRICES),
        "wording": ft.Choice(*WORDINGS),
        "examples": ft.Int(0, MOST_EXAMPLES),
        "temperature": ft.Float(0.0, 1.0),
    },
    fidelities={"questions": ft.Fidelity(2 * AT_ONCE, QUESTIONS, integer=True, trace=True)},
)
study = ft.Study(space, minimize="error", cost_unit="dollars", seed=given.seed)
study.enqueue({"model": "small", "wording": "plain"})  # the cheapest first: perhaps it is good enough
dearest = price("large", usage_of({"examples": MOST_EXAMPLES, "wording": "step by step"}))
in_flight = WORKERS * AT_ONCE * dearest  # what has been asked as the budget is reached is paid too
study.run(grade, budget=ft.Budget(cost=given.dollars - in_flight, hard=True), executor="async", workers=WORKERS)

best, asked = study.best, study.best.trial.fidelity["questions"]
print(best)
share = (best.value * asked + 2) / (asked + 4)  # Agresti and Coull (1998): it holds for few questions too
spread = 2 * math.sqrt(share * (1 - share) / (asked + 4))
print(f"By {asked:g} questions {max(0.0, share - spread):.0%} to {share + spread:.0%} of the answers are wrong.")
print(study.ledger)
