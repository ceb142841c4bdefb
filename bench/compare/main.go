package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/pflag"

	"lockstep.run/lockstep/bench/measure"
)

// steps are in the order of the measurement.
var steps = []string{"install", "upgrade of 1 object", "nothing to do", "1 object drifted", "delete"}

// figure is the cost of one step.
type figure struct {
	requests int
	seconds  float64
	note     string
}

// tool runs the steps for a number of ConfigMaps.
type tool struct {
	name string
	run  func(ctx context.Context, objects int) (map[string]figure, error)
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil && !errors.Is(err, pflag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "compare:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := pflag.NewFlagSet("compare", pflag.ContinueOnError)
	sizes := flags.IntSlice("objects", []int{50, 1000}, "numbers of ConfigMaps")
	names := flags.StringSlice("tools", []string{"Lockstep", "Helm", "Flux"}, "which tools")
	if err := flags.Parse(args); err != nil {
		return err
	}

	tools := []tool{{"Lockstep", lockstep}, {"Helm", helm}, {"Flux", flux}}
	tools = slices.DeleteFunc(tools, func(t tool) bool { return !slices.Contains(*names, t.name) })
	remove, err := measure.BuildManager(ctx, os.Stderr)
	defer remove()
	if err != nil {
		return err
	}

	var failed []error
	for _, n := range *sizes {
		figures := make([]map[string]figure, len(tools))
		for i, t := range tools {
			fmt.Fprintf(os.Stderr, "compare: %s with %d objects\n", t.name, n)
			var err error
			if figures[i], err = t.run(ctx, n); err != nil {
				failed = append(failed, fmt.Errorf("%s with %d objects: %w", t.name, n, err))
			}
		}
		fmt.Fprint(out, table(n, tools, figures))
	}

	return errors.Join(failed...)
}

// table is the Markdown of the figures of one size.
func table(objects int, tools []tool, figures []map[string]figure) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n| %d objects |", objects)
	for _, t := range tools {
		fmt.Fprintf(&b, " %s: requests | seconds |", t.name)
	}

	b.WriteString("\n|---|" + strings.Repeat("---:|---:|", len(tools)) + "\n")
	for _, step := range steps {
		fmt.Fprintf(&b, "| %s |", step)
		for i := range tools {
			f, measured := figures[i][step]
			switch {
			case !measured:
				b.WriteString(" – | – |")
			case f.note != "":
				fmt.Fprintf(&b, " %d | %s |", f.requests, f.note)
			default:
				fmt.Fprintf(&b, " %d | %s |", f.requests, strconv.FormatFloat(f.seconds, 'g', 2, 64))
			}
		}
		b.WriteString("\n")
	}

	return b.String()
}
