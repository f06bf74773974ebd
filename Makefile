# `make` alone lists the commands. Each makes what it needs: Python 3.11, pip and make are enough to start.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BENCH := .venv-bench
# Type-checked and linted; folders that a checkout lacks are left out.
CODE := $(wildcard conftest.py src tests docs benchmarks examples)
PIP := -m pip --disable-pip-version-check --quiet
# pip compiles with one processor. Some packages hold files that no Python 3 compiles; pip ignores them too.
COMPILE := -m compileall -qq -j 0

# Opponents, at the versions that docs/benchmarks.md names. Lhotse imports urllib3 without asking for it, and
# torch without saying which: pinned, and taken from wherever pip is told to look (PIP_EXTRA_INDEX_URL,
# PIP_FIND_LINKS), so that a CPU build can be had in place of gigabytes of CUDA.
data-forager := data-forager==0.2.0
lhotse := torch==2.13.0 urllib3 lhotse==2.0.0a7
datasets := datasets==5.2.0
grain := grain==0.2.18 array-record==0.8.6
lance := pylance==14.0.2
webdataset := webdataset==1.0.2
indexed-parquet-dataset := indexed-parquet-dataset==0.4.4
polars := polars==2.1.0
duckdb := duckdb==2.0.0
kaldi-native-io := kaldi_native_io==1.23.0
wids := wids==0.1.11
PEERS := data-forager lhotse datasets grain lance webdataset indexed-parquet-dataset polars duckdb kaldi-native-io wids
# What the others' requirements exclude gets an environment of its own inside that one.
streaming := torch==2.13.0 mosaicml-streaming==0.13.0
litdata := torch==2.13.0 litdata==0.2.76
energon := torch==2.13.0 megatron-energon==7.4.1
megatron-core := torch==2.13.0 megatron-core==0.16.1
# It pins botocore, and with a boto3 of another version pip would choose one of 2020.
s3fs := datasets==5.2.0 s3fs==2026.9.0
APART := streaming litdata energon megatron-core s3fs
# What is tested beside ours goes without its requirements, which exclude our NumPy and Transformers, into a folder
# that its tests alone import from: the modules that it imports, and no client of an object store.
streaming-alone := mosaicml-streaming==0.13.0 torchvision==0.28.0 brotli catalogue pillow python-snappy zstd
# Energon too: what else it asks for is 20 MB of clients for remote files, which its tests do without.
tar-alone := wids==0.1.11 megatron-energon==7.4.1 rapidyaml==0.15.2 filetype==1.2.0 mfusepy==3.1.1 deprecation==2.1.0

# Writers and readers of tokens: Megatron's index, LitData with its client of S3, datatrove.
tokens-alone := megatron-core==0.16.1 litdata==0.2.76 boto3 botocore s3transfer jmespath tifffile datatrove==0.10.1 loguru humanize

# A server of Azure's blobs, for tests. The other servers come with the extra dev, nginx with the tests themselves.
azurite := azurite@3.37.0

# One process a processor, but no more than 8: each collects all tests.
SHARED := -n $(shell nproc 2>/dev/null || echo 2) --maxprocesses=8
# Tests write and fsync many small files: a disk takes milliseconds for each, memory nothing. 4 GB of it is enough.
MEMORY := $(shell test "$$(df --output=avail /dev/shm 2>/dev/null | tail -n 1)" -gt 8000000 2>/dev/null && echo TMPDIR=/dev/shm)
# What `make test` leaves to `make check`; docs/design/testing.md says why.
OURS := not frameworks and not exhaustive and not bench and not demo

# Each test that starts a process would compile the package anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help browser demo demo-audio demo-ray demo-remote demo-tokens test check optimized fuzz lint types docs bench clean

help: ## list the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

demo: $(VENV)/.made ## train, kill, resume, and prove that nothing was lost (DATA=path for your own files)
	@$(VENV)/bin/python examples/main_job/demo.py $(if $(DATA),"$(DATA)")

demo-audio: $(VENV)/.made ## the same for audio: Shar, noise at an SNR, batches by duration, several ranks
	@$(VENV)/bin/python examples/audio_job/demo.py

demo-ray: $(VENV)/.ray ## the same on a cluster of Ray: lose a node, get it back, lose the driver
	@$(VENV)/bin/python -m examples.ray_job.demo

demo-remote: $(VENV)/.made ## the same on a bucket with latency and faults: publish, kill, go on elsewhere on other ranks
	@$(VENV)/bin/python -m examples.remote_job.demo

demo-tokens: $(VENV)/.made ## the same for a language model: tokenise, pack, mix, other ranks, another sample length
	@$(VENV)/bin/python examples/tokens_job/demo.py

test: $(VENV)/.made ## run the tests of all that is ours (ARGS="-n 2 tests/order" for pytest)
	@$(MEMORY) $(VENV)/bin/python -m pytest $(SHARED) --dist=worksteal -m "$(OURS)" $(ARGS)

