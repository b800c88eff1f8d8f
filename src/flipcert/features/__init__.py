"""Features learned from images without labels: RotNet and SimCLR. Needs torch, an extra."""

from flipcert.features.checkpoint import load
from flipcert.features.encoder import Encoder
from flipcert.features.extraction import extract
from flipcert.features.rotnet import RotNet
from flipcert.features.simclr import SimCLR
from flipcert.features.training import train

__all__ = ["Encoder", "RotNet", "SimCLR", "extract", "load", "train"]
