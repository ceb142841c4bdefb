package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"lockstep.run/lockstep/e2e/sandbox/binary"
)

// options select the runs.
type options struct {
	only     []string
	level    level
	baseline bool
	list     bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bugs:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	opts, err := parse(args)
	if err != nil {
		return err
	}
	root, err := binary.Repository(".")
	if err != nil {
		return err
	}
	bugs, err := readBugs(filepath.Join(root, "e2e", "bugs"))
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "lockstep-bugs-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	t := &trial{root: root, scratch: scratch}
	bugs = opts.choose(bugs)
	switch {
	case len(bugs) == 0:
		return errors.New("no bug is chosen: see -list")
	case opts.list:
		list(bugs)
		return nil
	case opts.baseline:
		return t.passWithout(ctx, bugs)
	}
	return t.catchAll(ctx, bugs)
}

func parse(args []string) (options, error) {
	flags := flag.NewFlagSet("bugs", flag.ContinueOnError)
	only := flags.String("only", "", "numbers of the bugs to run, such as 03,11 (default: all)")
	need := flags.String("level", "", "run only tests of this level: unit, integration or e2e (default: all)")
	opts := options{}
	flags.BoolVar(&opts.baseline, "baseline", false, "run the tests without a bug: they have to pass")
	flags.BoolVar(&opts.list, "list", false, "print the bugs and the tests that notice them, and run nothing")
	if err := flags.Parse(args); err != nil {
		return opts, err
	}
	if *only != "" {
		opts.only = strings.Split(*only, ",")
	}
	if opts.level = level(*need); *need != "" && opts.level.rank() < 0 {
		return opts, fmt.Errorf("there is no level %q", *need)
	}
	return opts, nil
}

// choose returns the bugs to run, with the tests to run.
func (o options) choose(bugs []bug) []bug {
	var chosen []bug
	for _, b := range bugs {
		if len(o.only) > 0 && !slices.Contains(o.only, b.Number) {
			continue
		}
		b.Checks = slices.DeleteFunc(slices.Clone(b.Checks), func(c check) bool { return o.level != "" && c.level() != o.level })
		if len(b.Checks) > 0 {
			chosen = append(chosen, b)
		}
	}
	return chosen
}

const row = "%-9s  %-34s  %-13s  %-76s  %7s\n"

func header() { fmt.Printf(row, "invariant", "bug", "", "test that notices it", "seconds") }

func list(bugs []bug) {
	header()
	for _, b := range bugs {
		for _, c := range b.Checks {
			fmt.Printf(row, fmt.Sprint(b.Invariant), b.String(), "", c.String(), "")
		}
	}
}

// catchAll runs every test of every bug with the bug.
func (t *trial) catchAll(ctx context.Context, bugs []bug) error {
	header()
	wrong, ran := 0, 0
	for _, b := range bugs {
		overlay, err := apply(ctx, t.root, b.Path, filepath.Join(t.scratch, b.String()))
		if err != nil {
			return fmt.Errorf("%s does not apply: %w", b, err)
		}
		for _, c := range b.Checks {
			ran++
			if !show(b.Invariant, b.String(), c, t.catch(ctx, c, overlay)) {
				wrong++
			}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	fmt.Printf("%d bugs, %d tests: %d as expected, %d not\n", len(bugs), ran, ran-wrong, wrong)
	if wrong > 0 {
		return fmt.Errorf("%d tests did not notice their bug", wrong)
	}
	return nil
}

// passWithout runs each test once without any bug.
func (t *trial) passWithout(ctx context.Context, bugs []bug) error {
	header()
	wrong := 0
	seen := map[string]bool{}
	for _, b := range bugs {
		for _, c := range b.Checks {
			command := fmt.Sprint(c.Env, c.Args)
			if seen[command] || ctx.Err() != nil {
				continue
			}
			seen[command] = true
			if !show(b.Invariant, "(none)", c, t.baseline(ctx, c)) {
				wrong++
			}
		}
	}
	fmt.Printf("%d tests without a bug: %d passed, %d did not\n", len(seen), len(seen)-wrong, wrong)
	if wrong > 0 {
		return fmt.Errorf("%d tests fail without any bug", wrong)
	}
	return ctx.Err()
}

// show prints one row, and the output of the test if the verdict is unexpected.
func show(invariant int, name string, c check, out outcome) bool {
	fmt.Printf(row, fmt.Sprint(invariant), name, out.Verdict, c, fmt.Sprintf("%.1f", out.Took.Round(100*time.Millisecond).Seconds()))
	if out.Verdict.good() {
		return true
	}
	if c.Says != nil {
		fmt.Printf("    expected: %s\n", c.Says)
	}
	fmt.Println("    " + strings.ReplaceAll(tail(out.Output), "\n", "\n    "))
	return false
}

// tail returns the end of a test's output, without logs of the manager.
func tail(output string) string {
	const most = 60
	lines := slices.DeleteFunc(strings.Split(strings.TrimSpace(output), "\n"), func(line string) bool {
		return strings.Contains(line, `{"level":`)
	})
	return strings.Join(lines[max(0, len(lines)-most):], "\n")
}
