"""Parameters from torch's state dicts: names, order, layouts."""

import numpy as np
import pytest

import fgrad
from fgrad import nn
from fgrad.errors import ArgumentError, DataError
from fgrad.io import from_torch_state_dict

RNG = np.random.default_rng(0)
MODEL = nn.Sequential(nn.Conv(4, (3, 3)), nn.BatchNorm(), nn.relu,
                      nn.Flatten(), nn.Dense(5), nn.Dense(2))


def like():
    return MODEL.init(fgrad.random.key(0), np.zeros((1, 6, 6, 3), "f4"))


def torch_dict():
    """The state dict of the same model in torch, channels first."""
    def draw(*shape):
        return RNG.normal(size=shape).astype("f4")
    return {"0.weight": draw(4, 3, 3, 3), "0.bias": draw(4), "1.weight": draw(4), "1.bias": draw(4),
            "1.running_mean": draw(4), "1.running_var": np.abs(draw(4)),
            "1.num_batches_tracked": np.array(3),
            "4.weight": draw(5, 144), "4.bias": draw(5), "5.weight": draw(2, 5), "5.bias": draw(2)}


def convolved(x, w, b):
    """torch's convolution with padding 1: f[n,c,h,w], f[o,c,3,3]."""
    padded = np.pad(x, [(0, 0), (0, 0), (1, 1), (1, 1)])
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    return np.einsum("nchwij,ocij->nohw", windows, w) + b[:, None, None]


def test_a_network_loaded_from_torch_gives_torchs_values():
    d = torch_dict()
    params, state = from_torch_state_dict(d, like(), flattened={"4": (4, 6, 6)})
    x = RNG.normal(size=(2, 3, 6, 6)).astype("f4")
    h = convolved(x, d["0.weight"], d["0.bias"])
    mean, variance, scale, shift = (d[f"1.{k}"][:, None, None] for k in
                                    ("running_mean", "running_var", "weight", "bias"))
    h = np.maximum((h - mean) / np.sqrt(variance + 1e-5) * scale + shift, 0).reshape(2, -1)
    expected = (h @ d["4.weight"].T + d["4.bias"]) @ d["5.weight"].T + d["5.bias"]
    y, _ = MODEL.apply(params, state, np.moveaxis(x, 1, -1))
    assert np.allclose(y, expected, atol=1e-3)


def test_order_does_not_depend_on_how_names_sort():
    wanted = {f"dense{k}": {"w": np.zeros((1, 1))} for k in range(1, 13)}
    found = from_torch_state_dict({f"{k}.weight": np.full((1, 1), k) for k in range(1, 13)},
                                  {k: wanted[k] for k in sorted(wanted)})
    assert [found[f"dense{k}"]["w"].item() for k in range(1, 13)] == list(range(1, 13))


def test_equal_names_come_before_order():
    wanted = {"head": {"w": np.zeros((2, 3), "f4")}, "body": [{"w": np.zeros((3, 2), "f4")}]}
    given = {"head.weight": np.ones((3, 2)), "body.0.weight": np.zeros((2, 3))}
    head = from_torch_state_dict(given, wanted)["head"]["w"]
    assert head.tolist() == np.ones((2, 3)).tolist() and head.dtype == np.float32


def test_names_decide_where_order_would_be_wrong():
    wanted = {"dense1": {"w": np.zeros((1, 1))}, "dense2": {"w": np.zeros((1, 1))}}
    given = {"late.weight": np.full((1, 1), 2.0), "early.weight": np.full((1, 1), 1.0)}
    found = from_torch_state_dict(given, wanted, names={"early": "dense1"})
    assert found["dense1"]["w"] == 1 and found["dense2"]["w"] == 2


def test_a_single_layer_needs_no_module_name():
    found = from_torch_state_dict({"weight": np.ones((2, 3)), "bias": np.zeros(2)},
                                  {"w": np.zeros((3, 2)), "b": np.ones(2)})
    assert found["w"].shape == (3, 2)


def test_all_that_does_not_fit_is_named():
    wanted = {"dense1": {"w": np.zeros((3, 2)), "b": np.zeros(2)},
              "dense2": {"w": np.zeros((2, 1))}}
    given = {"a.weight": np.ones((2, 4)), "c.weight": np.ones((2, 2, 3, 3)), "c.bias": np.ones(2)}
    with pytest.raises(DataError) as caught:
        from_torch_state_dict(given, wanted)
    message = str(caught.value)
    assert message.startswith("the state dict does not fit `like`.\n")
    for words in ("left over c: weight, bias", "missing   dense1/b[2]",
                  "different a.weight[2, 4], dense1/w has [3, 2]",
                  "missing   dense2/w[2, 1]", "fix        names={"):
        assert words in message


def test_a_bias_without_a_place_is_not_dropped():
    given = {"0.weight": np.ones((2, 3)), "0.bias": np.ones(2)}
    with pytest.raises(DataError, match=r"left over 0.bias\[2\]"):
        from_torch_state_dict(given, {"dense1": {"w": np.zeros((3, 2))}})


@pytest.mark.parametrize("names, words", [({"x": "dense1"}, "modules of the state dict"),
                                          ({"0": "dense9"}, "layers of `like`")])
def test_names_of_what_is_not_there_are_refused(names, words):
    given, like = {"0.weight": np.ones((2, 3))}, {"dense1": {"w": np.zeros((3, 2))}}
    with pytest.raises(ArgumentError, match=words):
        from_torch_state_dict(given, like, names=names)
