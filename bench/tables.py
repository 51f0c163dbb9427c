"""The tables behind scripts/bench: networks beside a baseline, ablations, compile time. Runs the built tools as a user does.

Nothing but the standard library; the plot is gnuplot's and is left out, with a line that says so, where there is none.
"""

import argparse
import csv
import json
import math
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
NETWORKS = ["squeezenet1.1", "resnet18", "resnet34", "resnet50", "googlenet", "mobilenetv2", "inception_v3", "shufflenet"]
# Programs that are tried for each network: options of raptor-compile and raptor-validate. The best latency (with the energy of that program) and the best
# throughput are kept, each of the first variant that reaches it. One that fails is named on standard error and passed over.
VARIANTS = ["--effort=1", "--effort=1 --objective=throughput"]


class Failure(Exception):
    """A tool failed; the text is what it said."""


class Tools:
    """The built tools, and the resources that each run took."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)

    def run(self, tool, *arguments, accept=(0,)):
        """Standard output, user CPU seconds and peak memory in MB."""
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            process = subprocess.Popen([self.folder / tool, *map(str, arguments)], stdin=subprocess.DEVNULL, stdout=out, stderr=err)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            out.seek(0), err.seek(0)
            text = out.read().decode(errors="replace")
            if process.returncode not in accept:
                raise Failure(f"{tool}: {(err.read().decode(errors='replace').strip() or text.strip()).splitlines()[0]}")
            return text, usage.ru_utime, usage.ru_maxrss / 1024

    def network(self, name, size, folder):
        file = folder / f"{name}-{size}.onnx"
        if not file.exists():
            self.run("raptor-zoo", name, f"--size={size}", "-o", file)
        return file


def number(text):
    return float(text) if text else None


def read_baseline(path, chip):
    """Rows of a chip by network; comments are lines that begin with #."""
    with open(path, newline="") as file:
        rows = csv.DictReader(line for line in file if not line.startswith("#"))
        return {r["network"]: {k: number(v) for k, v in r.items() if k not in ("chip", "network")} for r in rows if r["chip"] == chip}


def figure(value, digits=2):
    if value is None:
        return "-"
    if isinstance(value, str):
        return value
    return f"{value:.{digits}f}" if abs(value) < 100 else f"{value:.0f}"


def print_table(title, columns, rows):
    """`columns`: (key, heading, digits). The first column is at the left."""
    cells = [[heading for _, heading, _ in columns]] + [[figure(r.get(key), digits) for key, _, digits in columns] for r in rows]
    widths = [max(len(row[i]) for row in cells) for i in range(len(columns))]
    print(f"\n{title}\n")
    for row in cells:
        print("  ".join(c.ljust(w) if i == 0 else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths))))
    sys.stdout.flush()


