"""Tests of flipcert, in folders that mirror its packages.

``helpers/`` is shared by all and imported by its full name (``from tests.helpers.models import weights_of``);
``goldens/`` are stored answers, ``data/`` files that others computed. ``project/`` is about what surrounds the package:
pages, examples, benchmarks. ``slow/`` is run only by targets of its own: ``make test-browser``, ``test-cluster``,
``test-kills``.
"""
