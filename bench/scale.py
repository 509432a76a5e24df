#!/usr/bin/env python3
"""The tables of docs/scale.md: what follows from measured rates for one host and for many.  Needs nothing but Python."""

GB, TB = 1e9, 1e12

# measured (bench/RESULTS.md, docs/scale.md)
PAGES_16 = 45 * GB          # pages copied out of shared memory by 16 processes
PAGES_48 = 98 * GB          # by 48 of 64 cores, for four GPUs
PAGES_1 = 5.4 * GB          # pages one loader takes two int4 columns out of
PCIE_1, PCIE_2 = 55 * GB, 101 * GB
NVLINK = 394 * GB           # peer copy; 370 GB/s is reckoned with
JOIN_28 = 10.0e-3           # 2^28 with 2^28 rows of 8 + 8 bytes on one GPU, resident, keys not consecutive
GPU_MEMORY = 141 * GB
COPY_ROWS = 10e6 / 2.3      # rows a PostgreSQL process formats for COPY, 4 integers
# assumed, not measured
NGPUS = 8
CORES = 96                  # of a host with 8 GPUs
NIC = 12.5 * GB             # 100 Gb/s
NVME = 20 * GB              # read, and half of it written
COORDINATOR = 0.2e-3        # plan, send and take in one shard's partial result
SHARDS = 8                  # of a table on a host

HEAP_ROW, COLUMN_ROW = 44, 16   # bytes of a row of two int8: in a heap page, as columns
PAGES_HOST = PAGES_48 / 48 * CORES


def rows(n):
	return f"2^{n.bit_length() - 1}" if n & (n - 1) == 0 else f"{n:.0e}".replace("e+", "·10^").replace("^0", "^")


def seconds(t):
	return f"{t * 1e3:.0f} ms" if t < 1 else f"{t:.1f} s" if t < 100 else f"{t / 60:.0f} min"


def one_host():
	print("| join, both sides two int8 | heap pages | columns | cold, 16 cores (45 GB/s) | cold, 96 cores (196 GB/s) | over PCIe to 8 GPUs | resident: exchange | resident: local joins |")
	print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
	for e in (27, 28, 30, 32, 34, 35):
		n = 2 ** e
		pages, columns = 2 * n * HEAP_ROW, 2 * n * COLUMN_ROW
		exchange = columns / NGPUS * (NGPUS - 1) / NGPUS / (370 * GB)
		local = JOIN_28 * n / 2 ** 28 / NGPUS
		# both sides, exchanged copies of them and tables of twice the inner rows' 16 bytes
		fits = 3 * columns < 0.9 * NGPUS * GPU_MEMORY
		print(f"| {rows(n)} ⋈ {rows(n)} | {pages / GB:.0f} GB | {columns / GB:.0f} GB | {seconds(pages / PAGES_16)} | {seconds(pages / PAGES_HOST)} | {seconds(columns / (NGPUS * PCIE_2 / 2))} | "
			+ (f"{seconds(exchange)} | {seconds(local)} |" if fits else "does not fit | |"))


def many_hosts():
	print("| fact ⋈ dimension | hosts | rows a host | columns a host | cold, co-located | resident, co-located | coordinator | not co-located: network | not co-located: PostgreSQL's processes |")
	print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
	for fact, dimension in ((10 ** 12, 10 ** 11), (10 ** 13, 10 ** 12)):
		for hosts in (10, 100, 1000):
			n = (fact + dimension) / hosts
			columns = n * COLUMN_ROW
			cold = n * HEAP_ROW / PAGES_HOST
			fits = 3 * columns < 0.9 * NGPUS * GPU_MEMORY
			host_memory = n * HEAP_ROW < 1.5 * TB
			exchange = columns / NGPUS * (NGPUS - 1) / NGPUS / (370 * GB)
			resident = seconds(exchange + JOIN_28 * n / 2 ** 29 / NGPUS) if fits else "does not fit"
			disk = "" if host_memory else f" (pages from disk: {seconds(n * HEAP_ROW / NVME)})"
			moved = n * (hosts - 1) / hosts
			print(f"| {rows(fact)} ⋈ {rows(dimension)} | {hosts} | {n:.1e} | {columns / GB:.0f} GB | {seconds(cold)}{disk} | {resident} | {seconds(hosts * SHARDS * COORDINATOR)} | "
				f"{seconds(moved * COLUMN_ROW / NIC)} | {seconds(2 * moved / (COPY_ROWS * CORES))} |")


one_host()
print()
many_hosts()
