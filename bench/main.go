package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"lockstep.run/lockstep/bench/measure"
)

// errOverBudget is the error of a complete run that exceeded the budget.
var errOverBudget = errors.New("the budget is exceeded")

func main() {
	o, err := parse(os.Args[1:])
	switch {
	case errors.Is(err, pflag.ErrHelp):
		return
	case err != nil:
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(2)
	}

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		stop()
		os.Exit(1)
	}
}

// options are the values of the flags.
type options struct {
	presets []preset
	measure measure.Options
}

func parse(args []string) (options, error) {
	o := options{measure: measure.Options{Raw: true}}
	flags := pflag.NewFlagSet("bench", pflag.ContinueOnError)
	flags.SortFlags = false
	var names, wanted []string
	var w measure.Workload
	var rest time.Duration
	flags.StringSliceVar(&names, "workload", nil, "what to measure: all, or some of\n"+describePresets()+"(default: those with *)")
	flags.StringSliceVar(&wanted, "scenarios", nil, "scenarios to run instead of the usual ones of the workload; the first one always runs:\n"+describeScenarios())
	flags.IntVar(&w.Objects, "objects", 0, "objects of each package, instead of the workload's")
	flags.IntVar(&w.Phases, "phases", 0, "phases of each package, instead of the workload's; a divisor of the objects")
	flags.IntVar(&w.Packages, "packages", 0, "packages, instead of the workload's; they are installed together")
	flags.DurationVar(&rest, "rest", 0, "length of the scenario rest, instead of the workload's; memory is to be read after a minute")
	flags.StringVar(&o.measure.MemoryLimit, "memory-limit", "", "GOMEMLIMIT of the manager, instead of the one in config/manager")
	flags.StringVar(&o.measure.Profile, "profile", "", "folder for profiles of the manager: processor time of installs and upgrades, and memory")
	if err := flags.Parse(args); err != nil {
		return options{}, err
	}
	if flags.NArg() > 0 {
		return options{}, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}

	var err error
	if o.presets, err = choose(names); err != nil {
		return options{}, err
	}

	for i := range o.presets {
		p := &o.presets[i]
		set(flags, "objects", &p.workload.Objects, w.Objects)
		set(flags, "phases", &p.workload.Phases, w.Phases)
		set(flags, "packages", &p.workload.Packages, w.Packages)
		set(flags, "scenarios", &p.scenarios, wanted)
		set(flags, "rest", &p.rest, rest)
		if _, err := p.plan(); err != nil {
			return options{}, err
		}
	}

	return o, nil
}

// set sets a field to the value of a flag, if the flag was used.
func set[T any](flags *pflag.FlagSet, name string, field *T, value T) {
	if flags.Changed(name) {
		*field = value
	}
}

// run measures every workload, and prints each when it is complete.
func run(ctx context.Context, o options, out, progress io.Writer) error {
	log.SetLogger(logr.Discard()) // otherwise the client library complains, with a stack trace
	remove, err := measure.BuildManager(ctx, progress)
	defer remove()
	if err != nil {
		return err
	}

	var results []result
	for i, p := range o.presets {
		var r result
		if err := measure.WithTester(ctx, p.name, progress, func(tb testing.TB) { r = measured(tb, p, o.measure, progress) }); err != nil {
			return err
		}
		if i == 0 {
			fmt.Fprintf(out, "%d CPUs, %s/%s, %s, Kubernetes %s\n", runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version(), r.kubernetes)
		}
		r.print(out)
		results = append(results, r)
	}

	if printBudget(out, results) > 0 {
		return errOverBudget
	}

	return nil
}

// measured runs the scenarios of a preset in their own sandbox.
func measured(tb testing.TB, p preset, o measure.Options, progress io.Writer) result {
	o.Rest = p.rest
	o.Report = func(what string) { fmt.Fprintf(progress, "%s: %s\n", p.name, what) }
	plan, _ := p.plan()
	c := measure.Start(tb, p.workload, o)
	r := result{name: p.name, Workload: p.workload, raw: c.Raw, kubernetes: c.Kubernetes()}
	for _, s := range plan {
		o.Report(s.Name + ": " + s.About)
		r.rows = append(r.rows, row{s.Name, s.Run(c)})
	}
	return r
}
