"""The paper's evaluation: one small declarative file a figure (``figures/``), and what runs, draws and judges them."""
