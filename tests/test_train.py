"""The training loop: what it learns, shows and saves, and how it ends and goes on."""

import io
import os
import signal
import sys

import numpy as np
import pytest

import fgrad
import fgrad.numpy as fnp
from fgrad import nn, optim, train, tree
from fgrad.errors import ArgumentError, DataError, RangeError, ShapeError
from fgrad.io import Checkpointer
from fgrad.train import progress

RNG = np.random.default_rng(0)
X = RNG.normal(size=(70, 3)).astype("f4")
Y = (X.sum(1) > 0).astype("i4")
MODEL = nn.Sequential(nn.Dense(6), nn.tanh, nn.Dropout(0.2), nn.Dense(2))
OPTIONS = dict(loss=nn.softmax_cross_entropy_with_integer_labels, optimizer=optim.adam(0.05),
               size=16, metrics={"accuracy": train.correct}, progress=False)


def fit(epochs=4, data=(X, Y), **options):
    return train.fit(MODEL, data, epochs=epochs, **{**OPTIONS, **options})


def bits(run):
    return [np.asarray(leaf).tobytes() for leaf in tree.leaves(run)]


# ---------------------------------------------------------------------------- what is learned

def test_a_model_learns_and_the_history_says_so():
    done = fit(epochs=15, validation=(X, Y))
    assert done.ended == "done" and len(done.history) == 15
    assert list(done.history[0]) == ["loss", "accuracy", "validation accuracy", "validation loss"]
    first, *_, last = done.history
    assert last["validation accuracy"] > 0.9 and last["loss"] < first["loss"]


def test_one_seed_is_one_run_and_a_key_is_a_seed():
    assert bits(fit(seed=3).run) == bits(fit(seed=fgrad.random.key(3)).run) != bits(fit(seed=4).run)
    assert bits(fit(prefetch=0).run) == bits(fit(prefetch=3).run)


def test_training_may_begin_with_given_parameters():
    first = fit()
    assert fit(epochs=1, params=first.params).history[0]["loss"] < fit(epochs=1).history[0]["loss"]


def test_running_statistics_are_in_the_state():
    model = nn.Sequential(nn.Dense(4), nn.BatchNorm(), nn.Dense(2))
    done = train.fit(model, (X, Y), epochs=2, **OPTIONS)
    assert np.asarray(done.state["batchnorm1"]["mean"]).any()


def test_a_step_function_does_as_it_likes():
    def step(run, batch, key):
        x, = batch
        loss, grad = fgrad.value_and_grad(lambda m: fnp.mean((x - m) ** 2))(run["m"])
        return {"m": run["m"] - 0.1 * grad, "steps": run["steps"] + 1}, {"loss": loss}
    done = train.fit(step, (X,), start={"m": np.zeros(3, "f4"), "steps": 0}, epochs=20, size=35,
                     validation=lambda run: {"far": np.abs(run["m"] - X.mean(0)).max()},
                     progress=False)
    assert int(done.run["steps"]) == 40 and done.history[-1]["validation far"] < 0.05


def test_transforms_reach_the_batches():
    done = train.fit(nn.Dense(1), (X, Y), loss=lambda out, y: fnp.abs(out[:, 0]),
                     optimizer=optim.sgd(0.0), epochs=1, progress=False,
                     transforms=lambda batch, rng: (batch[0] * 0, batch[1]))
    assert done.history[0]["loss"] == 0


# ---------------------------------------------------------------------------- evaluation

@pytest.mark.parametrize("rows, size", [(1, 1), (1, 5), (7, 3), (6, 3), (70, 64), (70, 256)])
def test_ragged_batches_count_each_row_once(rows, size):
    params, state = MODEL.init(fgrad.random.key(0), X[:1])
    x, y = X[:rows], Y[:rows]
    metrics = {"a": train.correct, "rows": lambda o, y: o}
    out = train.evaluate(MODEL, params, state, x, y, metrics, size=size)
    logits = np.asarray(MODEL.apply(params, state, x)[0])
    assert np.isclose(out["a"], (logits.argmax(1) == y).mean())
    assert np.isclose(out["rows"], logits.mean(), atol=1e-5)


