"""The record of an image data set: what `mnist.load`, `cifar.load` and `digits.drawn` give."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..errors import DataError, bound_methods


@bound_methods
@dataclass(frozen=True)
class Split:
    """Images and their classes, for training and for testing; `name` says what they are.

    images: u8[n,height,width], 0 is paper and 255 is ink, or u8[n,height,width,channels]; labels:
    u8[n].  Raises DataError when the parts do not fit together.
    """
    name: str
    train_images: np.ndarray
    train_labels: np.ndarray
    test_images: np.ndarray
    test_labels: np.ndarray

    def __post_init__(self):
        check_pair(f"{self.name}, training", self.train_images, self.train_labels)
        check_pair(f"{self.name}, test", self.test_images, self.test_labels)
        if self.train_images.shape[1:] != self.test_images.shape[1:]:
            raise DataError(f"{self.name}: training and test images differ in size.",
                            given=f"{self.train_images.shape[1:]} and {self.test_images.shape[1:]}")

    def __repr__(self):
        height, width = self.train_images.shape[1:3]
        return (f"Split({self.name}: {len(self.train_labels)} training and {len(self.test_labels)} "
                f"test images of {height}×{width})")


def check_pair(what, images, labels):
    """Raises DataError unless images are u8[n,height,width] or u8[…,channels] and labels u8[n]."""
    if images.dtype == labels.dtype == np.uint8 and images.ndim in (3, 4):
        if labels.shape == images.shape[:1]:
            return
    raise DataError(f"{what}: images and labels do not fit together.",
                    given=[f"images {images.dtype}{list(images.shape)}",
                           f"labels {labels.dtype}{list(labels.shape)}"],
                    expected="images uint8[n,height,width] or uint8[n,height,width,channels], "
                             "labels uint8[n]")
