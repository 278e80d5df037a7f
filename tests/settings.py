"""The product's settings over a data folder of this test process alone.

A module of its own because pytest-django loads settings before any conftest.py.
Each process of pytest-xdist gets its own folder, so nothing is shared. A child
process that a test starts inherits the name of this module, but gets the
product's settings as they are, over the environment it was given.
"""

import atexit
import os
import shutil
import sys
import tempfile

TESTING = "pytest" in sys.modules

if TESTING:
    _folder = tempfile.mkdtemp(prefix="impakt-tests-")
    atexit.register(shutil.rmtree, _folder, ignore_errors=True)
    os.environ["IMPAKT_DATA"] = _folder
    for _name in ("IMPAKT_EVIDENCE", "IMPAKT_SPOOL", "IMPAKT_STATIC_ROOT"):
        os.environ.pop(_name, None)
    # Servers of tests are on loopback; tests of the refusal turn it off.
    os.environ["IMPAKT_PRIVATE_ENDPOINTS"] = "1"
    # Never a broker that real work goes through: the tests empty theirs.
    os.environ.pop("IMPAKT_BROKER_URL", None)
    if _broker := os.environ.get("IMPAKT_TEST_BROKER_URL"):
        # A Redis database per test process: one must not take another's tasks.
        _place, _, _number = _broker.rpartition("/")
        _process = os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")
        os.environ["IMPAKT_BROKER_URL"] = f"{_place}/{int(_number) + int(_process)}"
    if _database := os.environ.get("IMPAKT_TEST_DATABASE_URL"):
        os.environ["IMPAKT_DATABASE_URL"] = _database
        os.environ["IMPAKT_SECRET_KEY"] = "a-key-for-tests-only-" + "0123456789" * 4

from impakt_web.settings import *  # noqa: E402, F403 - the environment has to be set first

if TESTING:
    PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    STORAGES["staticfiles"] = {  # noqa: F405 - from the star import above
        "BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"
    }
    WHITENOISE_AUTOREFRESH = True
    if DATABASES["default"]["ENGINE"].endswith("sqlite3"):  # noqa: F405 - as above
        # A file, so that threads and worker processes meet in it as they do in earnest.
        DATABASES["default"]["TEST"] = {  # noqa: F405 - as above
            "NAME": DATABASES["default"]["NAME"]  # noqa: F405 - as above
        }
