# Two commands do everything: `make demo` and `make test`. Both install what they lack (Debian, root).
# `make verify` runs the long tests and those with many peers; VERIFY='name of a test' some of them; with
# KAFKA_PEER=HOST:PORT, a fresh broker, raw requests are held against it too.
# `make bench KAFKA_PEER=HOST:PORT ROCKETMQ_PEER=NAMESRV:PORT BENCH='--scale 0.2'` measures,
# `make bench-scale KAFKA_PEER=HOST:PORT` many partitions, connections and groups.
# `make behaviour ROCKETMQ_PEER=NAMESRV:PORT SETTINGS=short` records what the behaviour suite sees of a real RocketMQ.
.PHONY: setup test verify behaviour lint sim demo bench bench-scale
setup:
	@scripts/setup

test: setup lint
	cargo test --workspace

VERIFY ?=
verify:
	@scripts/setup --verify
	cargo test --workspace --test verify -- $(VERIFY)
	$(if $(VERIFY),,DUOLOG_FUZZ_SEED=$$(date +%s) DUOLOG_FUZZ_CASES=300000 cargo test --workspace --test fuzz)
	$(if $(KAFKA_PEER),cargo run -p duolog-tests --example differential -- $(KAFKA_PEER) - --seeds 1..11)

SETTINGS ?= short
behaviour: setup
	cargo run -p duolog-tests --example behaviour -- $(ROCKETMQ_PEER) $(SETTINGS) --record

# The second clippy: `--all-targets` leaves out what `cargo test` runs only when named.
lint:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	cargo clippy --workspace --test verify -- -D warnings
	cargo check -p duolog-log-core -p duolog-coordinator --no-default-features

# Seeds of the replication simulator; the first that breaks a promise ends it. SIM='--first 0 --seeds 100000'.
# Its profile unwinds, so that an assertion that fails has its seed too.
SIM ?= --seeds 100000
sim:
	cargo run --profile sim -q -p duolog-sim -- $(SIM)

demo: setup
	@scripts/demo

bench: setup
	@scripts/bench $(if $(KAFKA_PEER),--kafka-peer $(KAFKA_PEER)) \
	  $(if $(ROCKETMQ_PEER),--rocketmq-peer $(ROCKETMQ_PEER)) $(BENCH)

bench-scale: setup
	@scripts/bench_scale $(if $(KAFKA_PEER),--kafka-peer $(KAFKA_PEER)) $(BENCH)