def test_rows_that_fill_up_do_not_count_even_where_they_are_nan():
    def mean_of(metric, x):
        metrics = {"m": lambda outputs, y: metric(outputs[:, 0])}
        return train.evaluate(nn.Flatten(), {}, {}, x, np.zeros(3), metrics, size=2)["m"]

    x = np.array([[np.nan], [1.0], [2.0]], "f4")
    assert np.isnan(mean_of(lambda o: o * 0 + 1, x[::-1]))             # row 2 is NaN itself
    x = np.array([[1.0], [2.0], [3.0]], "f4")
    assert mean_of(lambda o: o, x) == 2.0


def test_a_second_evaluation_does_not_trace_again():
    traces = []

    def metric(outputs, y):
        traces.append(1)
        return train.correct(outputs, y)
    params, state = MODEL.init(fgrad.random.key(0), X[:1])
    measure = train.evaluator(MODEL, {"a": metric}, size=32)
    measure(params, state, X, Y)
    before = len(traces)
    assert before <= 2 and measure(params, state, X, Y) == measure(params, state, X, Y)
    assert len(traces) == before


def test_a_metric_that_takes_the_mean_itself_is_explained():
    with pytest.raises(ShapeError) as caught:
        fit(metrics={"accuracy": nn.accuracy})
    message = str(caught.value)
    assert message.startswith("the metric 'accuracy' gives one number per example.\n")
    assert "given      shape () for 16 examples" in message
    assert "fix        leave out the mean" in message


# ---------------------------------------------------------------------------- ends

def test_patience_ends_early_with_the_best_run():
    wrong = 1 - Y                                         # validation gets worse as training goes
    done = fit(epochs=50, validation=(X, wrong), patience=3)
    losses = [row["validation loss"] for row in done.history]
    assert done.ended == "early" and len(losses) < 50
    assert losses.index(min(losses)) == len(losses) - 4
    assert bits(done.run) == bits(fit(epochs=len(losses) - 3).run)


def test_a_monitor_that_is_not_there_lists_what_is():
    with pytest.raises(ArgumentError, match="there is no 'speed' in the history"):
        fit(patience=1, monitor="speed")


def interrupted_at(n, how):
    """A transform that ends the run at its n-th batch."""
    seen = []

    def transform(batch, rng):
        seen.append(1)
        if len(seen) == n:
            how()
        return batch
    return transform


def ctrl_c():
    signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize("n", [1, 2, 4, 5, 7, 16])
def test_ctrl_c_saves_and_ends_and_the_run_goes_on_bit_for_bit(tmp_path, n):
    straight = fit(validation=(X, Y))
    part = fit(validation=(X, Y), checkpoints=tmp_path, transforms=interrupted_at(n, ctrl_c),
               prefetch=0)
    assert part.ended == "interrupted" and len(part.history) == (n - 1) // 4
    assert Checkpointer(tmp_path).latest() == n - 1
    rest = fit(validation=(X, Y), checkpoints=tmp_path)
    assert rest.ended == "done" and rest.history == straight.history
    assert bits(rest.run) == bits(straight.run)


def test_ctrl_c_without_checkpoints_gives_what_was_trained():
    part = fit(transforms=interrupted_at(6, ctrl_c), prefetch=0)
    assert part.ended == "interrupted" and len(part.history) == 1


def test_other_exceptions_travel_and_the_last_checkpoint_serves(tmp_path):
    def fail():
        raise OSError("no such picture")
    with pytest.raises(OSError, match="no such picture"):
        fit(checkpoints=tmp_path, every=2, transforms=interrupted_at(8, fail), prefetch=0)
    assert Checkpointer(tmp_path).latest() == 6
    assert bits(fit(checkpoints=tmp_path).run) == bits(fit().run)


def test_a_finished_run_is_given_back_and_may_be_made_longer(tmp_path):
    first = fit(epochs=2, checkpoints=tmp_path)
    again = fit(epochs=2, checkpoints=tmp_path)
    assert again.history == first.history and bits(again.run) == bits(first.run)
    assert bits(fit(epochs=4, checkpoints=tmp_path).run) == bits(fit(epochs=4).run)


def test_patience_goes_on_where_it_was(tmp_path):
    options = dict(epochs=50, validation=(X, 1 - Y), patience=3)
    straight = fit(**options)
    fit(**{**options, "epochs": len(straight.history) - 1}, checkpoints=tmp_path)
    rest = fit(**options, checkpoints=tmp_path)
    assert rest.ended == "early" and rest.history == straight.history
    assert bits(rest.run) == bits(straight.run)