# Two at a time, because most of them use one processor; the tests come last, and end with their summary.
check: $(VENV)/.frameworks $(VENV)/.browser ## all that must hold before a change goes in: lint, types, docs, every test
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target $(VENV)/.azurite lint optimized types docs
	@$(MEMORY) SEEKABLE_THRIFTY_TESTS=1 $(VENV)/bin/python -m pytest $(SHARED) --dist=loadgroup $(ARGS)

optimized: $(VENV)/.made ## run the tests that expect errors under python -O, which strips asserts
	@$(VENV)/bin/python -O -m pytest -q -m "$(OURS)" -W ignore::pytest.PytestConfigWarning src tests

browser: $(VENV)/.browser ## install the browser that the tests of the viewer drive (Debian, as root)

fuzz: $(VENV)/.made ## look for bytes, pipelines and examples that break something, from a new seed (ARGS="--seconds 600")
	@$(VENV)/bin/python tests/fuzz/run.py $(ARGS)

lint: $(VENV)/.made ## check style and formatting
	@$(VENV)/bin/ruff check $(CODE)
	@$(VENV)/bin/ruff format --check $(CODE)

types: $(VENV)/.frameworks ## check types
	@$(VENV)/bin/mypy $(CODE)

docs: $(VENV)/.frameworks ## build the docs into docs/_build/html, warnings being errors
	@$(VENV)/bin/python -m sphinx -q -W --keep-going -b html docs docs/_build/html || { rm -rf docs/_build; exit 1; }
	@echo "docs/_build/html/index.html"

bench: $(BENCH)/.made $(PEERS:%=$(BENCH)/.%) $(APART:%=$(BENCH)/.%) ## compare with the floors and with other libraries, in an environment of its own
	@$(BENCH)/bin/python benchmarks/run.py $(ARGS)

clean: ## remove the environments, the built docs and the caches
	rm -rf $(VENV) $(BENCH) benchmarks/.data demo-output demo-audio-output demo-ray-output demo-remote-output demo-tokens-output build dist docs/_build .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find $(CODE) -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.made: pyproject.toml
	@echo "making $(VENV)"
	@$(PYTHON) -m venv $(VENV)
	@$(VENV)/bin/python $(PIP) install --no-compile --editable '.[dev]'
	@$(VENV)/bin/python $(COMPILE) $(VENV)/lib || true
	@touch $@

# What the integrations are tested with takes longer to install than all the rest, and a demo needs none of it.
$(VENV)/.frameworks: $(VENV)/.made
	@echo "installing the frameworks that are tested with"
	@$(VENV)/bin/python $(PIP) install --no-compile --editable '.[frameworks]'
	@$(VENV)/bin/python $(PIP) install --no-compile --no-deps --upgrade --target $(VENV)/apart/streaming $(streaming-alone)
	@$(VENV)/bin/python $(PIP) install --no-compile --no-deps --upgrade --target $(VENV)/apart/tar $(tar-alone)
	@$(VENV)/bin/python $(PIP) install --no-compile --no-deps --upgrade --target $(VENV)/apart/tokens $(tokens-alone)
	@$(VENV)/bin/python $(COMPILE) $(VENV)/lib $(VENV)/apart || true
	@touch $@

# A demo needs Ray alone.
$(VENV)/.ray: $(VENV)/.made
	@test -e $(VENV)/.frameworks || $(VENV)/bin/python $(PIP) install --editable '.[ray]'
	@touch $@

# Debian's headless Chromium: the tests drive it through Playwright, which would download another one.
$(VENV)/.browser: $(VENV)/.frameworks
	@command -v chromium-headless-shell chromium >/dev/null || { apt-get update -q >/dev/null \
		&& apt-get install -qy --no-install-recommends chromium-headless-shell fonts-liberation >/dev/null; } \
		|| echo "a browser could not be installed: its tests are skipped"
	@touch $@

# Azure's server needs Node.js; where it cannot be installed, its tests are skipped. npm waits for the network most
# of the time, so that it installs while other things are checked.
$(VENV)/.azurite: $(VENV)/.made
	@npm install --silent --no-audit --no-fund --prefix $(VENV)/apart/servers/azurite $(azurite) && touch $@ \
		|| echo "azurite could not be installed: its tests are skipped"

$(BENCH)/.made: pyproject.toml
	@echo "making $(BENCH)"
	@$(PYTHON) -m venv $(BENCH)
	@$(BENCH)/bin/python $(PIP) install --editable '.[parquet,gzip,remote,tokens,tiktoken,gigatoken]'
	@touch $@

# A peer that cannot be installed is tried again the next time, and meanwhile the table names it.
$(PEERS:%=$(BENCH)/.%): $(BENCH)/.%: $(BENCH)/.made Makefile
	@echo "installing $($*)"
	@$(BENCH)/bin/python $(PIP) install $($*) && touch $@ || echo "$* could not be installed: left out"

$(APART:%=$(BENCH)/.%): $(BENCH)/.%: $(BENCH)/.made Makefile
	@echo "installing $($*)"
	@$(PYTHON) -m venv $(BENCH)/apart/$*
	@$(BENCH)/apart/$*/bin/python $(PIP) install $($*) && touch $@ || echo "$* could not be installed: left out"
