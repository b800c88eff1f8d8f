"""Does a network that is fine-tuned obey the certificate of its tangent kernel? Needs torch.

``python -m paper tangent`` learns networks of several widths without labels, certifies their tangent kernels,
fine-tunes the networks themselves on clean and on flipped labels, and judges what happened by rules
that were written before.
"""
