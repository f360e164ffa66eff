"""A model that is trained in steps, paused and carried on: scikit-learn on handwritten digits.

    pip install 'farthing[sklearn]'
    python examples/0_trainable.py

Farthing calls `step` once an epoch, reports what it returns, and saves and loads the model.
"""

import json

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import train_test_split

import farthing as ft


class Digits(ft.Trainable):
    def setup(self, params):
        images, labels = load_digits(return_X_y=True)
        parts = train_test_split(images / 16, labels, test_size=0.25, random_state=0)
        self.train_images, self.valid_images, self.train_labels, self.valid_labels = parts
        self.model = SGDClassifier(learning_rate="constant", eta0=1.0, random_state=0)
        self.model.partial_fit(self.train_images[:10], self.train_labels[:10], classes=range(10))

    def apply(self, params):
        """Called again after `load`, so that what was chosen is what takes effect."""
        self.model.set_params(eta0=params["rate"], alpha=params["decay"])

    def step(self):
        self.model.partial_fit(self.train_images, self.train_labels)
        with self.trial.timing("validation"):
            return 1 - self.model.score(self.valid_images, self.valid_labels)

    def save(self, folder):
        np.savez(folder / "model.npz", coef=self.model.coef_, intercept=self.model.intercept_)
        (folder / "updates.json").write_text(json.dumps(self.model.t_))

    def load(self, folder):
        saved = np.load(folder / "model.npz")
        self.model.coef_, self.model.intercept_ = saved["coef"], saved["intercept"]
        self.model.t_ = json.loads((folder / "updates.json").read_text())


space = ft.Space(
    {"rate": ft.Float(1e-4, 1.0, log=True), "decay": ft.Float(1e-6, 1e-1, log=True)},
    fidelities={"epochs": ft.Fidelity(1, 9, integer=True, trace=True)},
)
study = ft.Study(space, minimize="error", seed=0)  # a fidelity, so the strategy is TraceKG
study.run(Digits, budget=ft.Budget(trials=18), workers=2)
print(study)
