package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"lockstep.run/lockstep/bench/measure"
	"lockstep.run/lockstep/e2e/harness"
)

// errOverBudget is the failure of a run that measured everything.
var errOverBudget = errors.New("the budget is not kept")

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

// options are what the flags say.
type options struct {
	presets []preset
	check   bool
	json    string
	profile string
	memory  string
	// merge names files with results to print, instead of measuring.
	merge []string
	// into names a document to put the results into.
	into string
}

func parse(args []string) (options, error) {
	o := options{}
	flags := pflag.NewFlagSet("bench", pflag.ContinueOnError)
	flags.SortFlags = false
	var names, wanted []string
	var w measure.Workload
	var rest time.Duration
	flags.StringSliceVar(&names, "workload", nil, "what to measure: all, or some of\n"+describePresets()+"(default: those with *)")
	flags.StringSliceVar(&wanted, "scenarios", nil, "what happens, instead of what is usual for the workload; install runs in any case:\n"+describeScenarios())
	flags.IntVar(&w.Objects, "objects", 0, "objects of each package, instead of the workload's")
	flags.IntVar(&w.Phases, "phases", 0, "phases of each package, instead of the workload's; a divisor of the objects")
	flags.IntVar(&w.Packages, "packages", 0, "packages, instead of the workload's; they are installed together")
	flags.DurationVar(&rest, "rest", 0, "length of the scenario rest, instead of the workload's; memory is to be read after a minute")
	flags.BoolVar(&o.check, "check", true, "exit with 1 when a limit is not kept")
	flags.StringVar(&o.json, "json", "", "file to write the results to as JSON as well")
	flags.StringVar(&o.memory, "memory-limit", "", "GOMEMLIMIT of the manager, instead of that of config/manager")
	flags.StringVar(&o.profile, "profile", "", "folder for profiles of the manager during installs and upgrades, and for lists of its requests")
	flags.StringSliceVar(&o.merge, "merge", nil, "print the results in these files, written by --json, as one; measure nothing")
	flags.StringVar(&o.into, "into", "", "Markdown file to put the results into, between its lines <!-- bench --> and <!-- /bench -->")
	if err := flags.Parse(args); err != nil {
		return options{}, err
	}
	if flags.NArg() > 0 {
		return options{}, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	other := flags.Changed("objects") || flags.Changed("phases") || flags.Changed("packages")
	if other && len(names) == 0 {
		names = []string{"1000"}
	}
	var err error
	if o.presets, err = choose(names); err != nil {
		return options{}, err
	}
	if other && len(o.presets) > 1 {
		return options{}, errors.New("objects, phases and packages can be said for one workload only")
	}
	for i := range o.presets {
		p := &o.presets[i]
		set(flags, "objects", &p.workload.Objects, w.Objects)
		set(flags, "phases", &p.workload.Phases, w.Phases)
		set(flags, "packages", &p.workload.Packages, w.Packages)
		set(flags, "scenarios", &p.scenarios, wanted)
		set(flags, "rest", &p.rest, rest)
		if err := p.validate(); err != nil {
			return options{}, err
		}
	}
	return o, nil
}

// set gives the value of a flag that was used to a field.
func set[T any](flags *pflag.FlagSet, name string, field *T, value T) {
	if flags.Changed(name) {
		*field = value
	}
}

func describePresets() string {
	var b strings.Builder
	for _, p := range presets {
		star := " "
		if p.byDefault {
			star = "*"
		}
		fmt.Fprintf(&b, " %s %-14s %s, about %s\n", star, p.name, p.about, p.takes)
	}
	return b.String()
}

func describeScenarios() string {
	var b strings.Builder
	for _, s := range measure.Scenarios() {
		fmt.Fprintf(&b, "   %-14s %s\n", s.Name, s.About)
	}
	return b.String()
}

// run measures every workload, and prints each when it is done.
func run(ctx context.Context, o options, out, progress io.Writer) error {
	if len(o.merge) > 0 {
		return merge(o, out)
	}
	log.SetLogger(logr.Discard()) // else the client library complains, with a stack trace
	announce(o.presets, progress)
	binary := ""
	defer func() {
		if binary != "" {
			os.RemoveAll(filepath.Dir(binary)) // the harness keeps it in a folder of its own for the whole process
		}
	}()
	err := withTester(ctx, "build", progress, func(tb testing.TB) {
		fmt.Fprintln(progress, "building the manager")
		binary = harness.Binary(tb, "lockstep-manager")
	})
	if err != nil {
		return err
	}
	rep := report{Machine: thisMachine()}
	for _, p := range o.presets {
		res := result{Name: p.name, Workload: p.workload}
		if err := withTester(ctx, p.name, progress, func(tb testing.TB) { rep.Machine.Kubernetes = res.measure(tb, p, o, progress) }); err != nil {
			return errors.Join(err, rep.write(o.json))
		}
		if len(rep.Workloads) == 0 {
			rep.Machine.print(out)
		}
		res.print(out)
		rep.Workloads = append(rep.Workloads, res)
		if err := rep.write(o.json); err != nil { // the results so far are worth keeping
			return err
		}
	}
	return errors.Join(rep.judge(o.check, out), rep.insert(o.into))
}

// judge prints the limits, and returns an error where one is not kept.
func (r report) judge(check bool, out io.Writer) error {
	r.printBudget(out)
	if check && r.exceeded() > 0 {
		return errOverBudget
	}
	return nil
}

// merge prints the results of several runs, one for each workload of their own.
func merge(o options, out io.Writer) error {
	var whole report
	for _, path := range o.merge {
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var part report
		if err := json.Unmarshal(raw, &part); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		part.Machine.print(out)
		whole.Machine = part.Machine
		whole.Workloads = append(whole.Workloads, part.Workloads...)
	}
	for _, w := range whole.Workloads {
		w.print(out)
	}
	return errors.Join(whole.judge(o.check, out), whole.write(o.json), whole.insert(o.into))
}

// announce says how long it will take.
func announce(presets []preset, progress io.Writer) {
	var total time.Duration
	var names []string
	for _, p := range presets {
		total += p.takes
		names = append(names, p.name)
	}
	fmt.Fprintf(progress, "measuring %s: about %s on 2 CPUs, longer with a longer --rest\n", strings.Join(names, ", "), total.Round(time.Minute)+time.Minute)
}

// measure runs the scenarios of a preset on a sandbox of their own, and returns
// the version of its API server.
func (r *result) measure(tb testing.TB, p preset, o options, progress io.Writer) string {
	say := func(what string) { fmt.Fprintf(progress, "%s: %s\n", p.name, what) }
	c := measure.Start(tb, p.workload, measure.Options{Raw: true, Rest: p.rest, Profile: o.profile, MemoryLimit: o.memory, Report: say})
	r.Raw = c.Raw
	for _, s := range p.plan() {
		say(s.Name + ": " + s.About)
		m := s.Run(c)
		if slices.Contains(p.scenarios, s.Name) {
			r.Rows = append(r.Rows, newRow(s.Name, p.workload, c.Raw, m))
		}
	}
	return c.Kubernetes()
}

// write writes the report as JSON, where a file was named.
func (r report) write(path string) error {
	if path == "" {
		return nil
	}
	raw, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(raw, '\n'), 0o644)
}