def test_the_checkpoints_of_another_run_are_refused(tmp_path):
    fit(epochs=1, checkpoints=tmp_path)
    with pytest.raises(DataError) as caught:
        fit(size=35, checkpoints=tmp_path)
    message = str(caught.value)
    assert message.startswith(f"the checkpoint of step 4 in {tmp_path} is of another run.\n")
    assert "given      4 batches an epoch" in message and "expected   2 batches" in message
    (tmp_path / "history.json").write_text("{")
    with pytest.raises(DataError, match="is not a history"):
        fit(checkpoints=tmp_path)
    os.remove(tmp_path / "history.json")
    with pytest.raises(DataError, match="no history of it"):
        fit(checkpoints=tmp_path)


# ---------------------------------------------------------------------------- what is shown

class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_log_gets_one_line_per_epoch(capsys):
    fit(epochs=3, progress=True)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 3
    assert lines[1].startswith("epoch 2/3  loss 0.") and lines[1].endswith(" rows/s")
    assert "\r" not in "".join(lines) and "accuracy" in lines[0]


def test_silence_is_silence(capsys):
    fit(epochs=1)
    assert capsys.readouterr() == ("", "")


def test_a_terminal_gets_a_bar_that_is_taken_away(monkeypatch):
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(progress, "PAUSE", 0)
    fit(epochs=1, progress=True)
    shown = screen.getvalue()
    assert shown.count("\r") == 4 + 1 + 1 and "[████████████" in shown
    assert shown.rsplit("\033[K", 1)[1].startswith("epoch 1/1  loss")


def test_ctrl_c_takes_the_bar_away(monkeypatch):
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    fit(progress=True, transforms=interrupted_at(3, ctrl_c), prefetch=0)
    assert screen.getvalue().endswith("\r\033[K")


def test_curves_are_an_svg_file_of_one_panel_per_metric(tmp_path):
    import_xml = pytest.importorskip("xml.etree.ElementTree")
    path = tmp_path / "curves.svg"
    fit(epochs=3, validation=(X, Y), curves=path)
    root = import_xml.fromstring(path.read_text())
    space = "{http://www.w3.org/2000/svg}"
    assert root.tag == space + "svg" and len(root.findall(space + "g")) == 2
    lines = root.findall(f".//{space}polyline")
    assert len(lines) == 4 and all(len(line.get("points").split()) == 3 for line in lines)


@pytest.mark.parametrize("history", [[{"loss": 1.0}], [{"loss": 1.0}, {"loss": 1.0}],
                                     [{"loss": float("nan")}], [{"a<b": 0.0}, {"a<b": 1e-9}],
                                     [{"x": 1e30}, {"x": float("inf")}, {"x": -1e30}, {"x": 0.0}]])
def test_curves_of_strange_values_are_sound(tmp_path, history):
    xml = pytest.importorskip("xml.etree.ElementTree")
    path = tmp_path / "c.svg"
    train.save_curves(path, history)
    xml.fromstring(path.read_text())
    assert "nan" not in path.read_text() and "inf" not in path.read_text()


def test_no_history_no_curves(tmp_path):
    with pytest.raises(ArgumentError, match="no epochs to draw"):
        train.save_curves(tmp_path / "c.svg", [])


# ---------------------------------------------------------------------------- arguments

@pytest.mark.parametrize("options", [
    {"epochs": 0}, {"size": 0}, {"size": 1.5}, {"patience": 0}, {"every": -1}])
def test_numbers_that_are_none_are_refused(options):
    with pytest.raises(RangeError, match="a whole number of 1 or more"):
        fit(**options)


def test_what_cannot_be_trained_is_refused_before_anything_runs():
    for change in ({"loss": None}, {"optimizer": None}, {"data": (X,)}):
        with pytest.raises(ArgumentError, match=r"takes \(x, y\), a loss and an optimizer"):
            fit(**change)
    with pytest.raises(ArgumentError, match="the data are arrays"):
        fit(data=X)
    with pytest.raises(ShapeError, match="equal length"):
        fit(data=(X, Y[:3]))
    with pytest.raises(ArgumentError, match="metrics are functions"):
        fit(metrics=[train.correct])
    with pytest.raises(ArgumentError, match="a step function, with start"):
        train.fit(lambda run, batch, key: run, (X,))
    with pytest.raises(ArgumentError, match="is a function run"):
        train.fit(lambda run, batch, key: run, (X,), start={}, validation=(X,))
