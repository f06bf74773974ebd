# `make` alone lists the commands. Each makes what it needs: Python 3.11, pip and make are enough to start.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BENCH := .venv-bench
MINIMUM := .venv-minimum
BARE := .venv-bare
# Type-checked and linted; folders that a checkout lacks are left out.
CODE := $(wildcard conftest.py src tests docs benchmarks examples)
PIP := -m pip --disable-pip-version-check --quiet
# Without bytecode: Python makes that of the modules that are imported, which are a small part of all.
INSTALL := $(PIP) install --no-compile
# The first pip that installs dependency groups; Python 3.11 and 3.12 come with an older one.
GROUPS := 'pip>=25.1'

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
zephon := zephon==0.2.0
trl := torch==2.13.0 transformers==5.24.0 trl==1.16.0
PEERS := data-forager lhotse datasets grain lance webdataset indexed-parquet-dataset polars duckdb kaldi-native-io wids zephon trl
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

# What the example of a format of one's own reads.
lance-alone := pylance==14.0.2 lance-namespace==0.13.0

# A second checker of types, with a Node.js of its own.
pyright := basedpyright==1.40.2

# A server of Azure's blobs, for tests. The other servers come with the group dev, nginx with the tests themselves.
azurite := azurite@3.37.0

# Tests write and fsync many small files: a disk takes milliseconds for each, memory nothing. 4 GB of it is enough.
MEMORY := $(shell test "$$(df --output=avail /dev/shm 2>/dev/null | tail -n 1)" -gt 8000000 2>/dev/null && echo TMPDIR=/dev/shm)
# Errors of arguments in each part of the public face.
OPTIMIZED := tests/test_optimized.py tests/loader/test_batches.py tests/dataset/test_slice.py tests/dataset/test_split.py \
	tests/dataset/test_mix.py tests/stream/test_hostile.py tests/state tests/kaldi/test_specifiers.py
# Those of the rooms that the extras of this environment are enough for; peers ask for newer versions.
WITH_MINIMUM := tests/order tests/state tests/storage tests/index tests/nodes tests/stream tests/loader \
	tests/formats/parquet $(patsubst %,tests/dataset/test_%.py,cast conditions fill filter_where schema tables unified_type)

# Old versions of pyarrow cannot write what these read, and write no Shar.
NOT_WITH_MINIMUM := --ignore tests/stream/test_write_shar.py --ignore tests/formats/parquet/test_family.py \
	--deselect tests/formats/parquet/test_point_read.py::test_which_types_are_picked

# Files of these rooms that import no extra, by themselves or through what they share.
EXTRA := pyarrow|soundfile|zstandard|tests\.(formats|dataset|test_closed_world|storage\.compressing|stream\.writing)
WITH_BARE = $(shell grep -rLE '^ *(import|from) ($(EXTRA))' --include='test_*.py' $(addprefix tests/,order state nodes stream loader))

# Each test that starts a process would compile the package anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo demo-audio demo-ray demo-remote demo-stops demo-tokens demo-chat demo-without test test-changed check static nightly budget mutants \
	newcomer release optimized minimum bare fuzz browser lint types docs bench clean

help: ## list the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

demo: $(VENV)/.made ## train, kill, resume, and prove that nothing was lost (DATA=path for your own files)
	@$(VENV)/bin/python examples/main_job/demo.py $(if $(DATA),"$(DATA)")

demo-audio: $(VENV)/.made ## the same for audio: Shar, noise at an SNR, batches by duration, several ranks
	@$(VENV)/bin/python examples/audio_job/demo.py

demo-ray: $(VENV)/.ray ## the same on a cluster of Ray: lose a node, get it back, lose the driver
	@$(VENV)/bin/python -m examples.ray_job.demo

demo-remote: $(VENV)/.made ## the same on a bucket with latency and faults: publish, kill, go on elsewhere on other ranks
	@$(VENV)/bin/python -m examples.remote_job.demo

demo-stops: $(VENV)/.made ## stop a training 20 times by signals and a deadline, on other ranks each time; 0 twice, 0 lost
	@$(VENV)/bin/python -m examples.preempted_job.demo

demo-tokens: $(VENV)/.made ## the same for a language model: tokenise, pack, mix, other ranks, another sample length
	@$(VENV)/bin/python examples/tokens_job/demo.py

