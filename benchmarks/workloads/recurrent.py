"""A recurrent network over a sequence of 200 steps: forward, and the gradient of its parameters."""

import math

import numpy

from ..workload import Workload

STEPS, BATCH, IN, WIDTH = 200, 32, 64, 128
INPUT_FLOPS, STATE_FLOPS = 2 * STEPS * BATCH * IN * WIDTH, 2 * STEPS * BATCH * WIDTH**2


def inputs(rng):
    """Weights of the inputs and of the state, biases, a sequence f32[200,32,64], wanted states."""
    def dense(a, b):
        return rng.standard_normal((a, b), "float32") / numpy.float32(math.sqrt(a))
    return ((dense(IN, WIDTH), dense(WIDTH, WIDTH), numpy.zeros(WIDTH, "float32")),
            rng.standard_normal((STEPS, BATCH, IN), "float32"),
            rng.standard_normal((STEPS, BATCH, WIDTH), "float32"))


def jax_states(lib):
    """The states of all steps (Elman 1990), by a scan."""
    def states(params, xs):
        of_input, of_state, bias = params

        def step(state, x):
            state = lib.numpy.tanh(x @ of_input + state @ of_state + bias)
            return state, state
        start = lib.numpy.zeros((BATCH, WIDTH), lib.numpy.float32)
        return lib.lax.scan(step, start, xs)[1]
    return states


def loop_states(np, params, xs):
    """The same by a Python loop."""
    of_input, of_state, bias = params
    state, states = np.zeros((BATCH, WIDTH), xs.dtype), []
    for x in xs:
        state = np.tanh(x @ of_input + state @ of_state + bias)
        states.append(state)
    return np.stack(states)


def jax_gradient(lib, params, xs, wanted):
    def loss(params, xs, wanted):
        return lib.numpy.mean((jax_states(lib)(params, xs) - wanted)**2)
    return lib.jit(lib.grad(loss)), params, xs, wanted


def autograd_gradient(lib, params, xs, wanted):
    def loss(params):
        return lib.numpy.mean((loop_states(lib.numpy, params, xs) - wanted)**2)
    return lib.grad(loss), params


def torch_network(torch, params):
    of_input, of_state, bias = params
    network = torch.nn.RNN(IN, WIDTH)
    network.weight_ih_l0.data = of_input.T.contiguous()
    network.weight_hh_l0.data = of_state.T.contiguous()
    network.bias_ih_l0.data = bias.clone()
    network.bias_hh_l0.data = torch.zeros_like(bias)
    return network


def torch_states(torch, params, xs, wanted):
    network = torch_network(torch, params)

    def states(xs):
        with torch.no_grad():
            return network(xs)[0]
    return states, xs


def torch_gradient(torch, params, xs, wanted):
    network = torch_network(torch, params)
    arrays = [network.weight_ih_l0, network.weight_hh_l0, network.bias_ih_l0]

    def gradient(xs, wanted):
        loss = torch.nn.functional.mse_loss(network(xs)[0], wanted)
        of_input, of_state, bias = torch.autograd.grad(loss, arrays)
        return of_input.T, of_state.T, bias
    return gradient, xs, wanted


FORWARD = {"jax":   lambda lib, params, xs, _: (lib.jit(jax_states(lib)), params, xs),
           "torch": torch_states,
           "numpy": lambda np, params, xs, _: (lambda *a: loop_states(np, *a), params, xs)}

GRADIENT = {"jax": jax_gradient, "torch": torch_gradient, "autograd": autograd_gradient}

WORKLOADS = [
    Workload("rnn_forward", FORWARD, inputs, flops=INPUT_FLOPS + STATE_FLOPS),
    Workload("rnn_grad", GRADIENT, inputs, flops=2 * INPUT_FLOPS + 3 * STATE_FLOPS,
             tolerance=1e-3),
]