def write_csv(path, columns, rows):
    with open(path, "w", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(key for key, _, _ in columns)
        for r in rows:
            out.writerow("" if r.get(key) is None else r[key] for key, _, _ in columns)


def note(text):
    print(text, file=sys.stderr, flush=True)


# --- networks ---------------------------------------------------------------------------------------------------------

def measure(tools, model, arguments, variant, folder):
    """Latency, energy, throughput and bounds of one program."""
    out = folder / "artifact"
    shutil.rmtree(out, ignore_errors=True)
    options = [f"--pim-target-config={arguments.hardware}", "--element-bits=8", "--softmax=standard", *shlex.split(variant)]
    _, seconds, megabytes = tools.run("raptor-compile", model, "-o", out, *options)
    summary = json.loads((out / "summary.json").read_text())
    latency = json.loads(tools.run("raptor-sim", out, "--timing", f"--hardware={arguments.hardware}", "--mode=latency", "--json")[0])
    steady = json.loads(tools.run("raptor-sim", out, "--timing", f"--hardware={arguments.hardware}", "--mode=throughput", f"--sim-time={arguments.sim_time}", "--json")[0])
    bounds = summary["bounds"]
    bound = bounds["least_ps"][bounds["binding"]] * 1e-9
    shutil.rmtree(out)
    return {
        "variant": variant, "ms": latency["latency_ms"], "mj": latency["energy_pj"] * 1e-9, "samples_per_s": 1000 * steady["samples"] / arguments.sim_time if steady["samples"] else 0.0,
        "bound_ms": bound, "gap": latency["latency_ms"] / bound if bound else None, "binds": bounds["binding"], "in_placement": bounds["in_placement"]["binding"],
        "predicted_ms": summary["predicted_ps"] * 1e-9, "interval_bound_ms": bounds["between_inputs"]["least_ps"] * 1e-9, "most_used": latency["binding"],
        "compile_s": seconds, "compile_mb": megabytes, "options": options,
    }


def proven(tools, model, row):
    """PASS, or what raptor-validate says instead, of the 32-bit twin of a row's program."""
    text, _, _ = tools.run("raptor-validate", model, *row["options"], accept=(0, 1))
    words = text.splitlines()[-1].split()
    return "PASS" if words[:4] == ["1", "PASS,", "0", "FAIL,"] else "FAIL"


def networks(tools, arguments, folder):
    baseline = read_baseline(arguments.baseline, arguments.chip)
    rows = []
    for name in arguments.networks:
        model = tools.network(name, arguments.size, folder)
        tried = []
        for variant in arguments.variants:
            try:
                tried.append(measure(tools, model, arguments, variant, folder))
                note(f"{name} {variant}: {figure(tried[-1]['ms'], 3)} ms, {figure(tried[-1]['samples_per_s'], 0)} samples/s")
            except Failure as failure:
                note(f"{name} {variant}: {failure}")
        if not tried:
            rows.append({"network": name, "twin": "no program"})
            continue
        best = min(tried, key=lambda r: r["ms"])
        steady = max(tried, key=lambda r: r["samples_per_s"])
        row = {"network": name, **best, "samples_per_s": steady["samples_per_s"], "samples_variant": steady["variant"]}
        row["twin"] = proven(tools, model, best) if arguments.twins else "not run"
        if arguments.twins and steady is not best:
            row["twin"] = "PASS" if row["twin"] == proven(tools, model, steady) == "PASS" else "FAIL"
        known = baseline.get(name) if arguments.size == 224 else None
        if known:
            row.update(known)
            row["times_faster"] = known["pimcomp_ms"] / row["ms"]
            required = [known["minimum_ms"] is None or row["ms"] <= known["minimum_ms"], known["minimum_mj"] is None or row["mj"] <= known["minimum_mj"],
                        known["minimum_samples_per_s"] is None or row["samples_per_s"] >= known["minimum_samples_per_s"]]
            asked = any(known[k] is not None for k in ("minimum_ms", "minimum_mj", "minimum_samples_per_s"))
            missed = [name for name, ok in zip(("ms", "mJ", "samples/s"), required) if not ok]
            row["missed"] = ("none" if not missed else " ".join(missed)) if asked else None
        rows.append(row)
    columns = [("network", "network", 0), ("pimcomp_ms", "PIMCOMP ms", 2), ("minimum_ms", "min", 2), ("goal_ms", "goal", 2), ("ms", "ms", 3), ("times_faster", "faster", 1),
               ("minimum_samples_per_s", "min", 0), ("goal_samples_per_s", "goal", 0), ("samples_per_s", "samples/s", 0), ("minimum_mj", "min", 1), ("mj", "mJ", 2),
               ("twin", "twin", 0), ("bound_ms", "bound ms", 3), ("gap", "gap", 2), ("binds", "binds", 0), ("in_placement", "in placement", 0), ("most_used", "most used", 0),
               ("missed", "missed", 0)]
    print_table(f"{arguments.chip}, {arguments.size} x {arguments.size}, 8-bit elements, one input, every operator included; PIMCOMP-NN as recorded in {pathlib.Path(arguments.baseline).name}",
                columns, rows)
    more = [(k, k, 0) for k in ("variant", "samples_variant", "pimcomp_samples_per_s", "pimcomp_mj", "predicted_ms", "interval_bound_ms", "compile_s", "compile_mb")]
    path = arguments.out / f"networks-{arguments.chip}.csv"
    write_csv(path, columns + more, rows)
    print(f"\nwrote {path}")
    plot(rows, arguments)
    return all(r.get("twin") in ("PASS", "not run") for r in rows)


def plot(rows, arguments):
    """Bars of the latencies, ours beside the recorded ones and the bound, on a logarithmic axis."""
    gnuplot = shutil.which("gnuplot")
    if gnuplot is None:
        print("SKIPPED: no plot, since gnuplot is absent (Debian: gnuplot-nox)")
        return
    path = arguments.out / f"networks-{arguments.chip}.svg"
    series = [("pimcomp_ms", "PIMCOMP-NN"), ("minimum_ms", "required"), ("ms", "Raptor"), ("bound_ms", "bound")]
    series = [(key, title) for key, title in series if any(r.get(key) is not None for r in rows)]
    data = "".join(json.dumps(r["network"]) + "".join(f" {r[key]:.6g}" if r.get(key) is not None else " NaN" for key, _ in series) + "\n" for r in rows)
    script = ["set terminal svg noenhanced size 960,480 font 'sans,12'", f"set output {json.dumps(str(path))}", "set style data histograms", "set style histogram clustered gap 1",
              "set style fill solid 0.8 border -1", "set logscale y", "set ylabel 'milliseconds for one input'", f"set title {json.dumps(arguments.chip + ', 8 bits')}",
              "set grid ytics", "set xtics rotate by -30", "set key top right", f"$data << EOD\n{data}EOD",
              "plot " + ", ".join(f"$data using {i + 2}:xtic(1) title {json.dumps(title)}" for i, (_, title) in enumerate(series))]
    done = subprocess.run([gnuplot], input="\n".join(script) + "\n", text=True, capture_output=True)
    if done.returncode != 0:
        raise Failure("gnuplot: " + (done.stderr.strip() or "failed"))
    print(f"wrote {path}")


# --- ablations --------------------------------------------------------------------------------------------------------

def ablations(tools, arguments, folder):
    """The table of bench_ablation, which leaves out one part of the compiler at a time."""
    models = [tools.network(name, arguments.size, folder) for name in arguments.networks]
    text, _, _ = tools.run("bench_ablation", arguments.hardware, *models)
    lines = list(csv.DictReader(text.splitlines()))
    rows = {}
    for line in lines:
        row = rows.setdefault(line["left_out"], {"left_out": line["left_out"]})
        row[line["network"]] = float(line["ms"]) if line["ms"] else line["reason"]
    names = [pathlib.Path(m).stem.removesuffix(f"-{arguments.size}") for m in models]
    rows = list(rows.values())
    for row in rows:
        for model, name in zip(models, names):
            row[name] = row.get(pathlib.Path(model).stem)
        shares = [row[n] / rows[0][n] for n in names if isinstance(row[n], float) and isinstance(rows[0][n], float)]
        row["times"] = math.exp(sum(map(math.log, shares)) / len(shares)) if shares else None
    columns = [("left_out", "left out", 0), ("times", "times longer", 2)] + [(n, n, 3) for n in names]
    print_table(f"what each part is worth: ms of one input on {arguments.chip} without it ('times longer': geometric mean)", columns, rows)
    path = arguments.out / f"ablations-{arguments.chip}.csv"
    write_csv(path, columns, rows)
    print(f"\nwrote {path}")
    return True


# --- compile time -----------------------------------------------------------------------------------------------------

def growth(tools, arguments, folder):
    """User CPU seconds and memory of raptor-compile from a quarter of the image to four times as much, against n log n of the lanes n."""
    rows = []
    for name in arguments.growth:
        first = None
        for size in (112, 160, 224, 320, 448):
            model, out = tools.network(name, size, folder), folder / "artifact"
            try:
                _, seconds, megabytes = tools.run("raptor-compile", model, "-o", out, f"--pim-target-config={arguments.hardware}", "--element-bits=8", "--softmax=standard")
            except Failure as failure:
                note(f"{name} {size}: {failure}")
                continue
            summary = json.loads((out / "summary.json").read_text())
            shutil.rmtree(out)
            lanes = sum(math.prod(o["lanes"]) for o in summary["operators"])
            ratio = seconds / (lanes * math.log2(lanes))
            first = first or ratio
            rows.append({"network": name, "size": size, "lanes": lanes, "tiles": summary["tiles"], "seconds": seconds, "megabytes": megabytes, "ratio": ratio / first})
    columns = [("network", "network", 0), ("size", "size", 0), ("lanes", "lanes", 0), ("tiles", "tiles", 0), ("seconds", "user s", 2), ("megabytes", "MB", 0),
               ("ratio", "s / (n log n), first = 1", 2)]
    print_table("compile time at effort 1, import and files included; n: lanes", columns, rows)
    path = arguments.out / "compile-time.csv"
    write_csv(path, columns, rows)
    print(f"\nwrote {path}")
    return True


def main():
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__.splitlines()[0])
    parser.add_argument("hardware", type=pathlib.Path, help="hardware configuration in pimsim-nn's JSON format; its name chooses the rows of the baseline")
    parser.add_argument("--tools", default=HERE.parent / "build/bench/bin", help="folder of the built tools")
    parser.add_argument("--what", default="networks,ablations,growth", help="which tables, in order (default: all three)")
    parser.add_argument("--networks", default=",".join(NETWORKS), help="networks of raptor-zoo")
    parser.add_argument("--growth-networks", dest="growth", default="resnet18,resnet50,mobilenetv2", help="networks whose compile time is measured")
    parser.add_argument("--size", type=int, default=224, help="rows and columns of the images; the baseline is of 224")
    parser.add_argument("--variant", action="append", dest="variants", metavar="OPTIONS",
                        help=f"further planning options of a program that is tried, the best is kept; may be given several times (default: {' | '.join(VARIANTS)})")
    parser.add_argument("--no-twins", dest="twins", action="store_false", help="do not execute the 32-bit twins")
    parser.add_argument("--sim-time", type=float, default=100, help="simulated milliseconds of throughput mode")
    parser.add_argument("--baseline", default=HERE / "baseline.csv", help="what others reached, as CSV")
    parser.add_argument("--out", type=pathlib.Path, default=HERE.parent / "build/bench/tables", help="folder for CSV files and the plot")
    arguments = parser.parse_args()
    arguments.networks = [n for n in arguments.networks.split(",") if n]
    arguments.growth = [n for n in arguments.growth.split(",") if n]
    arguments.variants = arguments.variants or VARIANTS
    arguments.chip = arguments.hardware.stem
    tables = {"networks": networks, "ablations": ablations, "growth": growth}
    wanted = arguments.what.split(",")
    for what in wanted:
        if what not in tables:
            parser.error(f"--what: {what} is none of {', '.join(tables)}")
    arguments.out.mkdir(parents=True, exist_ok=True)
    tools = Tools(arguments.tools)
    ok = True
    with tempfile.TemporaryDirectory() as folder:
        for what in wanted:
            try:
                ok = tables[what](tools, arguments, pathlib.Path(folder)) and ok
            except Failure as failure:
                note(f"scripts/bench: {failure}")
                ok = False
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
