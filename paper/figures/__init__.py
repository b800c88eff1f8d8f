"""The paper's figures: one small file each (``declared/``), and what certifies, draws and judges them."""
