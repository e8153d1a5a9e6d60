# The few things that are typed often. CMake does the work; CMakePresets.json has the configurations.
# Targets install the Debian packages that they miss (debian-packages.txt).
PREFIX ?= /usr/local
JOBS ?= $(shell nproc)
PYTHON ?= /usr/bin/python3
DEMO = examples/finetune_11gib_oom.pickle.gz

.PHONY: all build demo check bench peers fidelity check-bare install format lint coverage clean
.DELETE_ON_ERROR:

all: build

build:
	@.ci/packages build
	@cmake --preset release -DCMAKE_INSTALL_PREFIX=$(PREFIX) >/dev/null
	@cmake --build --preset release -j $(JOBS)

# A run that died at 11 GiB: why, and what to set. Exit code 1 of `explain` means "found something".
# Builds the command and nothing else.
demo:
	@.ci/packages build
	@cmake --preset release >/dev/null
	@cmake --build --preset release -j $(JOBS) --target allot -- --quiet
	build/release/allot explain $(DEMO) --html build/explain.html || [ $$? -eq 1 ]
	build/release/allot advise $(DEMO) --html build/advise.html
	@echo
	@echo "The same with pictures: build/explain.html build/advise.html"

.venv/made: tests/requirements.txt
	@$(PYTHON) -m venv .venv
	@.venv/bin/pip install --quiet --disable-pip-version-check -r tests/requirements.txt
	@touch $@

.venv-torch/made: tests/requirements-torch.txt
	@$(PYTHON) -m venv .venv-torch
	@.venv-torch/bin/pip install --quiet --disable-pip-version-check --no-deps -r tests/requirements-torch.txt
	@touch $@

check:
	@.ci/packages build test
	@$(MAKE) --no-print-directory .venv/made .venv-torch/made
	@cmake --preset dev -DALLOT_TORCH_PYTHON=$(CURDIR)/.venv-torch/bin/python >/dev/null
	@cmake --build --preset dev -j $(JOBS)
	@.ci/test dev

bench: build .venv-torch/made
	@export ALLOT_TORCH_PYTHON=$${ALLOT_TORCH_PYTHON:-$(CURDIR)/.venv-torch/bin/python}; \
	for program in build/release/bench/bench_*; do "$$program" || exit 1; done

# Placement beside the allocators of others, which are installed into build/peers.
peers: build .venv-torch/made
	@export ALLOT_TORCH_PYTHON=$${ALLOT_TORCH_PYTHON:-$(CURDIR)/.venv-torch/bin/python}; \
	bench/peers/peers.py --install --json build/peers/peers.json

# Dry runs beside recordings of real cards. Installs the versions of torch that made them.
fidelity: build
	@bench/fidelity/fidelity.py --install build/fidelity --json build/fidelity/fidelity.json

check-bare:
	@.ci/check-bare

install: build
	@cmake --install build/release

format:
	@.ci/packages ci
	clang-format-14 -i $$(git ls-files '*.c' '*.h')

lint:
	@.ci/packages build ci
	@.ci/lint

coverage:
	@.ci/packages build test ci
	@$(MAKE) --no-print-directory .venv/made
	@cmake --preset coverage >/dev/null
	@cmake --build --preset coverage -j $(JOBS)
	@.ci/test coverage -LE '^(install|browser)$$'
	gcovr --root . --filter src/ --filter tools/ --print-summary --html-details build/coverage/coverage.html build/coverage

clean:
	rm -rf build .venv .venv-torch
