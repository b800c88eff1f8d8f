"""Do real networks obey the certificates of infinitely wide ones? Needs torch (``pip install "flipcert[torch]"``).

``python -m paper evidence`` trains finite networks, compares them with the kernel machines that are certified, flips
labels inside and just outside the certified radius, trains again, and writes a page and a plot of what happened.
"""
