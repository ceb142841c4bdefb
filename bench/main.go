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

	"lockstep.run/lockstep/e2e/harness"
)

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
	workloads []workload
	scenarios map[string]bool
	rest      time.Duration
	json      string
}

// beyondInstall tells whether a scenario is wanted that needs what install makes.
func (o options) beyondInstall() bool {
	return len(o.scenarios) > 1 || !o.scenarios[scenarioInstall]
}

func parse(args []string) (options, error) {
	var names []string
	for _, s := range scenarios {
		names = append(names, s.name)
	}
	flags := pflag.NewFlagSet("bench", pflag.ContinueOnError)
	w := workload{}
	flags.IntVar(&w.Objects, "objects", 1000, "objects of each package; without this, --phases and --packages: 50 in 5 phases, then 1000 in 10")
	flags.IntVar(&w.Phases, "phases", 10, "phases of each package; a divisor of --objects")
	flags.IntVar(&w.Packages, "packages", 1, "packages, installed together")
	wanted := flags.StringSlice("scenarios", names, "what to measure; install runs in any case")
	o := options{scenarios: map[string]bool{}}
	flags.DurationVar(&o.rest, "rest", time.Minute, "length of the scenario rest, after which memory is read")
	flags.StringVar(&o.json, "json", "", "file to write the results to as JSON as well")
	if err := flags.Parse(args); err != nil {
		return options{}, err
	}
	if flags.NArg() > 0 {
		return options{}, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	for _, name := range *wanted {
		if !slices.Contains(names, name) {
			return options{}, fmt.Errorf("unknown scenario %q: want some of %s", name, strings.Join(names, ", "))
		}
		o.scenarios[name] = true
	}
	if len(o.scenarios) == 0 {
		return options{}, errors.New("no scenario to measure")
	}
	if w.Objects < 1 || w.Phases < 1 || w.Packages < 1 || w.Objects%w.Phases != 0 {
		return options{}, fmt.Errorf("cannot spread %d objects evenly over %d phases in %d packages", w.Objects, w.Phases, w.Packages)
	}
	o.workloads = []workload{w}
	if !flags.Changed("objects") && !flags.Changed("phases") && !flags.Changed("packages") {
		o.workloads = []workload{{Objects: 50, Phases: 5, Packages: 1}, {Objects: 1000, Phases: 10, Packages: 1}}
	}
	return o, nil
}

// run measures every workload, and prints each when it is done.
func run(ctx context.Context, o options, out, progress io.Writer) error {
	log.SetLogger(logr.Discard()) // else the client library complains, with a stack trace
	rep := report{Machine: thisMachine()}
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
	for i, w := range o.workloads {
		name := fmt.Sprintf("%s of %d objects", plural(w.Packages, "package"), w.Objects)
		err := withTester(ctx, name, progress, func(tb testing.TB) {
			res, kubernetes := runWorkload(tb, w, o, progress)
			rep.Machine.Kubernetes = kubernetes
			rep.Workloads = append(rep.Workloads, res)
		})
		if err != nil {
			return err
		}
		if i == 0 {
			rep.Machine.print(out)
		}
		rep.Workloads[i].print(out)
	}
	if o.json == "" {
		return nil
	}
	raw, err := json.MarshalIndent(rep, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(o.json, append(raw, '\n'), 0o644)
}
