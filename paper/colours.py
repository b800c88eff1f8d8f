"""Colours that everybody can tell apart (Okabe and Ito), in the order in which lines take them."""

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