demo-chat: $(VENV)/.made ## the same for conversations: a chat template, a loss mask, each trained token counted
	@$(VENV)/bin/python -m examples.chats_job.demo

demo-without: $(VENV)/.made ## train with and without 1 % of a source, and with a takedown in mid-run; each slot counted
	@$(VENV)/bin/python -m examples.without_job.demo

test: $(VENV)/.made ## run the tests of all that is ours (ROOM=loader, or ARGS="tests/order -k inverse" for pytest)
	@$(MEMORY) $(VENV)/bin/python -m tests.run $(if $(ROOM),--room $(ROOM)) $(ARGS)

test-changed: $(VENV)/.made ## run the tests of the rooms that differ from main
	@$(MEMORY) $(VENV)/bin/python -m tests.run --changed $(ARGS)

# Types are checked beside the tests, because mypy uses one processor.
check: $(VENV)/.frameworks $(VENV)/.browser ## all that must hold before a change goes in: lint, types, docs, tests
	@$(MAKE) --no-print-directory --jobs=2 static test

static: lint types docs

# The budget is measured alone; what has one process runs beside something else.
nightly: $(VENV)/.apart $(VENV)/.browser $(VENV)/.azurite ## all there is: every kill and cut, frameworks, demos, fuzz, minimum versions, mutants
	@$(MAKE) --no-print-directory budget
	@$(MAKE) --no-print-directory --jobs=2 static minimum mutants fuzz optimized bare newcomer
	@$(MEMORY) $(VENV)/bin/python -m tests.run --nightly $(ARGS)

budget: $(VENV)/.made ## measure the processor time of the tests; fail where a room is over its budget
	@$(MEMORY) $(VENV)/bin/python -m tests.seconds $(ARGS)

mutants: $(VENV)/.made ## plant faults, one after the other: the tests of its room must find each
	@$(MEMORY) $(VENV)/bin/python -m tests.mutants $(ARGS)

newcomer: $(VENV)/.made ## install the built wheel alone, and run the blocks of README, quick start and tutorial
	@$(VENV)/bin/python -m tests.newcomer

# What builds and checks a release is needed for nothing else.
release: check ## check a tagged commit, and build what is published into dist/
	@$(VENV)/bin/python $(INSTALL) build twine check-wheel-contents
	@$(VENV)/bin/python -m tests.release

optimized: $(VENV)/.made ## run some tests that expect errors under python -O, which strips asserts
	@$(VENV)/bin/python -O -m pytest -q -W ignore::pytest.PytestConfigWarning $(OPTIMIZED)

minimum: $(MINIMUM)/.made ## run the tests of the core with the oldest versions that pyproject.toml allows
	@$(MEMORY) $(MINIMUM)/bin/python -m pytest -q -W ignore::DeprecationWarning $(NOT_WITH_MINIMUM) \
		-m "not frameworks and not exhaustive" $(WITH_MINIMUM)

browser: $(VENV)/.browser ## install the browser that the tests of the viewer drive (Debian, as root)

bare: $(BARE)/.made ## run the tests of the core without any extra
	@$(MEMORY) $(BARE)/bin/python -m pytest -q -k "not parquet" -m "not frameworks and not exhaustive" $(WITH_BARE)

fuzz: $(VENV)/.made ## look for bytes, pipelines and examples that break something, from a new seed (ARGS="--seconds 600")
	@$(VENV)/bin/python tests/fuzz/run.py $(ARGS)

lint: $(VENV)/.made ## check style and formatting
	@$(VENV)/bin/ruff check $(CODE)
	@$(VENV)/bin/ruff format --check $(CODE)
	@$(VENV)/bin/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml

types: $(VENV)/.frameworks ## check types
	@$(VENV)/bin/mypy $(CODE)

docs: $(VENV)/.made ## build the docs into docs/_build/html, warnings being errors
	@$(VENV)/bin/python -m sphinx -q -W --keep-going -b html docs docs/_build/html || { rm -rf docs/_build; exit 1; }
	@echo "docs/_build/html/index.html"

