"""The table behind scripts/stage-rates: the rate of a stream of inputs against the number of pipeline stages. Runs the built tools as a user does.

Nothing but the standard library.
"""

import argparse
import json
import pathlib
import shutil
import sys
import tempfile

from tables import HERE, NETWORKS, Failure, Tools, figure, note, print_table, read_baseline, write_csv

COLUMNS = [("network", "network", 0), ("stages", "stages", 0), ("inputs", "inputs", 0), ("samples_per_s", "samples/s", 1), ("best", "best", 0), ("predicted_us", "predicted us", 1),
           ("interval_us", "us", 1), ("bound_us", "bound us", 1), ("slowest", "binds (predicted)", 0), ("most_used", "most used", 0), ("used", "used %", 0),
           ("messages", "messages", 0), ("channels", "channels", 0), ("twin", "twin", 0), ("pimcomp_samples_per_s", "PIMCOMP", 1), ("minimum_samples_per_s", "min", 0),
           ("goal_samples_per_s", "goal", 0)]
MORE = [(k, k, 0) for k in ("bound_resource", "compile_s", "compile_mb")]


def slowest_part(pipeline):
    """What binds as predicted, by the rule of reports/pipeline.txt: a stage with its cores, or the port of the global memory."""
    stages = pipeline["stages"]
    at = max(range(len(stages)), key=lambda k: stages[k]["interval_ps"])
    if pipeline["global_memory_ps"] >= stages[at]["interval_ps"]:
        return "global memory"
    return f"stage {at} ({stages[at]['cores']} cores)"


def measure(tools, model, stages, inputs, arguments, folder):
    """One program that takes `inputs` inputs at a time: its rate by the exact timing, what was predicted, what binds, and whether its twin is right."""
    out = folder / "artifact"
    shutil.rmtree(out, ignore_errors=True)
    options = [f"--pim-target-config={arguments.hardware}", "--element-bits=8", "--softmax=standard", "--objective=throughput", f"--pipeline={stages}", *arguments.options]
    if inputs > 1:
        options.append(f"--shape=input={inputs}x3x{arguments.size}x{arguments.size}")
    _, seconds, megabytes = tools.run("raptor-compile", model, "-o", out, *options)
    summary = json.loads((out / "summary.json").read_text())
    steady = json.loads(tools.run("raptor-sim", out, "--timing", f"--hardware={arguments.hardware}", "--mode=throughput", f"--sim-time={arguments.sim_time}", "--json")[0])
    shutil.rmtree(out)
    pipeline, bound = summary["pipeline"], summary["bounds"]["between_inputs"]
    samples = inputs * steady["samples"]
    row = {"samples_per_s": 1000 * samples / arguments.sim_time, "interval_us": 1000 * arguments.sim_time / samples if samples else None,
           "predicted_us": pipeline["interval_ps"] * 1e-6 / inputs, "bound_us": bound["least_ps"] * 1e-6 / inputs, "bound_resource": bound["binding"], "slowest": slowest_part(pipeline),
           "most_used": steady["binding"], "used": 100 * steady["utilisation"][steady["binding"].replace(" ", "_")]["busiest"], "messages": pipeline["messages"],
           "channels": pipeline["channels"], "compile_s": seconds, "compile_mb": megabytes, "twin": "not run"}
    if arguments.twins:
        # The same program, free running; its timing here is of no interest.
        text, _, _ = tools.run("raptor-validate", model, *options, f"--batch-size={arguments.batch_size}", "--sim-time=1", accept=(0, 1))
        row["twin"] = "PASS" if text.splitlines()[-1].startswith("1 PASS, 0 FAIL") else "FAIL"
        if row["twin"] == "FAIL":
            note(text.rstrip())
    return row


def main():
    parser = argparse.ArgumentParser(prog="scripts/stage-rates", description=__doc__.splitlines()[0], epilog="Other options go to raptor-compile and raptor-validate, for example --effort=2.")
    parser.add_argument("hardware", type=pathlib.Path, help="hardware configuration in pimsim-nn's JSON format; its name chooses the rows of the baseline")
    parser.add_argument("networks", nargs="*", default=NETWORKS, help=f"networks of raptor-zoo, or ONNX files (default: {' '.join(NETWORKS)})")
    parser.add_argument("--stages", default="1,2,4,8,16", help="numbers of stages")
    parser.add_argument("--inputs", default="1", help="numbers of inputs that a program takes at a time, as one batch (networks of raptor-zoo with images only)")
    parser.add_argument("--size", type=int, default=224, help="rows and columns of the images of networks of raptor-zoo; the baseline is of 224")
    parser.add_argument("--sim-time", type=float, default=100, help="simulated milliseconds of throughput mode")
    parser.add_argument("--no-twins", dest="twins", action="store_false", help="do not execute the 32-bit twins")
    parser.add_argument("--batch-size", type=int, default=4, help="inputs that a twin executes without a pause")
    parser.add_argument("--tools", default=HERE.parent / "build/tools/bin", help="folder of the built tools")
    parser.add_argument("--baseline", default=HERE / "baseline.csv", help="what others reached, as CSV")
    parser.add_argument("--csv", type=pathlib.Path, help="file to write (default: build/stage-rates-CHIP.csv)")
    arguments, arguments.options = parser.parse_known_intermixed_args()
    def numbers(name, text):
        try:
            return [int(n) for n in text.split(",")]
        except ValueError:
            parser.error(f"--{name}={text}: expected numbers with commas between them")

    pairs = [(stages, inputs) for stages in numbers("stages", arguments.stages) for inputs in numbers("inputs", arguments.inputs)]
    chip = arguments.hardware.stem
    path = arguments.csv or HERE.parent / f"build/stage-rates-{chip}.csv"
    tools, baseline, rows, ok = Tools(arguments.tools), read_baseline(arguments.baseline, chip), [], True
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for network in arguments.networks:
            file = pathlib.Path(network)
            title, model = (file.stem, file) if file.suffix == ".onnx" else (network, None)
            known = baseline.get(title, {}) if arguments.size == 224 else {}
            tried = []
            for stages, inputs in pairs:
                row = {"network": title, "stages": stages, "inputs": inputs, **{k: known.get(f"{k}") for k in ("pimcomp_samples_per_s", "minimum_samples_per_s", "goal_samples_per_s")}}
                try:
                    model = model or tools.network(network, arguments.size, folder)
                    row.update(measure(tools, model, stages, inputs, arguments, folder))
                    note(f"{title}, {stages} stages, {inputs} inputs: {figure(row['samples_per_s'], 1)} samples/s, twin {row['twin']}")
                except Failure as failure:
                    note(f"{title}, {stages} stages, {inputs} inputs: {failure}")
                    row["twin"] = "no program"
                ok = ok and row["twin"] in ("PASS", "not run")
                tried.append(row)
            right = [r for r in tried if r["twin"] in ("PASS", "not run")]
            if right:
                max(right, key=lambda r: r["samples_per_s"])["best"] = "*"
            rows += tried
    print_table(f"{chip}, 8-bit elements, a stream of inputs; us: between samples; inputs: that a program takes at a time; bound: of any program; used: of the most used resource, its busiest instance; "
                "PIMCOMP: samples/s of its pipeline, perfectly synchronized", COLUMNS, rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_csv(path, COLUMNS + MORE, rows)
    print(f"\nwrote {path}")
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
