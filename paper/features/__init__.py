"""Features learned from images without labels: RotNet and SimCLR. Needs torch, an extra."""

from paper.features.checkpoint import load
from paper.features.encoder import Encoder
from paper.features.extraction import extract
from paper.features.rotnet import RotNet
from paper.features.simclr import SimCLR
from paper.features.training import train

__all__ = ["Encoder", "RotNet", "SimCLR", "extract", "load", "train"]