bench: $(BENCH)/.made $(PEERS:%=$(BENCH)/.%) $(APART:%=$(BENCH)/.%) ## compare with the floors and with other libraries, in an environment of its own
	@$(BENCH)/bin/python benchmarks/run.py $(ARGS)

clean: ## remove the environments, the built docs and the caches
	rm -rf $(VENV) $(BENCH) $(MINIMUM) $(BARE) benchmarks/.data demo-output demo-audio-output demo-ray-output demo-remote-output demo-stops-output demo-tokens-output demo-chat-output demo-without-output build dist docs/_build .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find $(CODE) -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.made: pyproject.toml
	@echo "making $(VENV)"
	@$(PYTHON) -m venv $(VENV)
	@$(VENV)/bin/python $(INSTALL) $(GROUPS)
	@$(VENV)/bin/python $(INSTALL) --editable . --group dev
	@touch $@

# What the integrations are tested with takes longer to install than all the rest, and a demo needs none of it. Types
# need it, and so does the reference of the docs. pip looks once for both sets where neither is there.
$(VENV)/.frameworks: pyproject.toml
	@echo "making $(VENV) with the frameworks that are tested with"
	@$(PYTHON) -m venv $(VENV)
	@$(VENV)/bin/python $(INSTALL) $(GROUPS)
	@$(VENV)/bin/python $(INSTALL) --editable . --group dev --group frameworks
	@touch $(VENV)/.made $@

# What `make nightly` alone needs: what excludes others of these, in folders that its tests alone import from, and
# the second checker of types.
$(VENV)/.apart: $(VENV)/.frameworks
	@$(VENV)/bin/python $(INSTALL) --no-deps --upgrade --target $(VENV)/apart/streaming $(streaming-alone)
	@$(VENV)/bin/python $(INSTALL) --no-deps --upgrade --target $(VENV)/apart/tar $(tar-alone)
	@$(VENV)/bin/python $(INSTALL) --no-deps --upgrade --target $(VENV)/apart/tokens $(tokens-alone)
	@$(VENV)/bin/python $(INSTALL) --no-deps --upgrade --target $(VENV)/apart/lance $(lance-alone)
	@$(VENV)/bin/python $(INSTALL) $(pyright)
	@touch $@

$(BARE)/.made: pyproject.toml
	@echo "making $(BARE)"
	@$(PYTHON) -m venv $(BARE)
	@$(BARE)/bin/python $(INSTALL) $(GROUPS)
	@$(BARE)/bin/python $(INSTALL) --editable . --group test
	@touch $@

$(MINIMUM)/.made: pyproject.toml tests/minimum.py
	@echo "making $(MINIMUM)"
	@$(PYTHON) -m venv $(MINIMUM)
	@$(PYTHON) tests/minimum.py > $(MINIMUM)/constraints.txt
	@$(MINIMUM)/bin/python $(INSTALL) $(GROUPS)
	@$(MINIMUM)/bin/python $(INSTALL) --constraint $(MINIMUM)/constraints.txt \
		--editable '.[parquet,remote,gzip,zstd,view]' --group test
	@touch $@

# A demo needs Ray alone.
$(VENV)/.ray: $(VENV)/.made
	@test -e $(VENV)/.frameworks || $(VENV)/bin/python $(INSTALL) --editable '.[ray]'
	@touch $@

# Debian's headless Chromium: the tests drive it through Playwright, which would download another one.
$(VENV)/.browser: $(VENV)/.made
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
	@$(BENCH)/bin/python $(PIP) install --editable '.[parquet,gzip,remote,tokens,chat,tiktoken,gigatoken]'
	@touch $@

# A peer that cannot be installed is tried again the next time, and meanwhile the table names it.
$(PEERS:%=$(BENCH)/.%): $(BENCH)/.%: $(BENCH)/.made Makefile
	@echo "installing $($*)"
	@$(BENCH)/bin/python $(PIP) install $($*) && touch $@ || echo "$* could not be installed: left out"

$(APART:%=$(BENCH)/.%): $(BENCH)/.%: $(BENCH)/.made Makefile
	@echo "installing $($*)"
	@$(PYTHON) -m venv $(BENCH)/apart/$*
	@$(BENCH)/apart/$*/bin/python $(PIP) install $($*) && touch $@ || echo "$* could not be installed: left out"
